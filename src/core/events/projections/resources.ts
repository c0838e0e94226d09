/** Artifacts, declared resources, quotas and bindings. */
import type { CoreEvent } from '../../../model/events.ts';
import type { Pointer, Quota } from '../../../model/resources.ts';
import type { JsonObject } from '../../../model/schema.ts';
import type { Change, Row } from '../../../ports/index.ts';
import { type ScopedQuotas, scopeKey } from '../rows.ts';
import { changeRun, fresh, type Get, NO_CHANGE, NOTHING, put } from './changes.ts';
import { ownedBy } from './sessions.ts';

export type Declared = 'vendor.tollbridge.resource_created' | 'vendor.tollbridge.resource_updated';
type ArtifactKind = 'artifact.created' | 'artifact.updated' | 'artifact.linked' | 'artifact.redacted';

export function keptArtifact(event: CoreEvent<ArtifactKind>): readonly Change[] {
  const { artifact, after_end } = event.payload;
  if (!artifact) return NO_CHANGE;
  // After the end of its task no receipt covers it.
  const late = after_end === true && { receipt_id: null };
  const kept = put({ ...artifact, object: 'artifact', updated_at: event.created_at, ...late });
  // An artifact in a session belongs to that session's owner.
  const alone = event.event === 'artifact.created' && !artifact.session_id && !artifact.task_id;
  return alone ? [kept, ...ownedBy(event, artifact.id)] : [kept];
}

export function carried({ payload, created_at }: CoreEvent<Declared>): readonly Change[] {
  // Core checked the resource against the schema of its kind before it wrote the event.
  return [put({ ...(payload.resource as JsonObject & Row), updated_at: created_at })];
}

export function quotaUsed(event: CoreEvent<'vendor.tollbridge.quota_used'>, get: Get): readonly Change[] {
  const { quota_id, usage, reset_at = null, minute_ends_at, timed_until } = event.payload;
  const runs = timed_until ? changeRun(event, get, (run) => ({ ...run, timed_until })) : NO_CHANGE;
  const quota = get<Quota & Row>('quota', quota_id);
  if (!quota) return runs;
  const counted = { ...quota, usage, reset_at, updated_at: event.created_at };
  return [put(minute_ends_at ? { ...counted, minute_ends_at } : counted), ...runs];
}

export function touchesScope({ object }: Pointer, quota: JsonObject): readonly Pointer[] {
  return object === 'quota' ? [{ object: 'scoped_quotas', id: quotaScope(quota) }] : NOTHING;
}

/** The key of the limits a declared quota belongs to. */
function quotaScope({ tenant_id }: JsonObject): string {
  return scopeKey(typeof tenant_id === 'string' ? tenant_id : undefined);
}

/** Quotas of a tenant or of the installation apply without being named, so they are indexed by owner. */
export function scoped({ resource, created_at }: CoreEvent, quota: JsonObject, get: Get): readonly Change[] {
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
