/**
 * From events to resources: the only place projections come from, live and on rebuild.
 * Pure. Resources travel whole in the events that make or change them; what is counted is counted here.
 */
import { asText } from '../model/as-text.ts';
import type { AskRecord } from '../model/asks.ts';
import type { CoreEvent, EventDraft } from '../model/events.ts';
import type {
  ArtifactPayload,
  AskClosedPayload,
  AskOpenedPayload,
  EndPayload,
  MessagePayload,
  SessionPayload,
  TransitionPayload,
} from '../model/payloads.ts';
import type { Message, Pointer, Quota, Session, Task } from '../model/resources.ts';
import { isTerminal } from '../model/words.ts';
import type { Change, Projector, Row } from '../ports.ts';
import type { Binding, Lane, Owner, Run, Taint, Tally } from './rows.ts';

type Get = <T extends Row>(object: string, id: string) => T | undefined;

export const projector: Projector = { touches, apply };

function touches(event: EventDraft): readonly Pointer[] {
  const { task_id: task, session_id: session, payload } = event;
  switch (event.event) {
    case 'vendor.tollbridge.message_delta': // by far the most frequent, and it changes nothing
      return NOTHING;
    case 'session.truncated':
    case 'session.compacted':
      return one('tally', session);
    case 'user.message':
    case 'agent.message': {
      const message = spoken(event);
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
      return one('tally', session);
    case 'vendor.tollbridge.plan':
      return one('task', task);
    case 'vendor.tollbridge.quota_used':
      return [{ object: 'quota', id: asText(payload.quota_id) }];
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

/** A replay lives through its own task and questions; what it only repeats makes nothing anew. */
const LIVED_AGAIN = /^(task\.|user\.cancel_requested$|vendor\.tollbridge\.(ask_|recovered$))/;

function apply(event: CoreEvent, get: Get): readonly Change[] {
  const at = event.created_at;
  if (event.replayed && !LIVED_AGAIN.test(event.event)) return NO_CHANGE;
  switch (event.event) {
    case 'session.created': {
      const { session } = event.payload as unknown as SessionPayload;
      // It begins with what the other had read.
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
      return changeRun(event, get, (run) => ({ ...run, instance: text(event.payload.instance) }));
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
      const kept = put({ ...artifact, object: 'artifact', updated_at: at });
      // In a session it belongs to that session.
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
      return carried(event, 'resource');
    case 'vendor.tollbridge.resource_deleted':
      return [{ drop: { object: event.resource.object, id: event.resource.id } }];
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

/** The task as a commit that is at hand has left it: the row that was made of its events. */
export function taskAfter(events: readonly CoreEvent[], id: string): Task | undefined {
  const last = events.findLast(
    ({ task_id, event, payload }) => task_id === id && event.startsWith('task.') && payload.task,
  );
  return last && snapshot(last);
}

/** The same for a session that began in it. */
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
    cancel_requested: false,
    asks: [],
  };
  const tally = count(event, get, (t) => {
    const more = { ...t, open_tasks: t.open_tasks + 1 };
    if (!takesLane(run)) return more;
    return inLane(more, ({ active, waiting }) => ({ active, waiting: [...waiting, task.id] }));
  });
  return [put(task), put(run), put(tally)];
}

/** Work done by someone outside, or lived through again from the record, does not take the session's one lane. */
function takesLane({ agent }: Run): boolean {
  return agent !== 'none' && agent !== 'replay';
}

/** A session in which nothing runs and nothing waits has no lane. */
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
  return changes;
}

function changeRun(event: CoreEvent, get: Get, change: (run: Run) => Run): Change[] {
  const run = event.task_id ? get<Run>('run', event.task_id) : undefined;
  return run ? [put({ ...change(run), updated_at: event.created_at })] : [];
}

// ---- Asks: the record people see, and the run's short list of what it waits for ----

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

/** The principal that opened it, or the one on whose behalf an agent did. */
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

/** The message an event puts into the transcript, if it is one. */
function spoken(event: Pick<EventDraft, 'payload'>): Message | undefined {
  const { message } = event.payload as unknown as Partial<MessagePayload>;
  return typeof message?.id === 'string' && Array.isArray(message.parts) ? message : undefined;
}

/** A message said again under its own id is the same turn, changed. */
function appended(event: CoreEvent, get: Get): readonly Change[] {
  const message = spoken(event);
  if (!message) return NO_CHANGE;
  const row = { ...message, object: 'message' as const, updated_at: event.created_at };
  const before = get<Message & Row>('message', message.id);
  if (before) return [put({ ...row, created_at: before.created_at })];
  const tally = count(event, get, (t) => ({
    ...t,
    messages: t.messages + 1,
    tip_message_id: message.id,
    tip_at: saidAt(message, event, t.tip_at),
  }));
  return [put({ ...row, created_at: tally.tip_at ?? event.created_at }), put(tally)];
}

/** When it says it was said, as long as that is not in the future and comes after the message before it. */
function saidAt(message: Message, event: CoreEvent, after: string | null): string {
  const now = readTime(event.created_at);
  const claimed = readClaim(message.created_at);
  const at = Number.isNaN(claimed) ? now : Math.min(claimed, now);
  return spellTime(after === null ? at : Math.max(at, Date.parse(after) + 1));
}

const readTime = rememberingLast(Date.parse);
const readClaim = rememberingLast(Date.parse);
const spellTime = rememberingLast((ms: number) => new Date(ms).toISOString());

/** Many messages are written in one commit, at one time: that is read and spelled once. */
function rememberingLast<A, B>(work: (given: A) => B): (given: A) => B {
  let last: { readonly given: A; readonly made: B } | undefined;
  return (given) => {
    if (last?.given !== given) last = { given, made: work(given) };
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

function quotaUsed(event: CoreEvent, get: Get): readonly Change[] {
  const quota = get<Quota & Row>('quota', asText(event.payload.quota_id));
  if (!quota) return NO_CHANGE;
  const { usage, reset_at } = event.payload as unknown as Pick<Quota, 'usage' | 'reset_at'>;
  return [put({ ...quota, usage, reset_at: reset_at ?? null, updated_at: event.created_at })];
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
