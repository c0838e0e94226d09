/** Events that record that a resource was declared, changed or withdrawn. */
import type { EventDraft } from '../../model/events.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { Row } from '../../ports/index.ts';

export function declaredEvent(
  what: 'created' | 'updated' | 'deleted',
  row: Row,
  home: string | null,
  actor: string,
): EventDraft {
  return {
    event: `vendor.tollbridge.resource_${what}`,
    resource: { object: row.object, id: row.id },
    workspace_id: home,
    actor,
    payload:
      what === 'deleted' ? { id: row.id, object: row.object, ...tenantOf(row) } : { resource: row as unknown as Json },
  };
}

/** A withdrawn quota is removed from the limits of its tenant. */
function tenantOf(row: Row & { tenant_id?: string }): JsonObject {
  return row.object === 'quota' && row.tenant_id ? { tenant_id: row.tenant_id } : {};
}
