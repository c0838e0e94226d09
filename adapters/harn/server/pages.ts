/** Lists: bounds and cursors are checked, filters are passed on, and all lists have one envelope. */
import {
  type Actor,
  type Bridge,
  type CoreEvent,
  type Cursor,
  Fault,
  type ListQuery,
  type Missing,
  type Row,
  type Stream,
} from '../../../src/index.ts';
import { toCoreCursor, toWireEvent, toWireList, type WireList } from '../translate.ts';
import type { Call } from './call.ts';

export function limitOf({ query }: Pick<Call, 'query'>): number {
  if (query.limit === undefined) return 50;
  const limit = Number(query.limit);
  if (!/^\d{1,3}$/.test(query.limit) || limit < 1 || limit > 200) {
    throw new Fault('invalid_request', 'limit must be a whole number from 1 to 200', { param: 'limit' });
  }
  return limit;
}

export async function listPage(
  bridge: Bridge,
  call: Pick<Call, 'actor' | 'query'>,
  { object, where = {} }: Pick<ListQuery, 'object' | 'where'>,
  show: (row: Row) => unknown = (row) => row,
): Promise<WireList> {
  const { actor, query } = call;
  const after = query.cursor === undefined ? undefined : await knownCursor(bridge, actor, object, query.cursor);
  const { data, next } = await bridge.list(actor, { object, where, limit: limitOf(call), ...(after && { after }) });
  return toWireList(data.map(show), next);
}

/** A cursor is a position among the objects this caller may see; one that points elsewhere reveals nothing about what is there. */
async function knownCursor(bridge: Bridge, actor: Actor, object: string, cursor: string): Promise<string> {
  const id = toCoreCursor(cursor);
  // A memory can be withdrawn between two pages; its position in the order stays.
  if (object === 'memory') return id;
  try {
    await bridge.view(actor, object, id);
    return id;
  } catch (thrown) {
    if (!(thrown instanceof Fault) || thrown.kind !== 'not_found') throw thrown;
    throw new Fault('invalid_request', 'this is not a cursor of ours', { param: 'cursor' });
  }
}

/** Filters by the ids in the query; a filter that names a hidden object finds nothing. */
export function whereOf(query: Call['query'], ...names: ('workspace_id' | 'session_id' | 'task_id')[]) {
  return Object.fromEntries(names.flatMap((name) => (query[name] ? [[name, query[name]]] : [])));
}

/** The narrowest stream that holds all events asked for, and a filter for the rest. */
export function streamOf(query: Call['query']): { stream: Stream; wanted: (event: CoreEvent) => boolean } {
  const { task_id: task, session_id: session, workspace_id: workspace } = query;
  const stream: Stream = task
    ? { of: 'task', id: task }
    : session
      ? { of: 'session', id: session }
      : workspace
        ? { of: 'workspace', id: workspace }
        : { of: 'all' };
  const wanted = (event: CoreEvent) =>
    (!task || event.task_id === task) &&
    (!session || event.session_id === session) &&
    (!workspace || event.workspace_id === workspace);
  return { stream, wanted };
}

/** The next cursor is the last event shown, so that polling continues from it even when there are no more events yet. */
export async function eventPage(
  bridge: Bridge,
  call: Pick<Call, 'actor' | 'query'>,
  stream: Stream,
  wanted: (event: CoreEvent) => boolean = () => true,
): Promise<WireList> {
  const { actor, query } = call;
  const limit = limitOf(call);
  const cursor = query.after_event_id ?? query.cursor;
  const after = cursor ?? startOf(await beginning(bridge, actor, stream));
  const data: unknown[] = [];
  let last = cursor ?? null;
  let more = false;
  for await (const event of bridge.events(actor, { stream, ...(after && { after }) })) {
    if (!wanted(event)) continue;
    if (data.length === limit) {
      more = true;
      break;
    }
    data.push(toWireEvent(event));
    last = event.id;
  }
  return { object: 'list', data, page: { has_more: more, next_cursor: last } };
}

/**
 * Where a reader without a cursor begins, and whether this caller may read the stream at all; no events are read. The log, and a
 * workspace's part of it, is a window that begins with the oldest event kept. A task or a session has a first event: where that is
 * gone, `expired` says so, and `after` is for readers that accept the gap.
 */
export interface Beginning {
  readonly after: Cursor | undefined;
  readonly expired: Fault | undefined;
}

export async function beginning(bridge: Bridge, actor: Actor, stream: Stream): Promise<Beginning> {
  const trouble = await readable(bridge, actor, stream, undefined);
  const missing = trouble ? undefined : await bridge.firstMissing(actor, stream);
  const expired = trouble ?? (missing && beheaded(missing));
  const oldest = expired?.details?.oldest;
  return { after: typeof oldest === 'string' ? oldest : undefined, expired };
}

/** Refuses a reader without a cursor that would take the remaining events for all events. */
function startOf({ after, expired }: Beginning): Cursor | undefined {
  if (expired) throw expired;
  return after;
}

function beheaded({ first, oldest }: Missing): Fault {
  return new Fault(
    'cursor_expired',
    `the beginning of this stream is no longer kept; ${first} is the first that is gone`,
    {
      details: { oldest, first_unavailable: first },
    },
  );
}

/** Throws for readers that may not read; an expired cursor is returned, because streams and ranges report it differently. */
export async function readable(
  bridge: Bridge,
  actor: Actor,
  stream: Stream,
  after: Cursor | 'now' | undefined,
): Promise<Fault | undefined> {
  try {
    for await (const _ of bridge.follow(actor, { stream, ...(after && { after }) }, AbortSignal.abort())) break;
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.kind === 'cursor_expired') return thrown;
    throw thrown;
  }
}
