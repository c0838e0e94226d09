/** `subscriptions/listen` at the common address: the address announces list changes itself, servers announce resources and tasks. */
import { CHANGES, META } from '../../../../mappings/mcp.ts';
import { isObject, type Json, type JsonObject } from '../../../../src/index.ts';
import { type FrameOutcome, metaOf, type Notice, notice, type Request } from '../../frames.ts';
import type { Caller } from '../caller.ts';
import type { ListChanges } from '../list-changes.ts';
import type { CommonLists, ListParts } from './lists.ts';
import { uriOf } from './names.ts';

export interface ListenParts {
  readonly lists: Pick<CommonLists, 'servers'>;
  readonly changes: ListChanges;
  readonly at: ListParts['at'];
}

/** Returns when the client stops listening. */
export async function listenInCommon(
  { id, params = {} }: Request,
  caller: Caller,
  { lists, changes, at }: ListenParts,
): Promise<FrameOutcome> {
  const mark = { [META.subscription]: id };
  const wishes = isObject(params.notifications) ? params.notifications : {};
  const forward = ({ method, params: about }: Notice) =>
    caller.notify(notice(method, { ...about, _meta: { ...metaOf(about), ...mark } }));
  const subjects = subjectsIn(wishes, await lists.servers(caller));
  const granted = {
    ...Object.fromEntries(CHANGES.flatMap(({ wish }) => (wishes[wish] === true ? [[wish, true]] : []))),
    ...gathered(subjects, ({ said }) => said),
  };
  const stop = await changes.listen(wishes, caller, forward);
  try {
    forward(notice('notifications/subscriptions/acknowledged', { notifications: granted }));
    const received = (said: Notice) => {
      if (said.method === 'notifications/resources/updated' || said.method === 'notifications/tasks') forward(said);
    };
    for (const server of new Set(subjects.map((subject) => subject.server))) {
      const its = subjects.filter((subject) => subject.server === server);
      const there = {
        ...(params._meta !== undefined && { _meta: params._meta }),
        notifications: gathered(its, ({ uri }) => uri),
      };
      const asked: Request = { jsonrpc: '2.0', id, method: 'subscriptions/listen', params: there };
      at(server, asked, { ...caller, notify: received }).catch(() => {});
    }
    await gone(caller.signal);
    return { result: { resultType: 'complete', _meta: mark } };
  } finally {
    stop();
  }
}

const NAMING = ['resourceSubscriptions', 'taskIds'] as const;

interface Subject {
  readonly wish: (typeof NAMING)[number];
  /** Its name here, and at its server. */
  readonly said: Json;
  readonly uri: string;
  readonly server: string;
}

/** The resources and tasks that the client wants to listen to, at servers behind this address. */
function subjectsIn(wishes: JsonObject, servers: readonly string[]): readonly Subject[] {
  return NAMING.flatMap((wish) => {
    const wanted = wishes[wish];
    return (Array.isArray(wanted) ? wanted : []).flatMap((said) => {
      const subject = uriOf(said);
      return subject && servers.includes(subject.server) ? [{ wish, said, ...subject }] : [];
    });
  });
}

function gathered(subjects: readonly Subject[], name: (subject: Subject) => Json): JsonObject {
  const lists = NAMING.map((wish) => [
    wish,
    subjects.flatMap((subject) => (subject.wish === wish ? [name(subject)] : [])),
  ]);
  return Object.fromEntries(lists.filter(([, names]) => names!.length > 0));
}

function gone(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
