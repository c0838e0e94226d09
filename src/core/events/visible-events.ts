/**
 * Reads the whole log for an actor that sees little of it: stream by stream, merged by position, so that other principals' events
 * cost nothing. An actor that sees most of the log reads it straight through.
 */
import type { Actor } from '../../model/actions.ts';
import type { CoreEvent, Stream } from '../../model/events.ts';
import type { Workspace } from '../../model/resources.ts';
import { everyRow } from '../../model/values/every-row.ts';
import type { EventRange, Row, Store } from '../../ports/index.ts';
import { type Access, seesOthers } from '../access.ts';
import type { Owner } from './rows.ts';

const PAGE = 200;

/** Undefined: reading everything and filtering is cheaper. */
export async function visibleEvents(
  store: Pick<Store, 'read' | 'tip' | 'list'>,
  access: Pick<Access, 'workspaceVisible'>,
  actor: Actor,
  range: EventRange,
): Promise<AsyncIterable<CoreEvent> | undefined> {
  if (actor.kind === 'system' || (range.stream.of !== 'all' && range.stream.of !== 'workspace')) return undefined;
  const own = seesOthers(actor) ? undefined : await sessionsOf(store, actor);
  if (own) {
    const events = await merged(store, range, own);
    return events && range.stream.of === 'workspace' ? within(events, range.stream.id) : events;
  }
  if (range.stream.of !== 'all') return undefined;
  const { seen, all } = await workspacesOf(store, access, actor);
  if (seen.length * 2 > all) return undefined;
  return await merged(
    store,
    range,
    seen.map((id) => ({ of: 'workspace', id })),
  );
}

async function merged(store: Pick<Store, 'read' | 'tip'>, range: EventRange, streams: readonly Stream[]) {
  // All streams end at the same position: an event written meanwhile in one must not be skipped in another.
  const upTo = range.upTo ?? (await store.tip({ of: 'all' }));
  if (upTo === undefined) return undefined;
  return inOrder(streams.map((stream) => store.read({ ...range, stream, upTo })));
}

/** The sessions of one owner, while they are few enough to be merged. */
async function sessionsOf(store: Pick<Store, 'list'>, actor: Actor): Promise<readonly Stream[] | undefined> {
  const owner_id = [actor.id, ...(actor.on_behalf_of ? [actor.on_behalf_of] : [])];
  const owned = await store.list<Owner>({ object: 'owner', where: { owner_id }, limit: PAGE + 1 });
  if (owned.length > PAGE) return undefined;
  return owned.map(({ id }) => ({ of: 'session', id }));
}

async function workspacesOf(
  store: Pick<Store, 'list'>,
  access: Pick<Access, 'workspaceVisible'>,
  actor: Actor,
): Promise<{ readonly seen: readonly string[]; readonly all: number }> {
  const seen: string[] = [];
  let all = 0;
  for await (const { id } of everyRow((paging) => store.list<Workspace & Row>({ object: 'workspace', ...paging }))) {
    if (await access.workspaceVisible(actor, id)) seen.push(id);
    all += 1;
  }
  return { seen, all };
}

async function* within(
  events: AsyncIterable<CoreEvent>,
  workspaceId: string,
): AsyncGenerator<CoreEvent, void, undefined> {
  for await (const event of events) if (event.workspace_id === workspaceId) yield event;
}

/** Merges several streams of one log. Ids increase with the position, as text too. */
async function* inOrder(sources: readonly AsyncIterable<CoreEvent>[]): AsyncGenerator<CoreEvent, void, undefined> {
  const open = sources.map((source) => source[Symbol.asyncIterator]());
  const next = await Promise.all(open.map(async (one) => (await one.next()).value as CoreEvent | undefined));
  try {
    for (;;) {
      let first = -1;
      for (const [at, event] of next.entries()) {
        if (event && (first < 0 || event.id < next[first]!.id)) first = at;
      }
      const event = next[first];
      if (!event) return;
      yield event;
      next[first] = (await open[first]!.next()).value as CoreEvent | undefined;
    }
  } finally {
    await Promise.all(open.map((one) => one.return?.()));
  }
}
