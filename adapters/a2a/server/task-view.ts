/**
 * A task as a peer sees it, folded from its events: the same fold yields the snapshot and the stream, so the two cannot
 * disagree. Private details (persona, workspace, decisions, calls) are left out unless they were requested.
 */

import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type StreamResponse,
  type Task,
  type TaskStatus,
} from '@a2a-js/sdk';
import { ACTIVITY, EXTENSIONS } from '../../../mappings/a2a.ts';
import {
  type ArtifactPayload,
  type AskOpenedPayload,
  type AskRecord,
  asText,
  type CoreEvent,
  type DeltaPayload,
  type EndPayload,
  isTerminal,
  type Json,
  type JsonObject,
  type MessagePayload,
  type Part as OurPart,
  type Task as OurTask,
  type TransitionPayload,
} from '../../../src/index.ts';
import { type TraceMembers, taskTrace } from '../../../src/transport/outbound/trace-context.ts';
import { type Content, filePart, textPart, toWireParts, toWireState, wireMessage } from '../translate.ts';
import { toWireAnswer, toWireQuestion } from './questions.ts';

export type Update = NonNullable<StreamResponse['payload']>;

export interface ProjectionOptions {
  /** The peer's context id. */
  readonly contextId: string;
  /** The reader also requested calls, plans and costs. */
  readonly activity?: boolean;
  /** No stream is open: only the state of the task matters, and no updates are built. */
  readonly quiet?: boolean;
  /** The URL of a file that is not sent inside a message. */
  link(artifactId: string): string;
}

export interface Projection {
  /** The artifact id, if this event is about a file whose bytes are needed. */
  wants(event: CoreEvent): string | undefined;
  /** Applies an event; returns the updates for a stream. */
  take(event: CoreEvent, content?: Content): readonly Update[];
  snapshot(view?: { readonly historyLength?: number | undefined; readonly artifacts?: boolean }): Task;
  /** The canonical status; undefined before the task was submitted. */
  readonly status: string | undefined;
  readonly ended: boolean;
  /** The task needs an answer before it continues. */
  readonly waiting: boolean;
  readonly cursor: string | undefined;
  /** The trace the task belongs to. */
  readonly trace: TraceMembers;
  /** The whole answer, when the agent reports that it was a message and no work. */
  readonly reply: Message | undefined;
}

/** Artifacts larger than this are linked. */
export const INLINE_BYTES = 256 * 1024;
const NONE: readonly Update[] = [];

export function createProjection(options: ProjectionOptions): Projection {
  const { contextId, activity = false, quiet = false, link } = options;
  let task: OurTask | undefined;
  let status: TaskStatus | undefined;
  let answered = false;
  const asks = new Map<string, AskRecord>();
  const history: Message[] = [];
  const artifacts = new Map<string, Artifact>();
  const files = new Map<string, Part>();
  /** Texts still being streamed. */
  const writing = new Map<string, string>();
  const record: Record<string, string> = {};

  const taskIds = () => ({ taskId: task?.id ?? '', contextId });
  const fileOf = (id: string) => files.get(id) ?? filePart({ mime_type: '', metadata: {} }, { url: link(id) });

  function statusUpdate(metadata?: JsonObject): Update {
    return { $case: 'statusUpdate', value: { ...taskIds(), status, metadata } };
  }

  function artifactUpdate(artifact: Artifact, append: boolean, lastChunk: boolean): Update {
    return { $case: 'artifactUpdate', value: { ...taskIds(), artifact, append, lastChunk, metadata: undefined } };
  }

  function moveTo(event: CoreEvent, message?: Message): readonly Update[] {
    status = { state: toWireState(task?.status ?? '', task), message, timestamp: event.created_at };
    return quiet ? NONE : [statusUpdate()];
  }

  function question(event: CoreEvent): Message | undefined {
    if (asks.size === 0) return undefined;
    return toWireQuestion([...asks.values()], { messageId: `question-${event.id}`, ...taskIds() });
  }

  function transition(event: CoreEvent): readonly Update[] {
    const payload = event.payload as unknown as TransitionPayload;
    task = payload.task;
    switch (event.event) {
      case 'task.submitted':
        opened(payload.task);
        moveTo(event);
        return quiet ? NONE : [{ $case: 'task', value: snapshot() }];
      case 'task.input_required':
      case 'task.auth_required': {
        const asked = question(event);
        if (asked) history.push(asked);
        return moveTo(event, asked);
      }
      case 'task.completed':
      case 'task.failed':
      case 'task.canceled':
        return end(event);
      default:
        return moveTo(event);
    }
  }

  /** The opening message precedes the task: only now is its sender's id for it known. */
  function opened({ id, metadata }: OurTask): void {
    const first = history.at(-1);
    const { a2a } = metadata as { a2a?: { message_id?: string; message_metadata?: JsonObject } };
    if (!first || first.role !== Role.ROLE_USER) return;
    history[history.length - 1] = {
      ...first,
      taskId: id,
      messageId: a2a?.message_id ?? first.messageId,
      metadata: a2a?.message_metadata ?? first.metadata,
    };
  }

  function end(event: CoreEvent): readonly Update[] {
    const { task: ended, outcome } = event.payload as unknown as EndPayload;
    const closing = quiet ? [] : [...writing.keys()].map((id) => close(id));
    writing.clear();
    if (ended.receipt_id) record.receiptId = ended.receipt_id;
    if (ended.outcome_id) record.outcomeId = ended.outcome_id;
    if (outcome?.metrics?.reply === 'message') {
      projection.reply = history.findLast(({ role }) => role === Role.ROLE_AGENT);
    }
    const words = ended.failure?.message || outcome?.summary;
    const about = ended.failure ? { [EXTENSIONS.record]: { code: ended.failure.code } } : undefined;
    const message = words
      ? wireMessage({ messageId: `end-${event.id}`, parts: [textPart(words)], metadata: about, ...taskIds() })
      : undefined;
    moveTo(event, message);
    return quiet ? NONE : [...closing, statusUpdate({ [EXTENSIONS.record]: { ...record } })];
  }

  /** The end of a streamed text: it only marks the text as complete. */
  function close(id: string): Update {
    return artifactUpdate(response(id, [textPart('')]), true, true);
  }

  function delta(payload: DeltaPayload): readonly Update[] {
    const { message_id: id, text } = payload;
    if (text === '') return NONE;
    const before = writing.get(id);
    const whole = (before ?? '') + text;
    writing.set(id, whole);
    artifacts.set(id, response(id, [textPart(whole)]));
    if (quiet) return NONE;
    return [artifactUpdate(response(id, [textPart(text)]), before !== undefined, false)];
  }

  function message({ message: said }: MessagePayload): readonly Update[] {
    if (said.role === 'system' || said.role === 'tool') return NONE;
    const parts = toWireParts(said.parts, fileOf);
    if (parts.length === 0) return NONE;
    const theirs = said.role === 'user';
    const { a2a } = said.metadata as { a2a?: { message_id?: string; message_metadata?: JsonObject } };
    const ids = { messageId: a2a?.message_id ?? said.id, metadata: a2a?.message_metadata, ...taskIds() };
    history.push(wireMessage({ parts, ...ids, taskId: said.task_id ?? ids.taskId }, theirs ? 'user' : 'agent'));
    return theirs ? NONE : whole(said.id, parts);
  }

  function whole(id: string, parts: Part[]): readonly Update[] {
    const streamed = writing.get(id);
    writing.delete(id);
    const artifact = response(id, parts);
    artifacts.set(id, artifact);
    if (quiet) return NONE;
    const [first] = parts;
    const same = first?.content?.$case === 'text' && first.content.value === streamed;
    if (!same) return [artifactUpdate(artifact, false, true)];
    return parts.length === 1 ? [close(id)] : [artifactUpdate(response(id, parts.slice(1)), true, true)];
  }

  function file(event: CoreEvent, content: Content): readonly Update[] {
    const { artifact } = event.payload as unknown as ArtifactPayload;
    if (artifact.visibility !== 'public') return activity && isInside(artifact) ? [kept(event, content)] : NONE;
    const part = filePart(artifact, artifact.uri && !content.bytes ? { url: artifact.uri } : content);
    // Content that was stored separately only because of its length belongs to its message.
    if (artifact.metadata.spilled) {
      files.set(artifact.id, (content.bytes && spilledPart(content.bytes)) ?? part);
      return NONE;
    }
    files.set(artifact.id, part);
    const name = typeof artifact.metadata.name === 'string' ? artifact.metadata.name : artifact.kind;
    const about = { kind: artifact.kind, ...(artifact.sha256 && { sha256: artifact.sha256 }) };
    const made: Artifact = {
      artifactId: artifact.id,
      name,
      description: '',
      parts: [part],
      metadata: { [EXTENSIONS.record]: about },
      extensions: [],
    };
    artifacts.set(artifact.id, made);
    return [artifactUpdate(made, false, true)];
  }

  /** A question was opened or closed while the task was already waiting. */
  function asking(event: CoreEvent): readonly Update[] {
    const blocked = task?.status === 'AUTH_REQUIRED' || task?.status === 'INPUT_REQUIRED';
    return blocked && asks.size > 0 ? moveTo(event, question(event)) : NONE;
  }

  function take(event: CoreEvent, content: Content): readonly Update[] {
    const { payload } = event;
    switch (event.event) {
      case 'user.message':
        answered = payload.kind === 'input' || payload.kind === 'tool_confirmation';
        return message(payload as unknown as MessagePayload);
      case 'agent.message':
        return message(payload as unknown as MessagePayload);
      case 'vendor.tollbridge.message_delta':
        return delta(payload as unknown as DeltaPayload);
      case 'artifact.created':
        return file(event, content);
      case 'vendor.tollbridge.ask_opened': {
        const { ask } = payload as unknown as AskOpenedPayload;
        asks.set(ask.id, ask);
        return asking(event);
      }
      case 'user.input_submitted':
      case 'user.tool_confirmation':
        // The history already contains the message that carried the answer.
        if (!answered) history.push(toWireAnswer(asks.get(asText(payload.ask_id)), payload, taskIds()));
        answered = false;
        return NONE;
      case 'vendor.tollbridge.ask_closed':
        asks.delete(asText(payload.ask_id));
        return asking(event);
      default:
        if (event.event.startsWith('task.') && payload.task) return transition(event);
        return activity && ACTIVITY.includes(event.event) ? [rendered(event)] : NONE;
    }
  }

  function rendered({ event, id, created_at, payload }: CoreEvent): Update {
    return statusUpdate({ [EXTENSIONS.activity]: { event, cursor: id, at: created_at, payload } });
  }

  /** A file the agent did not publish, such as a change it made: no result, but part of its activity. */
  function kept(event: CoreEvent, { bytes }: Content): Update {
    const { artifact } = event.payload as unknown as ArtifactPayload;
    const { id, kind, mime_type, sha256, metadata } = artifact;
    const about = { id, kind, mime_type, sha256, name: metadata.name ?? null } as JsonObject;
    const inside = bytes && mime_type === 'application/json' ? jsonOf(bytes) : undefined;
    return rendered({ ...event, payload: { artifact: about, ...(inside !== undefined && { content: inside }) } });
  }

  function snapshot({ historyLength, artifacts: shown = true }: Parameters<Projection['snapshot']>[0] = {}): Task {
    const kept = historyLength === undefined ? history : historyLength === 0 ? [] : history.slice(-historyLength);
    return {
      id: task?.id ?? '',
      contextId,
      status,
      artifacts: shown ? [...artifacts.values()] : [],
      history: [...kept],
      metadata: { [EXTENSIONS.record]: { sessionId: task?.session_id ?? null, ...record } },
    };
  }

  // Updated with each event: computing these members on access costs every send several microseconds.
  const projection: Writable<Projection> = {
    status: undefined,
    ended: false,
    waiting: false,
    cursor: undefined,
    get trace() {
      return task ? taskTrace(task) : {};
    },
    reply: undefined,
    wants({ event, payload }) {
      if (event !== 'artifact.created') return undefined;
      const { artifact } = payload as unknown as ArtifactPayload;
      const small = typeof artifact.metadata.bytes === 'number' && artifact.metadata.bytes <= INLINE_BYTES;
      const shown = artifact.visibility === 'public' || (activity && isInside(artifact));
      return shown && small ? artifact.id : undefined;
    },
    take(event, content) {
      const { artifact } = event.payload as { artifact?: { id?: string } };
      const rendered = take(event, content ?? (artifact?.id ? { url: link(artifact.id) } : {}));
      const { status } = task ?? {};
      projection.status = status;
      projection.ended = status !== undefined && isTerminal(status);
      projection.waiting = (status === 'AUTH_REQUIRED' || status === 'INPUT_REQUIRED') && asks.size > 0;
      projection.cursor = event.id;
      return rendered;
    },
    snapshot,
  };
  return projection;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** An artifact the agent did not publish. Content stored separately only because of its length is not a file. */
function isInside({ visibility, metadata }: ArtifactPayload['artifact']): boolean {
  return visibility === 'internal' && !metadata.spilled;
}

/** A part of a message that was stored separately: its bytes are the part itself. */
function spilledPart(bytes: Uint8Array): Part | undefined {
  const part = jsonOf(bytes);
  return part === undefined ? undefined : toWireParts([part as unknown as OurPart], () => undefined)[0];
}

function jsonOf(bytes: Uint8Array): Json | undefined {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as Json;
  } catch {
    return undefined;
  }
}

function response(id: string, parts: Part[]): Artifact {
  return { artifactId: id, name: 'response', description: '', parts, metadata: undefined, extensions: [] };
}
