/** Rows of replicas are written like every other row: by events of the log, through the one module that commits. */
import type { EventDraft } from '../model/events.ts';
import type { Committed, Row, Unit } from '../ports/index.ts';

/** Commits events of the process itself. */
export type Commit = (unit: Unit) => Promise<Committed>;

/** The row as it is from now on; `before` is the row it replaces. */
export function written<T extends Row>(
  row: Omit<T, 'created_at' | 'updated_at'> & Pick<Row, 'id' | 'object'>,
  now: string,
  before?: Row,
): EventDraft {
  const { id, object } = row;
  const resource = { ...row, created_at: before?.created_at ?? now, updated_at: now };
  const event = `vendor.tollbridge.resource_${before ? 'updated' : 'created'}` as const;
  return { event, resource: { object, id }, workspace_id: null, actor: 'bridge', payload: { resource } };
}

export function removed({ id, object }: Pick<Row, 'id' | 'object'>): EventDraft {
  return {
    event: 'vendor.tollbridge.resource_deleted',
    resource: { object, id },
    workspace_id: null,
    actor: 'bridge',
    payload: { id, object },
  };
}
