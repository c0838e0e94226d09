/** The projector every store is tested with. */
import { vendorEvent } from '../../../src/model/events.ts';
import type { Change, Projector, Row } from '../../../src/ports/index.ts';

export interface Counted extends Row {
  readonly count: number;
  readonly status?: string;
  readonly session_id?: string;
  readonly workspace_id?: string;
}

/**
 * Counts events per task, tasks per session; a task can be withdrawn and comes back with its next event. Reads across
 * resources, drops rows, those of `payload.drops` without having read them, and fails on demand: enough to tell a right
 * store from a wrong one.
 */
export const contractProjector: Projector = {
  touches(draft) {
    const pointers = [draft.resource];
    if (draft.session_id) pointers.push({ object: 'session', id: draft.session_id });
    return pointers;
  },
  apply(event, get) {
    if (event.payload.poison === 'projector') throw new Error('this event cannot be projected');
    const { object, id } = event.resource;
    const before = get<Counted>(object, id);
    if (event.event === vendorEvent('task.withdrawn')) return [{ drop: { object, id } }];
    const changes: Change[] = [
      {
        put: {
          id,
          object,
          created_at: before?.created_at ?? event.created_at,
          updated_at: event.created_at,
          count: (before?.count ?? 0) + 1,
          ...(typeof event.payload.status === 'string' ? { status: event.payload.status } : keep(before, 'status')),
          ...(event.session_id && { session_id: event.session_id }),
          ...(event.workspace_id && { workspace_id: event.workspace_id }),
          ...(typeof event.payload.owner_id === 'string' && { owner_id: event.payload.owner_id }),
        } as Row,
      },
    ];
    if (event.session_id && object === 'task' && !before) {
      const session = get<Counted>('session', event.session_id);
      const count = (session?.count ?? 0) + 1;
      const created_at = session?.created_at ?? event.created_at;
      const row = { id: event.session_id, object: 'session', created_at, updated_at: event.created_at, count };
      changes.push({ put: row as Row });
    }
    const drops = (event.payload.drops ?? []) as readonly string[];
    return [...changes, ...drops.map((task): Change => ({ drop: { object: 'task', id: task } }))];
  },
};
function keep(row: Counted | undefined, name: 'status'): Partial<Counted> {
  return row?.[name] === undefined ? {} : { [name]: row[name] };
}
