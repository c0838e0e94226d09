/** Somebody of the modern era who listens at the common address: lists are its own to tell of, resources and tasks are their servers'. */
import { CHANGES, META } from '../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import type { StopSignal } from '../../src/wire/stop.ts';
import type { Caller } from './caller.ts';
import type { CommonLists, ListParts } from './common-lists.ts';
import { isObject, metaOf, type Notice, notice, type Outcome, type Request } from './frames.ts';
import type { ListChanges } from './list-changes.ts';
import { uriOf } from './names.ts';

export interface ListenParts {
  readonly lists: Pick<CommonLists, 'servers'>;
  readonly changes: ListChanges;
  readonly at: ListParts['at'];
}

/** Until whoever listens no longer does. */
export async function listenInCommon(
  { id, params = {} }: Request,
  caller: Caller,
  { lists, changes, at }: ListenParts,
): Promise<Outcome> {
  const mark = { [META.subscription]: id };
  const wishes = isObject(params.notifications) ? params.notifications : {};
  const tell = ({ method, params: about }: Notice) =>
    caller.notify(notice(method, { ...about, _meta: { ...metaOf(about), ...mark } }));
  const places = placesIn(wishes, await lists.servers(caller));
  const granted = {
    ...Object.fromEntries(CHANGES.flatMap(({ wish }) => (wishes[wish] === true ? [[wish, true]] : []))),
    ...gathered(places, ({ said }) => said),
  };
  const stop = await changes.listen(wishes, caller, tell);
  try {
    tell(notice('notifications/subscriptions/acknowledged', { notifications: granted }));
    const heard = (said: Notice) => {
      if (said.method === 'notifications/resources/updated' || said.method === 'notifications/tasks') tell(said);
    };
    for (const server of new Set(places.map((place) => place.server))) {
      const its = places.filter((place) => place.server === server);
      const there = {
        ...(params._meta !== undefined && { _meta: params._meta }),
        notifications: gathered(its, ({ uri }) => uri),
      };
      const asked: Request = { jsonrpc: '2.0', id, method: 'subscriptions/listen', params: there };
      at(server, asked, { ...caller, notify: heard }).catch(() => {});
    }
    await gone(caller.signal);
    return { result: { resultType: 'complete', _meta: mark } };
  } finally {
    stop();
  }
}

const NAMING = ['resourceSubscriptions', 'taskIds'] as const;

interface Place {
  readonly wish: (typeof NAMING)[number];
  /** As it is called here, and at its server. */
  readonly said: Json;
  readonly uri: string;
  readonly server: string;
}

/** Resources and tasks somebody wants to hear about, at servers that are here. */
function placesIn(wishes: JsonObject, servers: readonly string[]): readonly Place[] {
  return NAMING.flatMap((wish) => {
    const wanted = wishes[wish];
    return (Array.isArray(wanted) ? wanted : []).flatMap((said) => {
      const place = uriOf(said);
      return place && servers.includes(place.server) ? [{ wish, said, ...place }] : [];
    });
  });
}

function gathered(places: readonly Place[], name: (place: Place) => Json): JsonObject {
  const lists = NAMING.map((wish) => [wish, places.flatMap((place) => (place.wish === wish ? [name(place)] : []))]);
  return Object.fromEntries(lists.filter(([, names]) => names!.length > 0));
}

function gone(signal: StopSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
