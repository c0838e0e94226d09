/**
 * Long work of the fixture server, as the tasks extension of MCP has it: the server decides that a call becomes a task,
 * the caller looks how it is, answers what it asks and may stop it. Kept in memory.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { anything, type Call, type Loose, lacking, type Question, rpcError, TASKS } from './mcp-fixture-asking.ts';

interface Task {
  readonly id: string;
  readonly created: string;
  readonly stop: AbortController;
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  updated: string;
  /** What `tasks/get` shows beside the state. */
  outcome: Loose;
  open: Record<string, Question>;
  answers: Loose;
  answered: () => void;
}

export interface Working {
  wait(ms: number): Promise<void>;
  ask(questions: Readonly<Record<string, Question>>): Promise<Loose>;
}

const tasks = new Map<string, Task>();

export function takesTasks(call: Call): boolean {
  if (call.era === 'legacy') return call.params.task !== undefined;
  return call.abilities.extensions?.[TASKS] !== undefined;
}

export function requireTasks(call: Call): void {
  if (!takesTasks(call)) throw lacking({ extensions: { [TASKS]: {} } });
}

export function startTask(work: (working: Working) => Promise<Loose>): Loose {
  const now = new Date().toISOString();
  const task: Task = {
    id: randomUUID(),
    created: now,
    updated: now,
    stop: new AbortController(),
    status: 'working',
    outcome: {},
    open: {},
    answers: {},
    answered() {},
  };
  tasks.set(task.id, task);
  const working: Working = {
    wait: (ms) => pause(ms, undefined, { signal: task.stop.signal }),
    ask: (questions) =>
      new Promise((resolve) => {
        task.open = { ...questions };
        task.answered = () => {
          become(task, 'working');
          resolve(task.answers);
        };
        become(task, 'input_required');
      }),
  };
  work(working).then(
    (result) => become(task, 'completed', { result }),
    (cause) => {
      if (task.stop.signal.aborted) become(task, 'cancelled');
      else become(task, 'failed', { error: { code: cause.code ?? -32603, message: cause.message } });
    },
  );
  return { resultType: 'task', ...stateOf(task) };
}

/** The same as 2025-11-25 has it: the caller decides, and asks for the result with a request that waits. */
export function olderTask({ resultType, ...state }: Loose): Loose {
  return resultType === 'task' ? { task: olderState(state) } : state;
}

function olderState({ ttlMs, pollIntervalMs, ...state }: Loose): Loose {
  return { ...state, ttl: ttlMs, pollInterval: pollIntervalMs };
}

/** `tasks/get`, `tasks/result`, `tasks/cancel` of 2025-11-25. */
export async function tendOlderTask(call: Call, method: string): Promise<Loose> {
  const task = tasks.get(call.params.taskId);
  if (!task) throw rpcError(-32602, 'there is no such task');
  const ended = () => ['completed', 'failed', 'cancelled'].includes(task.status);
  if (method === 'tasks/cancel') {
    if (ended()) throw rpcError(-32602, 'it has ended');
    task.stop.abort();
    become(task, 'cancelled');
  }
  if (method !== 'tasks/result') {
    const status = task.outcome.result?.isError ? 'failed' : task.status;
    return olderState({ ...stateOf(task), status });
  }
  const _meta = { 'io.modelcontextprotocol/related-task': { taskId: task.id } };
  while (!ended()) {
    const open = Object.entries(task.open);
    if (task.status === 'input_required' && open.length > 0) {
      await Promise.all(
        open.map(async ([name, { method: asked, params }]) => {
          const said = await call.context.mcpReq.send({ method: asked, params: { ...params, _meta } }, anything);
          delete task.open[name];
          task.answers[name] = said;
        }),
      );
      task.answered();
    } else await pause(20);
  }
  if (task.outcome.error) throw rpcError(task.outcome.error.code, task.outcome.error.message);
  return { ...task.outcome.result, _meta };
}

/** `tasks/get`, `tasks/update` and `tasks/cancel`. */
export function tendTask(call: Call, method: string): Loose {
  requireTasks(call);
  const task = tasks.get(call.params.taskId);
  if (!task) throw rpcError(-32602, 'there is no such task');
  if (method === 'tasks/get') {
    const asks = task.status === 'input_required' && { inputRequests: task.open };
    return { ...stateOf(task), ...task.outcome, ...asks };
  }
  if (method === 'tasks/cancel') {
    task.stop.abort();
    if (task.status === 'input_required') become(task, 'cancelled');
    return {};
  }
  for (const [name, answer] of Object.entries(call.context.mcpReq.inputResponses ?? {})) {
    if (!(name in task.open)) continue;
    delete task.open[name];
    task.answers[name] = answer;
  }
  if (task.status === 'input_required' && Object.keys(task.open).length === 0) task.answered();
  return {};
}

function stateOf({ id, status, created, updated }: Task): Loose {
  return { taskId: id, status, createdAt: created, lastUpdatedAt: updated, ttlMs: 60_000, pollIntervalMs: 200 };
}

function become(task: Task, status: Task['status'], outcome: Loose = {}): void {
  if (['completed', 'failed', 'cancelled'].includes(task.status)) return;
  task.status = status;
  task.outcome = outcome;
  task.updated = new Date().toISOString();
}
