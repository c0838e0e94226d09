/**
 * The whole log as someone who sees little of it reads it: workspace by workspace, put together by position. What others
 * write costs nothing, however much it is. Whoever sees most of what there is reads it straight through.
 */
import type { Actor } from '../model/actions.ts';
import type { CoreEvent, Stream } from '../model/events.ts';
import type { Workspace } from '../model/resources.ts';
import type { EventRange, Row, Store } from '../ports.ts';
import { type Access, seesOthers } from './access.ts';
import type { Owner } from './rows.ts';

const PAGE = 200;

/** Undefined: reading everything and leaving out what is hidden is the better way. */
export async function visibleEvents(
  store: Pick<Store, 'read' | 'tip' | 'list'>,
  access: Pick<Access, 'workspaceVisible'>,
  actor: Actor,
  range: EventRange,
): Promise<AsyncIterable<CoreEvent> | undefined> {
  if (actor.kind === 'system' || (range.stream.of !== 'all' && range.stream.of !== 'workspace')) return undefined;
  const own = seesOthers(actor) ? undefined : await sessionsOf(store, actor);
  if (own) {
    const events = await together(store, range, own);
    return events && range.stream.of === 'workspace' ? within(events, range.stream.id) : events;
  }
  if (range.stream.of !== 'all') return undefined;
  const { seen, all } = await workspacesOf(store, access, actor);
  if (seen.length * 2 > all) return undefined;
  return await together(
    store,
    range,
    seen.map((id) => ({ of: 'workspace', id })),
  );
}

async function together(store: Pick<Store, 'read' | 'tip'>, range: EventRange, streams: readonly Stream[]) {
  // All of them up to the same place: what is written meanwhile in one must not be passed by in another.
  const upTo = range.upTo ?? (await store.tip({ of: 'all' }));
  if (upTo === undefined) return undefined;
  return inOrder(streams.map((stream) => store.read({ ...range, stream, upTo })));
}

/** The sessions of one owner, while they are few enough to be read side by side. */
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
  let after: string | undefined;
  for (;;) {
    const page = await store.list<Workspace & Row>({ object: 'workspace', limit: PAGE, ...(after && { after }) });
    for (const { id } of page) if (await access.workspaceVisible(actor, id)) seen.push(id);
    all += page.length;
    after = page.at(-1)?.id;
    if (page.length < PAGE) return { seen, all };
  }
}

async function* within(
  events: AsyncIterable<CoreEvent>,
  workspaceId: string,
): AsyncGenerator<CoreEvent, void, undefined> {
  for await (const event of events) if (event.workspace_id === workspaceId) yield event;
}

/** Several streams of one log as one. Ids rise with the position, as text too. */
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
