/**
 * Reduces events to resources: the only source of projections, live and on rebuild. Pure. Events carry the whole resource that they
 * create or change; counts are computed here.
 */
import { asText } from '../../model/as-text.ts';
import type { AskRecord } from '../../model/asks.ts';
import type { CoreEvent, EventDraft } from '../../model/events.ts';
import type {
  ArtifactPayload,
  AskClosedPayload,
  AskOpenedPayload,
  EndPayload,
  MessagePayload,
  SessionPayload,
  TransitionPayload,
} from '../../model/payloads.ts';
import type { Message, Pointer, Quota, Session, Task } from '../../model/resources.ts';
import { isTerminal } from '../../model/words.ts';
import type { Change, Projector, Row } from '../../ports/index.ts';
import {
  type Binding,
  type Lane,
  type Owner,
  type Run,
  type ScopedQuotas,
  scopeKey,
  type Taint,
  type Tally,
} from './rows.ts';

type Get = <T extends Row>(object: string, id: string) => T | undefined;

export const projector: Projector = { touches, apply };

function touches(event: EventDraft): readonly Pointer[] {
  const { task_id: task, session_id: session, payload } = event;
  switch (event.event) {
    case 'vendor.tollbridge.message_delta': // by far the most frequent, and it changes nothing
      return NOTHING;
    case 'session.truncated':
    case 'session.compacted':
    case 'session.thread_forked':
    case 'session.thread_merged':
      return one('tally', session);
    case 'user.message':
    case 'agent.message': {
      const message = messageIn(event);
      return message ? [...one('tally', session), { object: 'message', id: message.id }] : NOTHING;
    }
    case 'task.submitted':
      return one('tally', session);
    case 'task.started':
      return [...one('run', task), ...one('tally', session)];
    case 'user.cancel_requested':
    case 'vendor.tollbridge.recovered':
    case 'vendor.tollbridge.ask_opened':
      return one('run', task);
    case 'vendor.tollbridge.ask_closed':
    case 'vendor.tollbridge.ask_used':
      return [...one('run', task), { object: 'ask', id: asText(payload.ask_id) }];
    case 'task.completed':
    case 'task.failed':
    case 'task.canceled':
      return [...one('tally', session), ...releasedIn(payload).map((id) => ({ object: 'quota', id }))];
    case 'vendor.tollbridge.resource_created':
    case 'vendor.tollbridge.resource_updated':
    case 'vendor.tollbridge.resource_deleted':
      return event.resource.object === 'quota' ? [{ object: 'scoped_quotas', id: quotaScope(payload) }] : NOTHING;
    case 'vendor.tollbridge.plan':
      return one('task', task);
    case 'vendor.tollbridge.quota_used':
      return timeBought(event)
        ? [{ object: 'quota', id: asText(payload.quota_id) }, ...one('run', task)]
        : [{ object: 'quota', id: asText(payload.quota_id) }];
    case 'session.created': {
      const { parent_session_id: parent } = (payload as unknown as Partial<SessionPayload>).session ?? {};
      return parent ? [{ object: 'taint', id: parent }] : NOTHING;
    }
    default:
      return NOTHING;
  }
}
const NOTHING: readonly Pointer[] = [];

function one(object: string, id: string | null | undefined): readonly Pointer[] {
  return id ? [{ object, id }] : NOTHING;
}

const NO_CHANGE: readonly Change[] = [];

/** A replay has its own task and questions; the other events it repeats create nothing. */
const REPEATED_EVENTS = /^(task\.|user\.cancel_requested$|vendor\.tollbridge\.(ask_|recovered$))/;

function apply(event: CoreEvent, get: Get): readonly Change[] {
  const at = event.created_at;
  if (event.replayed && !REPEATED_EVENTS.test(event.event)) return NO_CHANGE;
  switch (event.event) {
    case 'session.created': {
      const { session } = event.payload as unknown as SessionPayload;
      // A fork begins with its parent's taint.
      const inherited = session.parent_session_id && get<Taint>('taint', session.parent_session_id);
      const taint = inherited && { ...inherited, id: session.id, created_at: at, updated_at: at };
      const begun = [put(begunSession(event)), ...ownedBy(event, session.id)];
      return taint ? [...begun, put(taint)] : begun;
    }
    case 'session.closed': {
      const { session } = event.payload as unknown as SessionPayload;
      return [{ put: { ...session, updated_at: at } }];
    }
    case 'vendor.tollbridge.tainted': {
      const { session_id: id, payload } = event;
      return id ? [put({ ...fresh('taint', id, at), from: payload } as Taint)] : NO_CHANGE;
    }
    case 'session.truncated':
      return truncated(event, get);
    case 'session.thread_forked':
    case 'session.thread_merged':
      return [put(count(event, get, (tally) => tally))];
    case 'session.compacted':
      return [
        put(count(event, get, (tally) => ({ ...tally, compacted_through: text(event.payload.through_message_id) }))),
      ];
    case 'user.message':
    case 'agent.message':
      return appended(event, get);
    case 'task.submitted':
      return submitted(event, get);
    case 'task.started':
      return started(event, get);
    case 'task.input_required':
    case 'task.auth_required':
    case 'task.status_changed':
      return [put(snapshot(event))];
    case 'task.completed':
    case 'task.failed':
    case 'task.canceled':
      return ended(event, get);
    case 'vendor.tollbridge.recovered':
      return changeRun(event, get, (run) => takenOver(run, text(event.payload.instance)));
    case 'user.cancel_requested':
      return changeRun(event, get, (run) => ({ ...run, cancel_requested: true }));
    case 'vendor.tollbridge.ask_opened':
      return askOpened(event, get);
    case 'vendor.tollbridge.ask_closed':
      return askClosed(event, get);
    case 'vendor.tollbridge.ask_used':
      return askUsed(event, get);
    case 'artifact.created':
    case 'artifact.updated':
    case 'artifact.linked':
    case 'artifact.redacted': {
      const { artifact } = event.payload as unknown as Partial<ArtifactPayload>;
      if (!artifact) return NO_CHANGE;
      // After the end of its task no receipt covers it.
      const late = event.payload.after_end === true && { receipt_id: null };
      const kept = put({ ...artifact, object: 'artifact', updated_at: at, ...late });
      // An artifact in a session belongs to that session's owner.
      const alone = event.event === 'artifact.created' && !artifact.session_id && !artifact.task_id;
      return alone ? [kept, ...ownedBy(event, artifact.id)] : [kept];
    }
    case 'branch.created':
    case 'branch.updated':
    case 'branch.merged':
    case 'branch.abandoned':
      return carried(event, 'branch');
    case 'vendor.tollbridge.resource_created':
    case 'vendor.tollbridge.resource_updated':
      return [...carried(event, 'resource'), ...scoped(event, get)];
    case 'vendor.tollbridge.resource_deleted':
      return [{ drop: { object: event.resource.object, id: event.resource.id } }, ...scoped(event, get)];
    case 'vendor.tollbridge.quota_used':
      return quotaUsed(event, get);
    case 'vendor.tollbridge.plan': {
      const task = event.task_id ? get<Task>('task', event.task_id) : undefined;
      return task
        ? [put({ ...task, updated_at: at, metadata: { ...task.metadata, plan: event.payload.entries } })]
        : NO_CHANGE;
    }
    case 'vendor.tollbridge.bound':
      return [put(binding(event))];
    default:
      return NO_CHANGE;
  }
}

// ---- Tasks ----

function snapshot(event: CoreEvent): Task {
  const { task } = event.payload as unknown as TransitionPayload;
  return { ...task, updated_at: event.created_at };
}

/** The task after these events of one commit: the same row that the store has. */
export function taskAfter(events: readonly CoreEvent[], id: string): Task | undefined {
  const last = events.findLast(
    ({ task_id, event, payload }) => task_id === id && event.startsWith('task.') && payload.task,
  );
  return last && snapshot(last);
}

/** The same for a session opened in the commit. */
export function sessionBegunIn(events: readonly CoreEvent[], id: string): Session | undefined {
  const begun = events.find(({ event, resource }) => event === 'session.created' && resource.id === id);
  return begun && begunSession(begun);
}

function submitted(event: CoreEvent, get: Get): readonly Change[] {
  const task = snapshot(event);
  const run: Run = {
    id: task.id,
    object: 'run',
    created_at: event.created_at,
    updated_at: event.created_at,
    session_id: task.session_id,
    agent: text(event.payload.agent) ?? 'none',
    instance: text(event.payload.instance),
    ...servedIn(event.payload.served),
    ...(event.payload.resumes === false && { resumes: false }),
    cancel_requested: false,
    ...(Array.isArray(event.payload.holds) && { holds: event.payload.holds.map(asText) }),
    asks: [],
  };
  const tally = count(event, get, (t) => {
    const more = { ...t, open_tasks: t.open_tasks + 1 };
    if (!takesLane(run)) return more;
    return inLane(more, ({ active, waiting }) => ({ active, waiting: [...waiting, task.id] }));
  });
  return [put(task), put(run), put(tally)];
}

function servedIn(served: unknown): Pick<Run, 'served_by' | 'away_ms'> {
  const { by, away_ms } = (served ?? {}) as { by?: unknown; away_ms?: unknown };
  if (typeof by !== 'string') return {};
  return { served_by: by, ...(typeof away_ms === 'number' && { away_ms }) };
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

function started(event: CoreEvent, get: Get): readonly Change[] {
  const task = snapshot(event);
  const instance = text(event.payload.instance);
  const changes = [put(task), ...changeRun(event, get, (run) => ({ ...run, instance }))];
  if (event.payload.lane !== true) return changes;
  const taken = ({ waiting }: Lane) => ({ active: task.id, waiting: waiting.filter((id) => id !== task.id) });
  return [...changes, put(count(event, get, (tally) => inLane(tally, taken)))];
}

function ended(event: CoreEvent, get: Get): readonly Change[] {
  const task = snapshot(event);
  const { outcome } = event.payload as unknown as EndPayload;
  const changes: Change[] = [put(task), { drop: { object: 'run', id: task.id } }];
  if (outcome) changes.push(put({ ...outcome, updated_at: event.created_at }));
  const left = ({ active, waiting }: Lane) => ({
    active: active === task.id ? null : active,
    waiting: waiting.filter((id) => id !== task.id),
  });
  const fewer = (t: Tally) => inLane({ ...t, open_tasks: Math.max(0, t.open_tasks - 1) }, left);
  changes.push(put(count(event, get, fewer)));
  for (const id of releasedIn(event.payload)) {
    const quota = get<Quota & Row>('quota', id);
    const left = Math.max(0, (quota?.usage.concurrency ?? 0) - 1);
    if (quota)
      changes.push(put({ ...quota, usage: { ...quota.usage, concurrency: left }, updated_at: event.created_at }));
  }
  return changes;
}

/** Quotas that counted the task as concurrent work. */
function releasedIn(payload: EventDraft['payload']): readonly string[] {
  return Array.isArray(payload.released) ? payload.released.map(asText) : NO_NAMES;
}
const NO_NAMES: readonly string[] = [];

function changeRun(event: CoreEvent, get: Get, change: (run: Run) => Run): Change[] {
  const run = event.task_id ? get<Run>('run', event.task_id) : undefined;
  return run ? [put({ ...change(run), updated_at: event.created_at })] : [];
}

// ---- Asks: the record people see, and the run's short list of open questions ----

function askOpened(event: CoreEvent, get: Get): readonly Change[] {
  const { ask } = event.payload as unknown as AskOpenedPayload;
  const waiting = { id: ask.id, kind: ask.kind, key: askKey(ask), digest: ask.digest, state: ask.state };
  return [
    put({ ...ask, created_at: event.created_at, updated_at: event.created_at }),
    ...changeRun(event, get, (run) => ({ ...run, asks: [...run.asks, waiting] })),
  ];
}

function askClosed(event: CoreEvent, get: Get): readonly Change[] {
  const closed = event.payload as unknown as AskClosedPayload;
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

function askUsed(event: CoreEvent, get: Get): readonly Change[] {
  const id = asText(event.payload.ask_id);
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

function begunSession(event: CoreEvent): Session {
  const { session } = event.payload as unknown as SessionPayload;
  return { ...session, updated_at: event.created_at };
}

/** The principal that opened it, or on whose behalf an agent did. */
function ownedBy({ actor, metadata, created_at }: CoreEvent, id: string): readonly Change[] {
  const owner_id = text(metadata.owner) ?? actor;
  return owner_id ? [put({ ...fresh('owner', id, created_at), owner_id } as Owner)] : NO_CHANGE;
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
function messageIn(event: Pick<EventDraft, 'payload'>): Message | undefined {
  const { message } = event.payload as unknown as Partial<MessagePayload>;
  return typeof message?.id === 'string' && Array.isArray(message.parts) ? message : undefined;
}

/** A message repeated under its own id replaces that message. */
function appended(event: CoreEvent, get: Get): readonly Change[] {
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

function truncated(event: CoreEvent, get: Get): readonly Change[] {
  const removed = (event.payload.removed ?? []) as readonly string[];
  const tally = count(event, get, (t) => ({
    ...t,
    messages: Number(event.payload.kept_turn_count ?? t.messages),
    tip_message_id: text(event.payload.new_tip_turn_id),
  }));
  return [put(tally), ...removed.map((id): Change => ({ drop: { object: 'message', id } }))];
}

// ---- The rest ----

function carried(event: CoreEvent, member: string): readonly Change[] {
  const row = event.payload[member] as unknown as Row | undefined;
  return row ? [put({ ...row, updated_at: event.created_at })] : NO_CHANGE;
}

/** The time up to which a charge has paid for its task. */
function timeBought({ payload }: Pick<EventDraft, 'payload'>): string | undefined {
  return typeof payload.timed_until === 'string' ? payload.timed_until : undefined;
}

function quotaUsed(event: CoreEvent, get: Get): readonly Change[] {
  const timed_until = timeBought(event);
  const runs = timed_until ? changeRun(event, get, (run) => ({ ...run, timed_until })) : NO_CHANGE;
  const quota = get<Quota & Row>('quota', asText(event.payload.quota_id));
  if (!quota) return runs;
  const { usage, reset_at, minute_ends_at } = event.payload as unknown as Pick<Quota, 'usage' | 'reset_at'> & {
    readonly minute_ends_at?: string;
  };
  const counted = { ...quota, usage, reset_at: reset_at ?? null, updated_at: event.created_at };
  return [put(minute_ends_at ? { ...counted, minute_ends_at } : counted), ...runs];
}

/** The key of the limits a declared quota belongs to. */
function quotaScope(payload: EventDraft['payload']): string {
  const { tenant_id } = (payload.resource ?? payload) as { tenant_id?: string };
  return scopeKey(typeof tenant_id === 'string' ? tenant_id : undefined);
}

/** Quotas of a tenant or of the installation apply without being named, so they are indexed by owner. */
function scoped(event: CoreEvent, get: Get): readonly Change[] {
  const { resource, payload, created_at } = event;
  if (resource.object !== 'quota') return NO_CHANGE;
  const key = quotaScope(payload);
  const { scope } = (payload.resource ?? {}) as Partial<Quota>;
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

function binding(event: CoreEvent): Binding {
  const { protocol, scope, wire_id, to } = event.payload as unknown as Omit<Binding, keyof Row>;
  return { ...fresh('binding', bindingId(protocol, scope, wire_id), event.created_at), protocol, scope, wire_id, to };
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
