/** Tasks, their runs, and the lane of their session. */
import type { CoreEvent } from '../../../model/events.ts';
import type { EventPayloads } from '../../../model/payloads.ts';
import type { Quota, Task } from '../../../model/resources.ts';
import { asText } from '../../../model/values/as-text.ts';
import { isTerminal } from '../../../model/words.ts';
import type { Change, Row } from '../../../ports/index.ts';
import type { Lane, RunRow, Tally } from '../rows.ts';
import { changeRun, type Get, NO_NAMES, put } from './changes.ts';
import { count } from './sessions.ts';

export type Ending = 'task.completed' | 'task.failed' | 'task.canceled';
export type Moved =
  | 'task.submitted'
  | 'task.started'
  | 'task.input_required'
  | 'task.auth_required'
  | 'task.status_changed'
  | Ending;

export function snapshot(event: CoreEvent<Moved>): Task {
  const { task } = event.payload;
  return { ...task, updated_at: event.created_at };
}

/** The task after these events of one commit: the same row that the store has. */
export function taskAfter(events: readonly CoreEvent[], id: string): Task | undefined {
  const last = events.filter(isMove).findLast(({ task_id }) => task_id === id);
  return last && snapshot(last);
}

function isMove(event: CoreEvent): event is CoreEvent<Moved> {
  return event.event.startsWith('task.') && event.payload.task !== undefined;
}

export function submitted(event: CoreEvent<'task.submitted'>, get: Get): readonly Change[] {
  const task = snapshot(event);
  const run: RunRow = {
    id: task.id,
    object: 'run',
    created_at: event.created_at,
    updated_at: event.created_at,
    session_id: task.session_id,
    agent: event.payload.agent ?? 'none',
    instance: event.payload.instance ?? null,
    ...servedIn(event.payload),
    ...(event.payload.resumes === false && { resumes: false }),
    cancel_requested: false,
    ...(event.payload.holds && { holds: event.payload.holds }),
    asks: [],
  };
  const tally = count(event, get, (t) => {
    const more = { ...t, open_tasks: t.open_tasks + 1 };
    if (!takesLane(run)) return more;
    return inLane(more, ({ active, waiting }) => ({ active, waiting: [...waiting, task.id] }));
  });
  return [put(task), put(run), put(tally)];
}

function servedIn({ served }: EventPayloads['task.submitted']): Pick<RunRow, 'served_by' | 'away_ms'> {
  if (!served) return {};
  return { served_by: served.by, ...(served.away_ms !== undefined && { away_ms: served.away_ms }) };
}

/** Work outside the gateway runs in no process of ours; only the process that answers for it changes. */
export function takenOver(run: RunRow, instance: string | null): RunRow {
  if (run.agent !== 'none') return { ...run, instance };
  return instance === null ? run : { ...run, served_by: instance };
}

/** Work done outside the gateway, or repeated by a replay, does not occupy the session's lane. */
function takesLane({ agent }: RunRow): boolean {
  return agent !== 'none' && agent !== 'replay';
}

/** A session without running or waiting tasks has no lane. */
function inLane(tally: Tally, change: (lane: Lane) => Lane): Tally {
  const next = change(tally.lane ?? FREE);
  return { ...tally, lane: next.active || next.waiting.length > 0 ? next : null };
}
const FREE: Lane = { active: null, waiting: [] };

export function started(event: CoreEvent<'task.started'>, get: Get): readonly Change[] {
  const task = snapshot(event);
  const instance = event.payload.instance ?? null;
  const changes = [put(task), ...changeRun(event, get, (run) => ({ ...run, instance }))];
  if (event.payload.lane !== true) return changes;
  const taken = ({ waiting }: Lane) => ({ active: task.id, waiting: waiting.filter((id) => id !== task.id) });
  return [...changes, put(count(event, get, (tally) => inLane(tally, taken)))];
}

export function ended(event: CoreEvent<Ending>, get: Get): readonly Change[] {
  const task = snapshot(event);
  const { outcome } = event.payload;
  const changes: Change[] = [put(task), { drop: { object: 'run', id: task.id } }];
  if (outcome) changes.push(put({ ...outcome, updated_at: event.created_at }));
  const left = ({ active, waiting }: Lane) => ({
    active: active === task.id ? null : active,
    waiting: waiting.filter((id) => id !== task.id),
  });
  const fewer = (t: Tally) => inLane({ ...t, open_tasks: Math.max(0, t.open_tasks - 1) }, left);
  changes.push(put(count(event, get, fewer)));
  for (const id of event.payload.released ?? NO_NAMES) {
    const quota = get<Quota & Row>('quota', id);
    const left = Math.max(0, (quota?.usage.concurrency ?? 0) - 1);
    if (quota)
      changes.push(put({ ...quota, usage: { ...quota.usage, concurrency: left }, updated_at: event.created_at }));
  }
  return changes;
}

/** True when an event ends its task, whatever its payload says. */
export function endsTask(event: CoreEvent): boolean {
  return (
    (event.event === 'task.completed' || event.event === 'task.failed' || event.event === 'task.canceled') &&
    isTerminal(asText(event.payload.to))
  );
}
