/**
 * Reduces events to resources: the only source of projections, live and on rebuild. Pure. Events carry the whole resource that they
 * create or change; counts are computed here.
 */

import type { AskRecord } from '../../model/asks.ts';
import { type CoreEvent, type EventDraft, isEventKind, type LeftOut, leaveOut } from '../../model/events.ts';
import type { EventKind, EventPayloads } from '../../model/payloads.ts';
import type { Message, Pointer, Quota, Session, Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { isTerminal } from '../../model/words.ts';
import type { Change, Projector, Row } from '../../ports/index.ts';
import { type Lane, type Owner, type Run, type ScopedQuotas, scopeKey, type Taint, type Tally } from './rows.ts';

type Get = <T extends Row>(object: string, id: string) => T | undefined;

export const projector: Projector = {
  touches: (event) => projectionOf(event)?.touches?.(event) ?? NOTHING,
  apply: (event, get) => {
    if (event.replayed && !REPEATED_EVENTS.test(event.event)) return NO_CHANGE;
    return projectionOf(event)?.apply(event, get) ?? NO_CHANGE;
  },
};

interface Projection<Draft, Written> {
  /** Rows that `apply` reads. */
  touches?(event: Draft): readonly Pointer[];
  apply(event: Written, get: Get): readonly Change[];
}

function projectionOf({ event }: Pick<EventDraft, 'event'>): Projection<EventDraft, CoreEvent> | undefined {
  const row = isEventKind(event) ? PROJECTIONS[event] : undefined;
  // A row takes events of its own kind only, and this one was found by the kind of the event it will be given.
  return row && 'apply' in row ? (row as Projection<EventDraft, CoreEvent>) : undefined;
}

/** A replay has its own task and questions; the other events it repeats create nothing. */
const REPEATED_EVENTS = /^(task\.|user\.cancel_requested$|vendor\.tollbridge\.(ask_|recovered$))/;

const messageAdded: Projection<EventDraft<Spoken>, CoreEvent<Spoken>> = {
  touches(event) {
    const message = messageIn(event);
    return message ? [...one('tally', event.session_id), { object: 'message', id: message.id }] : NOTHING;
  },
  apply: appended,
};
const threadChanged: Projection<EventDraft, CoreEvent> = {
  touches: ({ session_id }) => one('tally', session_id),
  apply: (event, get) => [put(count(event, get, (tally) => tally))],
};
const taskMoved = { apply: (event: CoreEvent<Moved>) => [put(snapshot(event))] };
const taskEnded: Projection<EventDraft<Ending>, CoreEvent<Ending>> = {
  touches: ({ session_id, payload }) => [
    ...one('tally', session_id),
    ...(payload.released ?? NO_NAMES).map((id) => ({ object: 'quota', id })),
  ],
  apply: ended,
};
const touchesRun = ({ task_id }: EventDraft) => one('run', task_id);
const touchesAsk = ({
  task_id,
  payload,
}: EventDraft<'vendor.tollbridge.ask_closed' | 'vendor.tollbridge.ask_used'>) => [
  ...one('run', task_id),
  { object: 'ask', id: payload.ask_id },
];
const artifactKept = { apply: keptArtifact };
const branchKept = {
  apply: ({ payload, created_at }: CoreEvent<BranchKind>) => [put({ ...payload.branch, updated_at: created_at })],
};
const resourceKept: Projection<EventDraft<Declared>, CoreEvent<Declared>> = {
  touches: ({ resource, payload }) => touchesScope(resource, payload.resource),
  apply: (event, get) => [...carried(event), ...scoped(event, event.payload.resource, get)],
};

type Spoken = 'user.message' | 'agent.message';
type Ending = 'task.completed' | 'task.failed' | 'task.canceled';
type Moved =
  | 'task.submitted'
  | 'task.started'
  | 'task.input_required'
  | 'task.auth_required'
  | 'task.status_changed'
  | Ending;
type BranchKind = 'branch.created' | 'branch.updated' | 'branch.merged' | 'branch.abandoned';
type Declared = 'vendor.tollbridge.resource_created' | 'vendor.tollbridge.resource_updated';
type ArtifactKind = 'artifact.created' | 'artifact.updated' | 'artifact.linked' | 'artifact.redacted';

/** What each kind of event changes. */
const PROJECTIONS: { readonly [K in EventKind]: Projection<EventDraft<K>, CoreEvent<K>> | LeftOut } = {
  'session.created': {
    touches: ({ payload }) => one('taint', payload.session.parent_session_id),
    apply(event, get) {
      const { session } = event.payload;
      const at = event.created_at;
      // A fork begins with its parent's taint.
      const inherited = session.parent_session_id && get<Taint>('taint', session.parent_session_id);
      const taint = inherited && { ...inherited, id: session.id, created_at: at, updated_at: at };
      const begun = [put(begunSession(event)), ...ownedBy(event, session.id)];
      return taint ? [...begun, put(taint)] : begun;
    },
  },
  'session.closed': {
    apply: ({ payload, created_at }) => [put({ ...payload.session, updated_at: created_at })],
  },
  'session.truncated': { touches: ({ session_id }) => one('tally', session_id), apply: truncated },
  'session.compacted': {
    touches: ({ session_id }) => one('tally', session_id),
    apply: (event, get) => [
      put(count(event, get, (tally) => ({ ...tally, compacted_through: event.payload.through_message_id }))),
    ],
  },
  'session.thread_forked': threadChanged,
  'session.thread_merged': threadChanged,
  'user.message': messageAdded,
  'agent.message': messageAdded,
  'user.cancel_requested': {
    touches: touchesRun,
    apply: (event, get) => changeRun(event, get, (run) => ({ ...run, cancel_requested: true })),
  },
  'task.submitted': { touches: ({ session_id }) => one('tally', session_id), apply: submitted },
  'task.started': {
    touches: ({ task_id, session_id }) => [...one('run', task_id), ...one('tally', session_id)],
    apply: started,
  },
  'task.input_required': taskMoved,
  'task.auth_required': taskMoved,
  'task.status_changed': taskMoved,
  'task.completed': taskEnded,
  'task.failed': taskEnded,
  'task.canceled': taskEnded,
  'artifact.created': artifactKept,
  'artifact.updated': artifactKept,
  'artifact.linked': artifactKept,
  'artifact.redacted': artifactKept,
  'branch.created': branchKept,
  'branch.updated': branchKept,
  'branch.merged': branchKept,
  'branch.abandoned': branchKept,
  'vendor.tollbridge.recovered': {
    touches: touchesRun,
    apply: (event, get) => changeRun(event, get, (run) => takenOver(run, event.payload.instance)),
  },
  'vendor.tollbridge.ask_opened': { touches: touchesRun, apply: askOpened },
  'vendor.tollbridge.ask_closed': { touches: touchesAsk, apply: askClosed },
  'vendor.tollbridge.ask_used': { touches: touchesAsk, apply: askUsed },
  'vendor.tollbridge.tainted': {
    apply: ({ session_id: id, payload, created_at }) =>
      id ? [put({ ...fresh('taint', id, created_at), from: payload })] : NO_CHANGE,
  },
  'vendor.tollbridge.resource_created': resourceKept,
  'vendor.tollbridge.resource_updated': resourceKept,
  'vendor.tollbridge.resource_deleted': {
    touches: ({ resource, payload }) => touchesScope(resource, payload),
    apply: (event, get) => [
      { drop: { object: event.resource.object, id: event.resource.id } },
      ...scoped(event, event.payload, get),
    ],
  },
  'vendor.tollbridge.quota_used': {
    touches: ({ payload, task_id }) => [
      { object: 'quota', id: payload.quota_id },
      ...(payload.timed_until ? one('run', task_id) : NOTHING),
    ],
    apply: quotaUsed,
  },
  'vendor.tollbridge.plan': {
    touches: ({ task_id }) => one('task', task_id),
    apply({ task_id, payload, created_at }, get) {
      const task = task_id ? get<Task>('task', task_id) : undefined;
      if (!task) return NO_CHANGE;
      return [put({ ...task, updated_at: created_at, metadata: { ...task.metadata, plan: payload.entries } })];
    },
  },
  'vendor.tollbridge.bound': {
    apply({ payload: { protocol, scope, wire_id, to }, created_at }) {
      const row = fresh('binding', bindingId(protocol, scope, wire_id), created_at);
      return [put({ ...row, protocol, scope, wire_id, to })];
    },
  },
  ...leaveOut(
    'a fact of the work: readers find it in the stream of its task',
    'agent.reasoning_summary agent.tool_use agent.tool_result agent.mcp_tool_use agent.handoff agent.memory_read agent.memory_write span.started span.updated span.completed span.failed tool.requested tool.approval_required tool.approved tool.denied tool.completed tool.failed vendor.tollbridge.message_delta vendor.tollbridge.usage vendor.tollbridge.side_effect vendor.tollbridge.checkpoint vendor.tollbridge.note vendor.tollbridge.remote_decided vendor.tollbridge.alarm',
  ),
  ...leaveOut(
    'the row changes by another event of the same commit',
    'user.input_submitted user.tool_confirmation session.message_appended session.replayed receipt.issued replay.started replay.event_replayed replay.completed replay.failed vendor.tollbridge.quota_warned',
  ),
  ...leaveOut(
    'a record for auditors: it changes no resource',
    'connector.delivery_received connector.delivery_deduped connector.normalized connector.task_submitted connector.failed receipt.verified receipt.verification_failed vendor.tollbridge.decided vendor.tollbridge.answer_refused vendor.tollbridge.login_failed vendor.tollbridge.policy_loaded vendor.tollbridge.config_loaded vendor.tollbridge.tree_head vendor.tollbridge.passthrough vendor.tollbridge.frame_refused',
  ),
};

const NOTHING: readonly Pointer[] = [];
const NO_CHANGE: readonly Change[] = [];
const NO_NAMES: readonly string[] = [];

function one(object: string, id: string | null | undefined): readonly Pointer[] {
  return id ? [{ object, id }] : NOTHING;
}

// ---- Tasks ----

function snapshot(event: CoreEvent<Moved>): Task {
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

/** The same for a session opened in the commit. */
export function sessionBegunIn(events: readonly CoreEvent[], id: string): Session | undefined {
  for (const event of events) {
    if (event.event === 'session.created' && event.resource.id === id) return begunSession(event);
  }
  return undefined;
}

function submitted(event: CoreEvent<'task.submitted'>, get: Get): readonly Change[] {
  const task = snapshot(event);
  const run: Run = {
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

function servedIn({ served }: EventPayloads['task.submitted']): Pick<Run, 'served_by' | 'away_ms'> {
  if (!served) return {};
  return { served_by: served.by, ...(served.away_ms !== undefined && { away_ms: served.away_ms }) };
}

/** Work outside the gateway runs in no process of ours; only the process that answers for it changes. */
function takenOver(run: Run, instance: string | null): Run {
  if (run.agent !== 'none') return { ...run, instance };
  return instance === null ? run : { ...run, served_by: instance };
}

/** Work done outside the gateway, or repeated by a replay, does not occupy the session's lane. */
function takesLane({ agent }: Run): boolean {
  return agent !== 'none' && agent !== 'replay';
}

/** A session without running or waiting tasks has no lane. */
function inLane(tally: Tally, change: (lane: Lane) => Lane): Tally {
  const next = change(tally.lane ?? FREE);
  return { ...tally, lane: next.active || next.waiting.length > 0 ? next : null };
}
const FREE: Lane = { active: null, waiting: [] };

function started(event: CoreEvent<'task.started'>, get: Get): readonly Change[] {
  const task = snapshot(event);
  const instance = event.payload.instance ?? null;
  const changes = [put(task), ...changeRun(event, get, (run) => ({ ...run, instance }))];
  if (event.payload.lane !== true) return changes;
  const taken = ({ waiting }: Lane) => ({ active: task.id, waiting: waiting.filter((id) => id !== task.id) });
  return [...changes, put(count(event, get, (tally) => inLane(tally, taken)))];
}

function ended(event: CoreEvent<Ending>, get: Get): readonly Change[] {
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

function changeRun(event: CoreEvent, get: Get, change: (run: Run) => Run): Change[] {
  const run = event.task_id ? get<Run>('run', event.task_id) : undefined;
  return run ? [put({ ...change(run), updated_at: event.created_at })] : [];
}

// ---- Asks: the record people see, and the run's short list of open questions ----

function askOpened(event: CoreEvent<'vendor.tollbridge.ask_opened'>, get: Get): readonly Change[] {
  const { ask } = event.payload;
  const waiting = { id: ask.id, kind: ask.kind, key: askKey(ask), digest: ask.digest, state: ask.state };
  return [
    put({ ...ask, created_at: event.created_at, updated_at: event.created_at }),
    ...changeRun(event, get, (run) => ({ ...run, asks: [...run.asks, waiting] })),
  ];
}

function askClosed(event: CoreEvent<'vendor.tollbridge.ask_closed'>, get: Get): readonly Change[] {
  const closed = event.payload;
  const ask = get<AskRecord>('ask', closed.ask_id);
  if (!ask) return NO_CHANGE;
  return [
    put({
      ...ask,
      state: closed.state,
      answered_by: closed.by,
      answered_at: closed.at,
      answer: closed.answer ?? null,
      reason: closed.reason ?? ask.reason,
      updated_at: event.created_at,
    }),
    ...changeRun(event, get, (run) => ({
      ...run,
      asks: run.asks.map((a) => (a.id === closed.ask_id ? { ...a, state: closed.state } : a)),
    })),
  ];
}

function askUsed(event: CoreEvent<'vendor.tollbridge.ask_used'>, get: Get): readonly Change[] {
  const id = event.payload.ask_id;
  const ask = get<AskRecord>('ask', id);
  return [
    ...(ask ? [put({ ...ask, used_at: event.created_at, updated_at: event.created_at })] : []),
    ...changeRun(event, get, (run) => ({ ...run, asks: run.asks.filter((a) => a.id !== id) })),
  ];
}

/** Asking again with the same key is the same question. */
export function askKey(ask: Pick<AskRecord, 'tool_call_id' | 'metadata'>): string {
  return ask.tool_call_id ?? text(ask.metadata.key) ?? '';
}

// ---- Sessions ----

function begunSession(event: CoreEvent<'session.created'>): Session {
  const { session } = event.payload;
  return { ...session, updated_at: event.created_at };
}

/** The principal that opened it, or on whose behalf an agent did. */
function ownedBy({ actor, metadata, created_at }: CoreEvent, id: string): readonly Change[] {
  const owner_id = text(metadata.owner) ?? actor;
  return owner_id ? [put<Owner>({ ...fresh('owner', id, created_at), owner_id })] : NO_CHANGE;
}

function count(event: CoreEvent, get: Get, change: (tally: Tally) => Tally): Tally {
  const id = event.session_id ?? event.resource.id;
  const tally = get<Tally>('tally', id) ?? {
    messages: 0,
    tip_message_id: null,
    tip_at: null,
    open_tasks: 0,
    compacted_through: null,
    lane: null,
    ...fresh('tally', id, event.created_at),
  };
  return { ...change(tally), updated_at: event.created_at };
}

/** The message an event adds to the transcript, if it is one. */
function messageIn(event: Pick<EventDraft<Spoken>, 'payload'>): Message | undefined {
  const { message } = event.payload;
  return typeof message?.id === 'string' && Array.isArray(message.parts) ? message : undefined;
}

/** A message repeated under its own id replaces that message. */
function appended(event: CoreEvent<Spoken>, get: Get): readonly Change[] {
  const message = messageIn(event);
  if (!message) return NO_CHANGE;
  const row = { ...message, object: 'message' as const, updated_at: event.created_at };
  const before = get<Message & Row>('message', message.id);
  if (before) return [put({ ...row, created_at: before.created_at })];
  const tally = count(event, get, (t) => ({
    ...t,
    messages: t.messages + 1,
    tip_message_id: message.id,
    tip_at: messageTime(message, event, t.tip_at),
  }));
  return [put({ ...row, created_at: tally.tip_at ?? event.created_at }), put(tally)];
}

/** The message's claimed time, unless it is in the future or before the previous message. */
function messageTime(message: Message, event: CoreEvent, after: string | null): string {
  const now = readTime(event.created_at);
  const claimed = readClaim(message.created_at);
  const at = Number.isNaN(claimed) ? now : Math.min(claimed, now);
  return spellTime(after === null ? at : Math.max(at, Date.parse(after) + 1));
}

const readTime = rememberingLast(Date.parse);
const readClaim = rememberingLast(Date.parse);
const spellTime = rememberingLast((ms: number) => new Date(ms).toISOString());

/** Many messages are written in one commit with one time: it is parsed and formatted once. */
function rememberingLast<A, B>(work: (input: A) => B): (input: A) => B {
  let last: { readonly input: A; readonly made: B } | undefined;
  return (input) => {
    if (last?.input !== input) last = { input, made: work(input) };
    return last.made;
  };
}

function truncated(event: CoreEvent<'session.truncated'>, get: Get): readonly Change[] {
  const { removed, kept_turn_count: messages, new_tip_turn_id: tip_message_id } = event.payload;
  const tally = count(event, get, (t) => ({ ...t, messages, tip_message_id }));
  return [put(tally), ...removed.map((id): Change => ({ drop: { object: 'message', id } }))];
}

// ---- The rest ----

function keptArtifact(event: CoreEvent<ArtifactKind>): readonly Change[] {
  const { artifact, after_end } = event.payload;
  if (!artifact) return NO_CHANGE;
  // After the end of its task no receipt covers it.
  const late = after_end === true && { receipt_id: null };
  const kept = put({ ...artifact, object: 'artifact', updated_at: event.created_at, ...late });
  // An artifact in a session belongs to that session's owner.
  const alone = event.event === 'artifact.created' && !artifact.session_id && !artifact.task_id;
  return alone ? [kept, ...ownedBy(event, artifact.id)] : [kept];
}

function carried({ payload, created_at }: CoreEvent<Declared>): readonly Change[] {
  // Core checked the resource against the schema of its kind before it wrote the event.
  return [put({ ...(payload.resource as JsonObject & Row), updated_at: created_at })];
}

function quotaUsed(event: CoreEvent<'vendor.tollbridge.quota_used'>, get: Get): readonly Change[] {
  const { quota_id, usage, reset_at = null, minute_ends_at, timed_until } = event.payload;
  const runs = timed_until ? changeRun(event, get, (run) => ({ ...run, timed_until })) : NO_CHANGE;
  const quota = get<Quota & Row>('quota', quota_id);
  if (!quota) return runs;
  const counted = { ...quota, usage, reset_at, updated_at: event.created_at };
  return [put(minute_ends_at ? { ...counted, minute_ends_at } : counted), ...runs];
}

function touchesScope({ object }: Pointer, quota: JsonObject): readonly Pointer[] {
  return object === 'quota' ? [{ object: 'scoped_quotas', id: quotaScope(quota) }] : NOTHING;
}

/** The key of the limits a declared quota belongs to. */
function quotaScope({ tenant_id }: JsonObject): string {
  return scopeKey(typeof tenant_id === 'string' ? tenant_id : undefined);
}

/** Quotas of a tenant or of the installation apply without being named, so they are indexed by owner. */
function scoped({ resource, created_at }: CoreEvent, quota: JsonObject, get: Get): readonly Change[] {
  if (resource.object !== 'quota') return NO_CHANGE;
  const key = quotaScope(quota);
  const { scope } = quota;
  const row = get<ScopedQuotas>('scoped_quotas', key);
  const others = (row?.quotas ?? []).filter(({ id }) => id !== resource.id);
  const holds = scope === 'tenant' || scope === 'organization';
  if (!row && !holds) return NO_CHANGE;
  const quotas = holds ? [...others, { id: resource.id, scope }] : others;
  if (quotas.length === 0) return [{ drop: { object: 'scoped_quotas', id: key } }];
  return [
    put({
      ...fresh('scoped_quotas', key, row?.created_at ?? created_at),
      updated_at: created_at,
      quotas,
    } as ScopedQuotas),
  ];
}

export function bindingId(protocol: string, scope: string, wireId: string): string {
  return JSON.stringify([protocol, scope, wireId]);
}

function fresh<const O extends string>(object: O, id: string, at: string) {
  return { id, object, created_at: at, updated_at: at };
}

function put<T extends Row>(row: T): Change {
  return { put: row };
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** True when an event ends its task, whatever its payload says. */
export function endsTask(event: CoreEvent): boolean {
  return (
    (event.event === 'task.completed' || event.event === 'task.failed' || event.event === 'task.canceled') &&
    isTerminal(asText(event.payload.to))
  );
}
