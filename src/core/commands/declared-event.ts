/** Events that record that a resource was declared, changed or withdrawn. */
import type { EventDraft } from '../../model/events.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { Row } from '../../ports/index.ts';

export function declaredEvent(
  what: 'created' | 'updated' | 'deleted',
  row: Row,
  home: string | null,
  actor: string,
): EventDraft {
  const { id, object } = row;
  const location = { resource: { object, id }, workspace_id: home, actor };
  if (what === 'deleted')
    return { event: 'vendor.tollbridge.resource_deleted', payload: { id, object, ...tenantOf(row) }, ...location };
  return { event: `vendor.tollbridge.resource_${what}`, payload: { resource: row }, ...location };
}

/** A withdrawn quota is removed from the limits of its tenant. */
function tenantOf(row: Row & { tenant_id?: string }): JsonObject {
  return row.object === 'quota' && row.tenant_id ? { tenant_id: row.tenant_id } : {};
}
