/**
 * Plans a replay before it runs: the events it repeats, the answers that are replaced, its dependencies, and whether all of them
 * still exist. Nothing here writes, and nothing is fetched anew.
 */

import type { CoreEvent } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Artifact, Memory, Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { Row, Store } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';
import { type Dependent, firstDependent, givesAgentAnything } from './dependents.ts';
import {
  type Applied,
  applyOverrides,
  checkRequest,
  LIFECYCLE_TIMES,
  overrideParam,
  type ReplayRequest,
} from './overrides.ts';
import { type Known, knownFrom, showEvent } from './shown.ts';

export interface Plan {
  readonly request: ReplayRequest;
  /** Events up to the checkpoint: taken unchanged. */
  readonly restored: readonly CoreEvent[];
  /** Events to replay, with overrides applied and without those an override removes. */
  readonly replayed: readonly CoreEvent[];
  /** The last restored event. */
  readonly checkpoint: CoreEvent | undefined;
  readonly applied: readonly Applied[];
  /** Payloads as an agent that is run again gets them, by event: with values that events do not show. */
  readonly received: ReadonlyMap<string, JsonObject>;
  readonly known: Known;
  /** An override replaces an input of the agent: its recorded output need not follow any more. */
  readonly reaches: boolean;
  /** The first recorded output of an agent that cannot be run again that no longer follows. */
  readonly dependent: Dependent | undefined;
  /** Stands for the source's log in the receipt: the same for every copy of it. */
  readonly source_hash: string;
  readonly missing: MissingDependency | undefined;
}
export interface MissingDependency {
  readonly kind: 'event' | 'artifact' | 'memory' | 'receipt' | 'host';
  readonly id: string;
  readonly event_id: string | null;
  readonly index: number;
}

export interface PlanDeps {
  readonly store: Store;
  readonly log: Pick<Log, 'clean'>;
  readonly hash: (value: Json) => string;
  readonly logRoot: (events: readonly CoreEvent[]) => string;
}

/** An artifact whose content the caller may read; a fault otherwise. */
export type SeeContent = (artifactId: string) => Promise<Artifact>;

export async function planReplay(deps: PlanDeps, source: Task, request: ReplayRequest, see: SeeContent): Promise<Plan> {
  checkRequest(request);
  const events = await recordOf(deps.store, source);
  const from = startOf(request, events);
  const applied = await applyOverrides({ ...deps, see }, events, request);
  refuseRestored(applied, events, from);
  const known = knownFrom(events);
  const each = events.map((event) => ({ event, ...showEvent(event, applied, known) }));
  const shown = each.map((one) => one.shown);
  return {
    request,
    restored: events.slice(0, from),
    replayed: shown.slice(from).filter((event) => event !== undefined),
    checkpoint: events[from - 1],
    applied,
    received: new Map(
      each.flatMap(({ event, received }) => (received === event.payload ? [] : [[event.id, received]])),
    ),
    known,
    reaches: applied.some((one) => givesAgentAnything(one, events)),
    dependent: firstDependent(applied, events),
    source_hash: deps.logRoot(ofTaskItself(events, source.id)),
    missing: (await firstMissing(deps.store, source, shown, request)) ?? missingEnd(source, events),
  };
}

/** The events that the source's receipt covers: those of the task itself, up to its end. */
function ofTaskItself(events: readonly CoreEvent[], taskId: string): readonly CoreEvent[] {
  const own = events.filter(({ resource }) => resource.object === 'task' && resource.id === taskId);
  const end = own.findIndex(({ event }) => isEnd(event));
  return end < 0 ? own : own.slice(0, end + 1);
}

/** The log of an ended task contains its end. */
function missingEnd(source: Task, events: readonly CoreEvent[]): MissingDependency | undefined {
  if (events.some(({ event }) => isEnd(event))) return undefined;
  return { kind: 'event', id: `${source.id}#${events.length + 1}`, event_id: null, index: events.length };
}

export function isEnd(event: string): boolean {
  return event === 'task.completed' || event === 'task.failed' || event === 'task.canceled';
}

/**
 * The source's log from its first event. A log whose beginning is no longer kept cannot be replayed, and the fault names the first
 * missing event.
 */
async function recordOf(store: Store, source: Task): Promise<readonly CoreEvent[]> {
  const events: CoreEvent[] = [];
  const pruned = (more: Readonly<Record<string, unknown>> = {}) => {
    const id = typeof more.first_unavailable === 'string' ? more.first_unavailable : `${source.id}#1`;
    return new Fault(
      'cursor_expired',
      `event ${id} (task.submitted), the first of the source task, is no longer kept`,
      {
        details: {
          dependency: { kind: 'event', id },
          first_missing: { id, event: 'task.submitted', sequence: 1 },
          ...more,
        },
      },
    );
  };
  try {
    for await (const event of store.read({ stream: { of: 'task', id: source.id } })) events.push(event);
  } catch (cause) {
    throw cause instanceof Fault && cause.kind === 'cursor_expired' ? pruned(cause.details) : cause;
  }
  if (events.length === 0) throw pruned();
  return events;
}

/** Events before the checkpoint are restored unchanged: an override of one of them would change nothing and claim to. */
function refuseRestored(applied: readonly Applied[], events: readonly CoreEvent[], from: number): void {
  for (const { key, dependency } of applied) {
    const at = events.findIndex(({ id }) => id === dependency.event_id);
    const isCheckpoint = at === from - 1 && key.startsWith('checkpoint:');
    if (at < 0 || at >= from || LIFECYCLE_TIMES.has(key) || isCheckpoint) continue;
    throw new Fault('invalid_request', `${key}: was answered before the checkpoint, and is restored as it was`, {
      param: overrideParam(key),
    });
  }
}

function startOf({ mode, checkpoint_id, checkpoint_event_id }: ReplayRequest, events: readonly CoreEvent[]): number {
  if (mode !== 'from_checkpoint') return 0;
  const byEvent = events.findIndex(({ id }) => id === checkpoint_event_id);
  const byName = events.findIndex(
    ({ event, payload }) => event === 'vendor.tollbridge.checkpoint' && payload.checkpoint_id === checkpoint_id,
  );
  const none = (id: string) => new Fault('not_found', `no checkpoint ${id} in the source task`);
  if (checkpoint_event_id && byEvent < 0) throw none(checkpoint_event_id);
  if (checkpoint_id && byName < 0) throw none(checkpoint_id);
  if (checkpoint_event_id && checkpoint_id && byEvent !== byName) {
    throw new Fault('invalid_request', `checkpoint ${checkpoint_id} is not at ${checkpoint_event_id}`, {
      param: '/checkpoint_event_id',
    });
  }
  return (checkpoint_event_id ? byEvent : byName) + 1;
}

/** The first dependency of the record that no longer exists. In recorded order, so that the answer is deterministic. */
async function firstMissing(
  store: Store,
  source: Task,
  events: readonly (CoreEvent | undefined)[],
  { allowRefresh }: ReplayRequest,
): Promise<MissingDependency | undefined> {
  let sequence = 0;
  for (const [index, event] of events.entries()) {
    sequence += 1;
    if (!event) continue; // removed by an override
    const at = { event_id: event.id, index };
    if (event.sequence !== sequence) return { kind: 'event', id: `${source.id}#${sequence}`, ...at };
    for (const { id, sha256 } of blobsOf(event)) {
      if (!(await store.hasBlob(sha256))) return { kind: 'artifact', id, ...at };
    }
    if (event.event === 'agent.memory_read' && !allowRefresh.includes('memory')) {
      const missing = await missingMemory(store, event);
      if (missing) return { kind: 'memory', id: missing, ...at };
    }
  }
  if (source.receipt_id && !(await store.receipt(source.receipt_id))) {
    const last = events.at(-1);
    return { kind: 'receipt', id: source.receipt_id, event_id: last?.id ?? '', index: events.length - 1 };
  }
  return undefined;
}

/** Bytes an event refers to by hash: files it announces, and content that was too large for it. */
function blobsOf({ payload }: CoreEvent): { id: string; sha256: string }[] {
  const found: { id: string; sha256: string }[] = [];
  const artifact = payload.artifact as Artifact | undefined;
  // Content moved out of an event counts where that event refers to it: an override may have replaced it.
  const own = artifact?.sha256 && typeof artifact.metadata.bytes === 'number' && artifact.metadata.spilled !== true;
  if (own) found.push({ id: artifact.id, sha256: artifact.sha256 as string });
  const look = (value: Json | undefined): void => {
    const ref = value as JsonObject | undefined | null;
    if (ref && ref.type === 'artifact_ref' && typeof ref.sha256 === 'string') {
      found.push({ id: asText(ref.artifact_id), sha256: ref.sha256 });
    }
  };
  for (const member of Object.values(payload)) look(member);
  for (const part of ((payload.message as JsonObject | undefined)?.parts ?? []) as readonly Json[]) look(part);
  return found;
}

/** A memory is part of the record only if the event holds its content, or if it is unchanged since. */
async function missingMemory(store: Store, { payload }: CoreEvent): Promise<string | undefined> {
  if (payload.content !== undefined) return undefined;
  // Older logs list the results of a search without their state; nothing can be proved of them, unless the search found nothing.
  if (Array.isArray(payload.memory_ids))
    return payload.memory_ids.length > 0 ? asText(payload.memory_ids[0]) : undefined;
  const id = asText(payload.memory_id ?? 'unknown');
  const memory = await store.get<Memory & Row>('memory', id);
  return memory && memory.updated_at === payload.as_of ? undefined : id;
}
