/**
 * Before a replay runs: is the request sound, what does the record depend on, and is all of it still there?
 * Nothing here writes, and nothing is ever fetched afresh.
 */

import { asText } from '../model/as-text.ts';
import type { ReplayOverride } from '../model/commands.ts';
import type { CoreEvent } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/own.ts';
import type { ReceiptDelta, ReplayMaterial } from '../model/receipt.ts';
import type { Artifact, Memory, Task } from '../model/resources.ts';
import { type Json, type JsonObject, Timestamp } from '../model/schema.ts';
import { validator } from '../model/validate.ts';
import type { OverrideKind, ReplayMode } from '../model/words.ts';
import type { Row, Store } from '../ports.ts';
import type { Log } from './log.ts';

export interface ReplayRequest {
  readonly mode: ReplayMode;
  readonly override: Readonly<Record<string, ReplayOverride>>;
  readonly checkpoint_id?: string | null | undefined;
  readonly checkpoint_event_id?: string | null | undefined;
  readonly reason?: string | null | undefined;
  readonly allowRefresh: readonly string[];
}

/** Something the recorded run took from outside, and where the record of it stands. */
export interface Dependency {
  readonly key: string;
  readonly kinds: readonly OverrideKind[];
  readonly event_id: string | undefined;
  readonly value: Json | undefined;
}

export interface Plan {
  readonly request: ReplayRequest;
  /** Up to the checkpoint: taken as it was. */
  readonly restored: readonly CoreEvent[];
  /** To be lived through, with overrides applied and without what an override removes. */
  readonly lived: readonly CoreEvent[];
  readonly applied: readonly Applied[];
  readonly source_hash: string;
  readonly missing: Missing | undefined;
}
export interface Applied {
  readonly key: string;
  readonly override: ReplayOverride;
  readonly value: Json;
  readonly dependency: Dependency;
  readonly delta: ReceiptDelta & { readonly delta_id: string };
  readonly material: ReplayMaterial | undefined;
}
export interface Missing {
  readonly kind: 'event' | 'artifact' | 'memory' | 'receipt' | 'host';
  readonly id: string;
  readonly event_id: string;
  readonly index: number;
}

export interface PlanDeps {
  readonly store: Store;
  readonly log: Pick<Log, 'clean'>;
  readonly hash: (value: Json) => string;
}

/** An artifact whose content whoever asks may read; a fault otherwise. */
export type SeeContent = (artifactId: string) => Promise<Artifact>;

export async function planReplay(deps: PlanDeps, source: Task, request: ReplayRequest, see: SeeContent): Promise<Plan> {
  checkShape(request);
  const events: CoreEvent[] = [];
  for await (const event of deps.store.read({ stream: { of: 'task', id: source.id } })) events.push(event);
  const from = startOf(request, events);
  const dependencies = dependenciesOf(events);
  const applied: Applied[] = [];
  for (const [key, override] of Object.entries(request.override)) {
    const next = await apply({ ...deps, see }, key, override, dependencies, request);
    const other = applied.find(
      ({ dependency }) => changes(dependency) && dependency.event_id === next.dependency.event_id,
    );
    if (other && changes(next.dependency)) {
      throw new Fault('invalid_request', `${key}: answers the same as ${other.key}`, { param: `/override/${key}` });
    }
    applied.push(next);
  }
  const told = events.map((event) => overridden(event, applied));
  return {
    request,
    restored: events.slice(0, from),
    lived: told.slice(from).filter((event) => event !== undefined),
    applied,
    source_hash: deps.hash(events.map((event) => deps.hash(event as unknown as Json))),
    missing: await firstMissing(deps.store, source, told, request),
  };
}

/** The event as the replay tells it; undefined when an override takes it out. */
function overridden(event: CoreEvent, applied: readonly Applied[]): CoreEvent | undefined {
  const found = applied.find(({ dependency }) => changes(dependency) && dependency.event_id === event.id);
  if (!found) return event;
  const { value, override } = found;
  if (override.kind === 'event_payload') return value === null ? undefined : { ...event, payload: value as JsonObject };
  const member = { llm_provider_response: 'response', checkpoint_value: 'value' } as Readonly<Record<string, string>>;
  return { ...event, payload: { ...event.payload, [own(member, override.kind) ?? 'output']: value } };
}
/** Times are pinned in the receipt and secrets were never in the record: neither changes an event. */
function changes({ key }: Dependency): boolean {
  return !key.startsWith('time:') && !key.startsWith('secret:');
}

function checkShape({ mode, override, checkpoint_id, checkpoint_event_id }: ReplayRequest): void {
  const bad = (message: string, param: string) => new Fault('invalid_request', message, { param });
  const keys = Object.keys(override);
  if (mode === 'exact' && keys.length > 0) throw bad('an exact replay takes no overrides', '/override');
  if (mode === 'with_overrides' && keys.length === 0) throw bad('name at least one override', '/override');
  if (mode === 'from_checkpoint' && !checkpoint_id && !checkpoint_event_id) {
    throw bad('say where to start: checkpoint_id or checkpoint_event_id', '/checkpoint_id');
  }
  for (const [key, { kind, value, artifact_id }] of Object.entries(override)) {
    const param = `/override/${key}`;
    if ((value === undefined) === (artifact_id === undefined || artifact_id === null)) {
      throw bad(`${key}: give either a value or an artifact_id`, param);
    }
    const prefix = key.slice(0, key.indexOf(':'));
    const allowed = KINDS_BY_PREFIX[prefix];
    if (!allowed) throw bad(`${key}: keys begin with ${Object.keys(KINDS_BY_PREFIX).join(':, ')}:`, param);
    if (!allowed.includes(kind)) throw bad(`${key}: is a ${allowed.join(' or ')}, not a ${kind}`, param);
  }
}

const isTimestamp = validator(Timestamp);

/** Split on the first colon only: what follows is a name and may hold more. */
const KINDS_BY_PREFIX: Readonly<Record<string, readonly OverrideKind[]>> = {
  llm: ['llm_provider_response'],
  mcp: ['mcp_tool_return', 'tool_result'],
  secret: ['secret_value'],
  time: ['time'],
  host: ['host_fact', 'tool_result'],
  event: ['event_payload'],
  checkpoint: ['checkpoint_value'],
};

function startOf({ mode, checkpoint_id, checkpoint_event_id }: ReplayRequest, events: readonly CoreEvent[]): number {
  if (mode !== 'from_checkpoint') return 0;
  const at = events.findIndex(
    (event) =>
      event.id === checkpoint_event_id ||
      (event.event === 'vendor.tollbridge.checkpoint' &&
        checkpoint_id &&
        event.payload.checkpoint_id === checkpoint_id),
  );
  if (at < 0) throw new Fault('not_found', `no checkpoint ${checkpoint_event_id ?? checkpoint_id} in the source task`);
  return at + 1;
}

/** Every key the record can be asked to answer differently under. */
export function dependenciesOf(events: readonly CoreEvent[]): ReadonlyMap<string, Dependency> {
  const found = new Map<string, Dependency>();
  const add = (key: string, kinds: readonly OverrideKind[], event: CoreEvent | undefined, value: Json | undefined) => {
    if (!found.has(key)) found.set(key, { key, kinds, event_id: event?.id, value });
  };
  const servers = new Map<string, string>();
  for (const event of events) {
    const { payload } = event;
    const callId = asText(payload.tool_call_id ?? '');
    const name = asText(payload.name ?? '');
    switch (event.event) {
      case 'tool.requested':
        if (typeof payload.server === 'string') servers.set(callId, payload.server);
        break;
      case 'tool.completed':
      case 'tool.failed': {
        const server = servers.get(callId);
        add(`host:${name}:${callId}`, ['tool_result', 'host_fact'], event, payload.output);
        if (server) add(`mcp:${server}:${callId}`, ['mcp_tool_return', 'tool_result'], event, payload.output);
        break;
      }
      case 'span.completed': {
        const span = payload.span as JsonObject | undefined;
        if (span?.kind === 'llm') add(`llm:${span.call_id}`, ['llm_provider_response'], event, payload.response);
        break;
      }
      case 'task.submitted':
        add('time:created_at', ['time'], event, event.created_at);
        break;
      case 'task.started':
        add('time:started_at', ['time'], event, event.created_at);
        break;
      case 'task.completed':
      case 'task.failed':
      case 'task.canceled':
        add('time:completed_at', ['time'], event, event.created_at);
        break;
      case 'vendor.tollbridge.checkpoint':
        add(`checkpoint:${payload.checkpoint_id}`, ['checkpoint_value'], event, payload.value);
        break;
      default:
    }
    for (const secret of (payload.secret_names ?? []) as readonly string[]) {
      add(`secret:${secret}`, ['secret_value'], event, undefined);
    }
    add(`event:${event.id}`, ['event_payload'], event, payload);
  }
  return found;
}

async function apply(
  { store, hash, log, see }: PlanDeps & { readonly see: SeeContent },
  key: string,
  override: ReplayOverride,
  dependencies: ReadonlyMap<string, Dependency>,
  request: ReplayRequest,
): Promise<Applied> {
  const param = `/override/${key}`;
  const dependency = dependencies.get(key);
  if (!dependency) {
    const known = [...dependencies.keys()].filter((k) => !k.startsWith('event:'));
    throw new Fault('invalid_request', `${key}: the source task has no such dependency`, { param, details: { known } });
  }
  const value = override.artifact_id
    ? await artifactValue(store, override.artifact_id, param, see)
    : (override.value ?? null);
  const after = hash(value);
  if (override.sha256 && override.sha256 !== after) {
    throw new Fault('invalid_request', `${key}: sha256 does not match the value`, {
      param,
      details: { expected: after },
    });
  }
  if (override.kind === 'time' && !isTimestamp(value)) {
    throw new Fault('invalid_request', `${key}: ${asText(value)} is not a time`, { param });
  }
  if (override.kind === 'event_payload' && value !== null && (typeof value !== 'object' || Array.isArray(value))) {
    throw new Fault('invalid_request', `${key}: a payload is an object, or null to leave the event out`, { param });
  }
  const removed = value === null;
  const reason = log.clean(override.reason ?? request.reason ?? undefined);
  const secret = override.kind === 'secret_value';
  const event_id = override.event_id ?? dependency.event_id;
  return {
    key,
    override,
    value,
    dependency,
    delta: {
      delta_id: `delta_${key.replace(/[^A-Za-z0-9]+/g, '_')}`,
      operation: removed ? 'remove' : dependency.value === undefined ? 'add' : 'replace',
      path: pathOf(key, override.kind),
      override_key: key,
      ...(event_id && { event_id }),
      before_sha256: dependency.value === undefined ? null : hash(dependency.value),
      // A secret's plain hash can be guessed back; the delta says that it was replaced and no more.
      after_sha256: removed || secret ? null : after,
      ...(override.artifact_id && { artifact_id: override.artifact_id }),
      ...(reason && { reason }),
    },
    material: materialOf(key, override, after),
  };
}

function pathOf(key: string, kind: OverrideKind): string {
  if (kind === 'time') return `/lifecycle/${key.slice('time:'.length)}`;
  return `/replay_input/materials/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Override kinds are wider than material kinds; time and secrets leave a delta and no material. */
function materialOf(key: string, { kind, artifact_id }: ReplayOverride, sha256: string): ReplayMaterial | undefined {
  const kinds: Readonly<Record<OverrideKind, ReplayMaterial['kind'] | undefined>> = {
    llm_provider_response: 'llm_provider_response',
    mcp_tool_return: 'mcp_tool_return',
    host_fact: 'host_fact',
    tool_result: key.startsWith('mcp:') ? 'mcp_tool_return' : 'host_fact',
    event_payload: 'event_log',
    checkpoint_value: 'event_log',
    time: undefined,
    secret_value: undefined,
  };
  const as = kinds[kind];
  if (!as) return undefined;
  return { kind: as, id: key, sha256, metadata: { override_key: key, ...(artifact_id && { artifact_id }) } };
}

async function artifactValue(store: Store, artifactId: string, param: string, see: SeeContent): Promise<Json> {
  const artifact = await see(artifactId).catch((cause) => {
    throw cause instanceof Fault ? new Fault(cause.kind, cause.message, { param }) : cause;
  });
  const kept = artifact.sha256 && typeof artifact.metadata.bytes === 'number';
  const bytes = kept ? await store.blob(artifact.sha256 as string) : undefined;
  if (!bytes) throw new Fault('not_found', `no content for artifact ${artifactId}`, { param });
  const text = Buffer.from(bytes).toString('utf8');
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** The first thing the record leans on that is no longer there. Recorded order, so that the answer is always the same. */
async function firstMissing(
  store: Store,
  source: Task,
  events: readonly (CoreEvent | undefined)[],
  { allowRefresh }: ReplayRequest,
): Promise<Missing | undefined> {
  let sequence = 0;
  for (const [index, event] of events.entries()) {
    sequence += 1;
    if (!event) continue; // taken out by an override
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

/** Bytes an event refers to by hash: files it announces, and content that was too large to stand in it. */
function blobsOf({ payload }: CoreEvent): { id: string; sha256: string }[] {
  const found: { id: string; sha256: string }[] = [];
  const artifact = payload.artifact as unknown as Artifact | undefined;
  // What was moved out of an event counts where that event refers to it: an override may have made it needless.
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

/** A memory is part of the record only if its content stood in the event, or is still exactly what it was. */
async function missingMemory(store: Store, { payload }: CoreEvent): Promise<string | undefined> {
  if (payload.content !== undefined) return undefined;
  const id = asText(payload.memory_id ?? 'unknown');
  const memory = await store.get<Memory & Row>('memory', id);
  return memory && memory.updated_at === payload.as_of ? undefined : id;
}
