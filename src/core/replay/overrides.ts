/**
 * Checks a replay request: whether it is valid, which recorded answers it replaces, and the receipt's delta for each. Nothing here
 * writes, and nothing is fetched but the bytes of an artifact that an override names.
 */

import type { ReplayOverride } from '../../model/commands.ts';
import type { CoreEvent } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { ReceiptDelta, ReplayMaterial } from '../../model/receipt.ts';
import type { Artifact } from '../../model/resources.ts';
import { type Json, type JsonObject, Timestamp } from '../../model/schema.ts';
import { validator } from '../../model/validate.ts';
import { asText } from '../../model/values/as-text.ts';
import { isObject } from '../../model/values/is-object.ts';
import { own } from '../../model/values/own.ts';
import type { OverrideKind, ReplayMode } from '../../model/words.ts';
import type { Store } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';

export interface ReplayRequest {
  readonly mode: ReplayMode;
  readonly override: Readonly<Record<string, ReplayOverride>>;
  readonly checkpoint_id?: string | null | undefined;
  readonly checkpoint_event_id?: string | null | undefined;
  readonly reason?: string | null | undefined;
  readonly allowRefresh: readonly string[];
}

/** An outside input of the recorded run, and the event that records it. */
export interface Dependency {
  readonly key: string;
  readonly kinds: readonly OverrideKind[];
  readonly event: CoreEvent | undefined;
  readonly event_id: string | undefined;
  readonly value: Json | undefined;
}

export interface Applied {
  readonly key: string;
  readonly override: ReplayOverride;
  /** The override's value, or its artifact's content. For the agent that is run again; never for an event. */
  readonly value: Json;
  readonly sha256: string;
  /** The stricter of the override's visibility and its artifact's. */
  readonly visibility: OverrideVisibility;
  readonly dependency: Dependency;
  readonly delta: ReceiptDelta & { readonly delta_id: string };
  readonly material: ReplayMaterial | undefined;
}
export type OverrideVisibility = 'public' | 'internal' | 'receipt_only';

export interface OverrideDeps {
  readonly store: Pick<Store, 'blob'>;
  readonly log: Pick<Log, 'clean'>;
  readonly hash: (value: Json) => string;
  /** An artifact whose content the caller may read; a fault otherwise. */
  readonly see: (artifactId: string) => Promise<Artifact>;
}

/** A member of the request, as a JSON pointer. */
export function overrideParam(key: string): string {
  return `/override/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

export function checkRequest({ mode, override, checkpoint_id, checkpoint_event_id }: ReplayRequest): void {
  const bad = (message: string, param: string) => new Fault('invalid_request', message, { param });
  const keys = Object.keys(override);
  if (mode === 'exact' && keys.length > 0) throw bad('an exact replay takes no overrides', '/override');
  if (mode === 'with_overrides' && keys.length === 0) throw bad('name at least one override', '/override');
  const checkpoint = checkpoint_id ? '/checkpoint_id' : checkpoint_event_id ? '/checkpoint_event_id' : undefined;
  if (mode === 'from_checkpoint' && !checkpoint) {
    throw bad('say where to start: checkpoint_id or checkpoint_event_id', '/checkpoint_id');
  }
  if (mode !== 'from_checkpoint' && checkpoint) {
    throw bad(`a checkpoint is for mode from_checkpoint, not for ${mode}`, checkpoint);
  }
  for (const [key, { kind, value, artifact_id }] of Object.entries(override)) {
    const param = overrideParam(key);
    if ((value === undefined) === (artifact_id === undefined || artifact_id === null)) {
      throw bad(`${key}: give either a value or an artifact_id`, param);
    }
    const colon = key.indexOf(':');
    const allowed = colon > 0 ? own(KINDS_BY_PREFIX, key.slice(0, colon)) : undefined;
    if (!allowed) throw bad(`${key}: keys begin with ${Object.keys(KINDS_BY_PREFIX).join(':, ')}:`, param);
    if (!allowed.includes(kind)) throw bad(`${key}: is a ${allowed.join(' or ')}, not a ${kind}`, param);
  }
}

const isTimestamp = validator(Timestamp);

/** Split on the first colon only: the name after it may contain more. */
const KINDS_BY_PREFIX: Readonly<Record<string, readonly OverrideKind[]>> = {
  llm: ['llm_provider_response'],
  mcp: ['mcp_tool_return', 'tool_result'],
  secret: ['secret_value'],
  time: ['time'],
  host: ['host_fact', 'tool_result'],
  event: ['event_payload'],
  checkpoint: ['checkpoint_value'],
};

/** Every key under which a recorded answer can be overridden. */
export function dependenciesOf(events: readonly CoreEvent[]): ReadonlyMap<string, Dependency> {
  const found = new Map<string, Dependency>();
  const add = (key: string, kinds: readonly OverrideKind[], event: CoreEvent | undefined, value: Json | undefined) => {
    if (!found.has(key)) found.set(key, { key, kinds, event, event_id: event?.id, value });
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
    for (const secret of namesIn(payload.secret_names)) add(`secret:${secret}`, ['secret_value'], event, undefined);
    for (const [label, at] of Object.entries(membersIn(payload.times))) add(`time:${label}`, ['time'], event, at);
    add(`event:${event.id}`, ['event_payload'], event, payload);
  }
  return found;
}

function namesIn(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
}

function membersIn(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** In key order: a JSON object has no order of its own, and the same overrides must give the same receipt. */
export async function applyOverrides(
  deps: OverrideDeps,
  events: readonly CoreEvent[],
  request: ReplayRequest,
): Promise<readonly Applied[]> {
  const dependencies = dependenciesOf(events);
  const applied: Applied[] = [];
  const names = new Set<string>();
  const entries = Object.entries(request.override).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  for (const [key, override] of entries) {
    const next = await apply(deps, key, override, dependencies, request, names);
    const other = applied.find(
      ({ dependency }) => changesEvent(dependency) && dependency.event_id === next.dependency.event_id,
    );
    if (other && changesEvent(next.dependency)) {
      throw new Fault('invalid_request', `${key}: answers the same as ${other.key}`, { param: overrideParam(key) });
    }
    applied.push(next);
  }
  return applied;
}

/** Times are in the receipt and secrets were never recorded: neither changes an event. */
export function changesEvent({ key }: Dependency): boolean {
  return !key.startsWith('time:') && !key.startsWith('secret:');
}

async function apply(
  deps: OverrideDeps,
  key: string,
  override: ReplayOverride,
  dependencies: ReadonlyMap<string, Dependency>,
  request: ReplayRequest,
  names: Set<string>,
): Promise<Applied> {
  const param = overrideParam(key);
  const bad = (message: string, details?: JsonObject) =>
    new Fault('invalid_request', `${key}: ${message}`, { param, ...(details && { details }) });
  const dependency = dependencies.get(key);
  if (!dependency) {
    const known = [...dependencies.keys()].filter((k) => !k.startsWith('event:'));
    throw bad('the source task has no such dependency', { known });
  }
  if (override.event_id && override.event_id !== dependency.event_id) {
    throw bad(`is recorded in ${dependency.event_id}, not in ${override.event_id}`);
  }
  const { value, sha256, visibility } = override.artifact_id
    ? await fromArtifact(deps, override, param)
    : { value: override.value ?? null, sha256: deps.hash(override.value ?? null), visibility: visibilityOf(override) };
  if (override.sha256 && override.sha256 !== sha256 && override.sha256 !== deps.hash(value)) {
    throw bad('sha256 does not match the value', { expected: sha256 });
  }
  if (override.kind === 'time' && !isTimestamp(value)) throw bad('the value is not a time');
  if (override.kind === 'event_payload' && value !== null && (typeof value !== 'object' || Array.isArray(value))) {
    throw bad('a payload is an object, or null to leave the event out');
  }
  const removed = value === null;
  const reason = deps.log.clean(override.reason ?? request.reason ?? undefined);
  const secret = override.kind === 'secret_value';
  return {
    key,
    override,
    value,
    sha256,
    visibility,
    dependency,
    delta: {
      delta_id: deltaId(key, names),
      operation: removed ? 'remove' : dependency.value === undefined ? 'add' : 'replace',
      path: pathOf(key, override.kind),
      override_key: key,
      ...(dependency.event_id && { event_id: dependency.event_id }),
      before_sha256: dependency.value === undefined ? null : deps.hash(dependency.value),
      // A secret could be guessed from its plain hash; the delta says only that it was replaced.
      after_sha256: removed || secret ? null : sha256,
      ...(override.artifact_id && { artifact_id: override.artifact_id }),
      ...(reason && { reason }),
    },
    material: materialOf(key, override, sha256),
  };
}

/** Two keys may differ only in characters that an id cannot hold. */
function deltaId(key: string, names: Set<string>): string {
  const plain = `delta_${key.replace(/[^A-Za-z0-9]+/g, '_')}`;
  let name = plain;
  for (let number = 2; names.has(name); number += 1) name = `${plain}_${number}`;
  names.add(name);
  return name;
}

/** A secret is receipt-only, whatever visibility its override states. */
function visibilityOf({ kind, visibility }: ReplayOverride): OverrideVisibility {
  return kind === 'secret_value' ? 'receipt_only' : (visibility ?? 'receipt_only');
}

const STRICTNESS: readonly OverrideVisibility[] = ['public', 'internal', 'receipt_only'];

async function fromArtifact({ store, see }: OverrideDeps, override: ReplayOverride, param: string) {
  const id = override.artifact_id as string;
  const artifact = await see(id).catch((cause) => {
    throw cause instanceof Fault ? new Fault(cause.kind, cause.message, { param }) : cause;
  });
  const kept = artifact.sha256 && typeof artifact.metadata.bytes === 'number';
  const bytes = kept ? await store.blob(artifact.sha256 as string) : undefined;
  if (!bytes) throw new Fault('not_found', `no content for artifact ${id}`, { param });
  const own = STRICTNESS.indexOf(artifact.visibility as OverrideVisibility);
  const asked = STRICTNESS.indexOf(visibilityOf(override));
  return {
    value: parsed(Buffer.from(bytes).toString('utf8')),
    sha256: `sha256:${(artifact.sha256 as string).replace(/^sha256:/, '')}`,
    // An unknown visibility counts as the strictest.
    visibility: STRICTNESS[own < 0 ? STRICTNESS.length - 1 : Math.max(own, asked)] as OverrideVisibility,
  };
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** The task's own times, which the gateway sets and the receipt repeats. */
export const LIFECYCLE_TIMES: ReadonlySet<string> = new Set([
  'time:created_at',
  'time:started_at',
  'time:completed_at',
]);

function pathOf(key: string, kind: OverrideKind): string {
  if (kind === 'time' && LIFECYCLE_TIMES.has(key)) return `/lifecycle/${key.slice('time:'.length)}`;
  return `/replay_input/materials/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** There are more override kinds than material kinds; time and secrets leave a delta and no material. */
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
