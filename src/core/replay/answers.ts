/**
 * The answers given to an agent that a replay runs again: from the record, or from an override. Tracks which overrides were used,
 * and from when on the agent's output may reveal a value that is not public.
 */
import type { Decision } from '../../model/actions.ts';
import type { End } from '../../model/commands.ts';
import type { CoreEvent } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { EventKind } from '../../model/payloads.ts';
import type { Failure, Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { RecordedInputs, Store } from '../../ports/index.ts';
import type { Asks } from '../approvals/asks.ts';
import type { MarkedLog } from './marks.ts';
import { type Applied, changesEvent, LIFECYCLE_TIMES } from './overrides.ts';
import type { MissingDependency, Plan } from './plan.ts';
import { isHidden, WITHHELD } from './shown.ts';

export interface RecordedAnswers {
  readonly recorded: RecordedInputs;
  /** Every event of the source as the replay writes it. */
  readonly events: readonly CoreEvent[];
  /** Decisions on acts that are not calls, in the order they will be requested. */
  readonly unnamed: Decision[];
  /** Records a value that is not on record, stops the agent, and returns the fault it gets. Only the first one counts. */
  missing(what: Pick<MissingDependency, 'kind' | 'id'>): Fault;
  failed(): MissingDependency | undefined;
  /** Overrides that took effect. */
  used(): ReadonlySet<string>;
  /** The payload as the agent gets it. From then on its output may contain the value. */
  payloadOf(event: CoreEvent): JsonObject;
  /** A recorded value including parts stored as artifacts. Missing where the record holds only a hash of it. */
  whole(value: Json): Promise<Json>;
  /** The agent's output, as far as an event may show it. */
  asShown<T extends Json>(value: T): T;
  /** The agent has been given a value that is not public. */
  isGuarded(): boolean;
  taskThen(source: Task): Task;
  endAs(end: End): End;
  /** The recorded end of the work was caused from outside, by a cancel. */
  canceledBy(event: CoreEvent): void;
  /** Answers a question as recorded. */
  settle(asks: Asks, askId: string, recorded: string | undefined): Promise<void>;
  closed(askId: string): CoreEvent<'vendor.tollbridge.ask_closed'> | undefined;
}

export function createRecordedAnswers(
  { store }: { readonly store: Pick<Store, 'blob'> },
  plan: Plan,
  marked: MarkedLog,
  stop: AbortController,
): RecordedAnswers {
  const events = [...plan.restored, ...plan.replayed];
  const byEvent = new Map(
    plan.applied.flatMap((one) => (changesEvent(one.dependency) ? [[one.dependency.event_id, one] as const] : [])),
  );
  const byKey = new Map(plan.applied.map((one) => [one.key, one]));
  const taken = new Set<string>(plan.applied.flatMap(({ key }) => (LIFECYCLE_TIMES.has(key) ? [key] : [])));
  let guarded = false;
  let failed: MissingDependency | undefined;
  let canceled: CoreEvent | undefined;

  function take(applied: Applied): void {
    taken.add(applied.key);
    // A removed value reveals nothing.
    guarded ||= isHidden(applied) && applied.value !== null;
  }

  function missing({ kind, id }: Pick<MissingDependency, 'kind' | 'id'>): Fault {
    const last = marked.furthest();
    const shownId = guarded ? hide(id) : id;
    failed ??= { kind, id: shownId, event_id: last?.id ?? null, index: last?.sequence ?? 0 };
    stop.abort();
    return new Fault('not_found', `the record has no ${shownId}`);
  }

  /** The name of a missing value, without parts that the agent could only know from a hidden value. */
  function hide(id: string): string {
    const parts = id.split(':').map((part) => plan.known.withhold(part));
    return parts.every((part) => part !== WITHHELD) ? id : `${id.split(':')[0]}:[withheld]`;
  }

  function payloadOf(event: CoreEvent): JsonObject {
    const applied = byEvent.get(event.id);
    if (applied) take(applied);
    return plan.received.get(event.id) ?? event.payload;
  }

  async function whole(value: Json): Promise<Json> {
    const { type, sha256, artifact_id, override_key } = (value ?? {}) as JsonObject;
    if (type === 'replay_override') throw missing({ kind: 'host', id: asText(override_key) });
    if (type !== 'artifact_ref' || typeof sha256 !== 'string') return value;
    const bytes = await store.blob(sha256);
    if (!bytes) throw missing({ kind: 'artifact', id: asText(artifact_id) });
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as Json;
  }

  const find = <K extends EventKind>(kind: K, wanted: (payload: JsonObject) => boolean) =>
    events.find((event): event is CoreEvent<K> => event.event === kind && wanted(event.payload));

  const recorded: RecordedInputs = {
    async model(callId) {
      const span = find('span.completed', ({ span }) => {
        const { kind, call_id } = (span ?? {}) as JsonObject;
        return kind === 'llm' && call_id === callId;
      });
      const response = span && payloadOf(span).response;
      if (response === undefined) throw missing({ kind: 'host', id: `llm:${callId}` });
      return await whole(response);
    },
    async time(label) {
      const key = `time:${label}`;
      const applied = byKey.get(key);
      if (applied) {
        take(applied);
        return applied.value as string;
      }
      const kind = label === 'created_at' ? 'task.submitted' : label === 'started_at' ? 'task.started' : undefined;
      const stamped = kind && find(kind, () => true)?.created_at;
      const read = events.find(({ payload }) => typeof (payload.times as JsonObject | null)?.[label] === 'string');
      const at = stamped ?? (read?.payload.times as JsonObject | undefined)?.[label];
      if (typeof at !== 'string') throw missing({ kind: 'host', id: key });
      return at;
    },
    async secret(name) {
      const applied = byKey.get(`secret:${name}`);
      if (!applied) throw missing({ kind: 'host', id: `secret:${name}` });
      take(applied);
      return applied.value;
    },
    async checkpoint(id) {
      const made = find('vendor.tollbridge.checkpoint', ({ checkpoint_id }) => checkpoint_id === id);
      const value = made && payloadOf(made).value;
      if (value === undefined) throw missing({ kind: 'host', id: `checkpoint:${id}` });
      return await whole(value);
    },
  };

  const closed = (askId: string) => find('vendor.tollbridge.ask_closed', ({ ask_id }) => ask_id === askId);

  return {
    recorded,
    events,
    unnamed: [],
    missing,
    failed: () => failed,
    used() {
      const left = new Set([...marked.left()].map(({ id }) => id));
      const repeated = plan.applied.filter(({ dependency, value }) => {
        if (!changesEvent(dependency) || value === null) return false;
        return plan.replayed.some(({ id }) => id === dependency.event_id) && !left.has(dependency.event_id ?? '');
      });
      return new Set([...taken, ...repeated.map(({ key }) => key)]);
    },
    payloadOf,
    whole,
    asShown: <T extends Json>(value: T) => (guarded ? (plan.known.withhold(value) as T) : value),
    isGuarded: () => guarded,
    taskThen(source) {
      const submitted = find('task.submitted', () => true);
      const recordedTask = submitted ? (payloadOf(submitted).task as Task | undefined) : source;
      const time = (label: string) => byKey.get(`time:${label}`)?.value as string | undefined;
      const started = find('task.started', () => true)?.created_at ?? source.created_at;
      return {
        ...source,
        input: recordedTask?.input ?? source.input,
        status: 'WORKING',
        created_at: time('created_at') ?? source.created_at,
        started_at: time('started_at') ?? source.started_at ?? started,
        ...{ completed_at: null, canceled_at: null, failure: null, receipt_id: null, outcome_id: null },
      };
    },
    endAs(end) {
      const shownEnd = guarded ? (plan.known.withhold(end) as End) : end;
      const state = ['COMPLETED', 'FAILED', 'CANCELED'].includes(end.state) ? end.state : 'FAILED';
      if (!canceled) return { ...shownEnd, state };
      const failure = canceled.payload.failure as Failure | undefined;
      return failure ? { ...shownEnd, state: 'FAILED', failure } : { ...shownEnd, state: 'CANCELED' };
    },
    canceledBy(event) {
      canceled ??= event;
    },
    async settle(asks, askId, recordedId) {
      const closing = recordedId ? closed(recordedId) : undefined;
      if (!closing) {
        // The question was open when the work was stopped: it was never answered.
        if (canceled) return;
        throw missing({ kind: 'host', id: `answer:${recordedId ?? askId}` });
      }
      const { state, by, reason, answer } = closing.payload;
      await asks.settle(askId, state, by, reason, answer);
    },
    closed,
  };
}
