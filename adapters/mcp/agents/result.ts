/** An agent's work as MCP renders it: tools that submit it, a task with its state, and a result. Pure. */
import type { CallToolResult, ResourceLink } from '@modelcontextprotocol/server';
import { taskState } from '../../../mappings/mcp.ts';
import type { AgentFace, Artifact, AskRecord, Json, JsonObject, Message, Task, TaskView } from '../../../src/index.ts';
import { answersOf, TASK_STATES, type TaskState, visibleText } from '../../../src/index.ts';

export const AGENT_PREFIX = 'agent__';
const TEXT = { type: 'string' } as const;

/** One tool per agent. `tasks`: the caller supports tasks as 2025-11-25 has them. */
export function agentTools(agents: readonly AgentFace[], tasks: boolean): JsonObject[] {
  const starters = agents.map(({ name, about }) => ({
    name: `${AGENT_PREFIX}${name}`,
    title: name,
    description: `${about.description ?? `Gives work to the agent ${name}.`} Answers when the work is done, or with a task to follow.`,
    inputSchema: object(
      {
        message: { ...TEXT, description: 'What is to be done' },
        session_id: { ...TEXT, description: 'A conversation to go on with; a new one when absent' },
      },
      ['message'],
    ),
    outputSchema: object({ task_id: TEXT, session_id: TEXT, status: TEXT, summary: TEXT }, ['task_id', 'status']),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    ...(tasks && { execution: { taskSupport: 'optional' } }),
  }));
  return agents.length === 0 ? [] : [...starters, ...FOLLOWING];
}

function object(properties: JsonObject, required: readonly string[]): JsonObject {
  return { type: 'object', properties, required: [...required] };
}

/** The task operations as tools, for clients that do not support tasks. */
const FOLLOWING: readonly JsonObject[] = [
  {
    name: 'task__status',
    title: 'How is the work going?',
    description: 'How a task given to an agent is going, what it asks, and what came of it.',
    inputSchema: object({ task_id: TEXT }, ['task_id']),
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
  {
    name: 'task__answer',
    title: 'Answer a question',
    description: 'Answers the question a task waits with: a value, or yes or no where it asks for permission.',
    inputSchema: object(
      {
        task_id: TEXT,
        ask_id: TEXT,
        value: {},
        approved: { type: 'boolean' },
        arguments: { type: 'object', description: 'with a yes: the arguments to run instead' },
        reason: TEXT,
      },
      ['task_id'],
    ),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  },
  {
    name: 'task__cancel',
    title: 'Stop the work',
    description: 'Tells the agent of a task to stop.',
    inputSchema: object({ task_id: TEXT, reason: TEXT }, ['task_id']),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
];

export function stateOf({ status }: Task): TaskState {
  return (TASK_STATES as readonly string[]).includes(status) ? (status as TaskState) : 'WORKING';
}

/** 2025-11-25 */
export function toLegacyTask(task: Task): JsonObject {
  return { ...timesOf(task), ttl: null, pollInterval: POLL_MS };
}

/** The extension. A failure of the agent is a result here; `failed` would mean that the agent could not be asked. */
export function toExtensionTask(task: Task): JsonObject {
  const times = timesOf(task);
  const status = times.status === 'failed' ? 'completed' : times.status;
  return { ...times, status: status as Json, ttlMs: null, pollIntervalMs: POLL_MS };
}
const POLL_MS = 1000;

function timesOf(task: Task): JsonObject {
  const state = stateOf(task);
  const why =
    state === 'AUTH_REQUIRED' ? 'waits for permission' : state === 'SUBMITTED' ? 'submitted' : task.failure?.message;
  return {
    taskId: task.id,
    status: taskState.toWire(state),
    ...(why && { statusMessage: why }),
    createdAt: task.created_at,
    lastUpdatedAt: task.updated_at,
  };
}

/** The result of the task, as text for a model and as structured content for a program. */
export function toResult(task: Task, view: TaskView): JsonObject {
  const texts = answersOf(view).flatMap((answer) => (answer.message ? textsOf(answer.message) : []));
  const failure = task.failure ? [`${task.failure.code}: ${task.failure.message}`] : [];
  const words = [...texts, ...(task.status === 'COMPLETED' ? [] : failure)];
  const { outcome } = view;
  const summary = outcome?.summary ?? '';
  return {
    content: [
      ...(words.length > 0 ? words : [summary || task.status]).map((text) => ({ type: 'text' as const, text })),
      ...(outcome?.artifacts ?? []).map(toLink),
    ],
    structuredContent: { task_id: task.id, session_id: task.session_id, status: task.status, summary },
    ...(task.status !== 'COMPLETED' && { isError: true }),
  } satisfies CallToolResult;
}

function textsOf({ parts }: Message): string[] {
  return parts.flatMap((part) => ('text' in part ? [part.text as string] : []));
}

export function toLink({ id, mime_type, metadata }: Artifact) {
  const { name, size } = metadata as { name?: string; size?: number };
  return {
    type: 'resource_link' as const,
    uri: artifactUri(id),
    name: typeof name === 'string' ? name : id,
    mimeType: mime_type,
    ...(typeof size === 'number' && { size }),
  } satisfies ResourceLink;
}

const ARTIFACTS = 'harn://artifacts/';
export function artifactUri(id: string): string {
  return `${ARTIFACTS}${id}`;
}
export function artifactIn(uri: unknown): string | undefined {
  return typeof uri === 'string' && uri.startsWith(ARTIFACTS) ? uri.slice(ARTIFACTS.length) : undefined;
}

/** A question for a value, as a form with one field; with its own schema where a form can have that. */
export function toForm({ question, schema }: AskRecord): JsonObject {
  const fits = schema !== null && schema.type === 'object';
  const one = schema !== null && typeof schema.type === 'string' ? schema : TEXT;
  return {
    message: visibleText(question),
    requestedSchema: fits
      ? (schema as JsonObject)
      : object({ value: { ...(one as JsonObject), title: 'Answer' } }, ['value']),
  };
}

export function fromForm({ schema }: AskRecord, content: JsonObject): Json {
  return schema !== null && schema.type === 'object' ? content : (content.value ?? null);
}
