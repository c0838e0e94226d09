/** The lifecycle of a task, as pure steps: from a task to the next task and the one event that records it. */

import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { EndPayload, EventKind } from '../../model/payloads.ts';
import type { Failure, Pointer, Task } from '../../model/resources.ts';
import { isTerminal, mayFollow, type OutcomeState, type TaskState, type TerminalState } from '../../model/words.ts';
import type { At, CallerReference, Row } from '../../ports/index.ts';
import type { RunRow } from '../events/rows.ts';

export interface TaskStep {
  readonly task: Task;
  readonly events: readonly EventDraft[];
}

/** The location of an event inside a task. Everything that happens in a task is about the task, and part of its trace. */
export function inTask(
  task: Pick<Task, 'id' | 'session_id' | 'workspace_id'> & Partial<Pick<Task, 'metadata'>>,
): Pick<EventDraft, 'resource' | 'workspace_id' | 'session_id' | 'task_id' | 'trace_id'> {
  const { trace_id } = task.metadata ? ours({ metadata: task.metadata }) : {};
  return {
    resource: { object: 'task', id: task.id },
    workspace_id: task.workspace_id,
    session_id: task.session_id,
    task_id: task.id,
    ...(trace_id && { trace_id }),
  };
}

/** The rows that a unit reads when it asks in a task, or spends an answer. */
export function readsOf(taskId: string): Pointer[] {
  return [
    { object: 'task', id: taskId },
    { object: 'run', id: taskId },
  ];
}

/** The task as its commit sees it. Work that has ended takes no more facts, decisions or questions: its receipt is sealed. */
export function openTask(at: Pick<At, 'get'>, taskId: string): Task {
  const now = at.get<Task & Row>('task', taskId);
  if (now && !isTerminal(now.status)) return now;
  throw new Fault('conflict', `task ${taskId} already ended${now ? ` as ${now.status}` : ''}`);
}

export function openRun(at: Pick<At, 'get'>, taskId: string): { readonly now: Task; readonly run: RunRow } {
  const now = openTask(at, taskId);
  const run = at.get<RunRow>('run', taskId);
  if (!run) throw new Fault('conflict', `task ${taskId} already ended`);
  return { now, run };
}

/** Another process took the work over because this one seemed to be gone: what it decides or reports from then on does not count. */
export function requireRunBy(run: RunRow | undefined, process: string | undefined): void {
  if (process !== undefined && run?.instance !== process) throw runElsewhere();
}
export const runElsewhere = (): Fault => new Fault('conflict', 'this work is run by another process');

/** Core's own metadata of a task, under a name that clients cannot write. */
export interface Ours {
  readonly tier?: string;
  /** The highest tier its session allows. */
  readonly most?: string;
  readonly tenant_id?: string;
  /** For work that an agent started: the principal it is part of the work of. */
  readonly on_behalf_of?: string;
  readonly trace_id?: string;
  /** For a replay: the stem of its ids, and the task that an agent did, also where a replay was replayed. */
  readonly replay?: { readonly stem: string; readonly root: string };
  readonly tracestate?: string;
  readonly trace_flags?: string;
  /** The gateway that gave the work, as it claims. */
  readonly caller?: CallerReference;
  /** The task fails when one of its questions is not answered in time. */
  readonly unanswered?: 'fail';
}
export function ours(task: Pick<Task, 'metadata'>): Ours {
  return (task.metadata.tollbridge ?? {}) as Ours;
}

/** The workspace, session and id of a task, for resources it produces. */
export function taskLocation({ workspace_id, session_id, id }: Pick<Task, 'id' | 'session_id' | 'workspace_id'>) {
  return { workspace_id, session_id, task_id: id };
}

const EVENT_OF = {
  SUBMITTED: 'task.submitted',
  WORKING: 'task.started',
  INPUT_REQUIRED: 'task.input_required',
  AUTH_REQUIRED: 'task.auth_required',
  COMPLETED: 'task.completed',
  FAILED: 'task.failed',
  CANCELED: 'task.canceled',
} as const satisfies Record<TaskState, EventKind>;

export interface Move {
  readonly now: string;
  readonly actor?: string;
  readonly reason?: string;
  readonly failure?: Failure;
  /** Further members of the event's payload. */
  readonly more?: Partial<EndPayload>;
  readonly trace_id?: string;
}

/** One legal transition and its event. Anything else is a fault; a terminal task stays as it is. */
export function move(task: Task, to: TaskState, { now, actor, reason, failure, more, trace_id }: Move): TaskStep {
  if (!mayFollow(task.status, to)) {
    throw new Fault(
      isTerminal(task.status) ? 'conflict' : 'invalid_state_transition',
      isTerminal(task.status)
        ? `task ${task.id} already ended as ${task.status}`
        : `task ${task.id} is ${task.status} and cannot become ${to}`,
    );
  }
  const next: Task = {
    ...task,
    status: to,
    updated_at: now,
    ...(to === 'WORKING' && !task.started_at && { started_at: now }),
    ...(to === 'COMPLETED' && { completed_at: now }),
    ...(to === 'CANCELED' && { canceled_at: now }),
    ...(failure && { failure }),
  };
  const back = to === 'WORKING' && task.status !== 'SUBMITTED';
  const event = {
    event: back ? 'task.status_changed' : EVENT_OF[to],
    payload: { task: next, from: task.status, to, ...(reason && { reason }), ...more },
    ...inTask(task),
    ...(actor && { actor }),
    ...(trace_id && { trace_id }),
  } as EventDraft; // an end has its outcome in `more`
  return { task: next, events: [event] };
}

/** Questions under such a key ask a person to sign in at a server, which is a question of authorization although its answer is a value. */
export const SIGN_IN_KEY = 'sign_in:';

/**
 * The state that open questions put a task in, reached by legal steps: approvals before input when both are new, and always through
 * WORKING from one kind of waiting to the other.
 */
export function settle(task: Task, asks: RunRow['asks'], details: Move): TaskStep {
  const waitsFor = ({ kind, key }: RunRow['asks'][number]) => (key.startsWith(SIGN_IN_KEY) ? 'approval' : kind);
  const open = (kind: string) => asks.some((ask) => ask.state === 'open' && waitsFor(ask) === kind);
  const staysBlocked =
    (task.status === 'AUTH_REQUIRED' && open('approval')) || (task.status === 'INPUT_REQUIRED' && open('input'));
  if (staysBlocked || isTerminal(task.status) || task.status === 'SUBMITTED') return { task, events: [] };

  const working = task.status === 'WORKING' ? { task, events: [] } : move(task, 'WORKING', details);
  const wanted = open('approval') ? 'AUTH_REQUIRED' : open('input') ? 'INPUT_REQUIRED' : undefined;
  if (!wanted) return working;
  const waiting = move(working.task, wanted, details);
  return { task: waiting.task, events: [...working.events, ...waiting.events] };
}

export function outcomeState(state: TerminalState): OutcomeState {
  return state === 'COMPLETED' ? 'SUCCEEDED' : state;
}
