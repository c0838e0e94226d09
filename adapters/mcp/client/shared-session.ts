/**
 * One legacy session that many sessions of one caller use, for a server that keeps no state per session. Requests, their progress and
 * their cancellation go by ids of ours, and updates by the resources that a session subscribed to. What cannot be attributed to one
 * session is refused or dropped: questions and log messages of the server, its tasks, and notifications of the clients.
 */
import { CODES } from '../../../mappings/mcp.ts';
import { asText, isObject, type JsonObject } from '../../../src/index.ts';
import { backgroundContext } from '../background-context.ts';
import { type FrameOutcome, failed } from '../frames.ts';
import type { McpRequestContext, SessionContext } from '../request-context.ts';
import type { UpstreamSession } from './legacy-session.ts';
import { createResponseTimeout, type ResponseTimeout } from './timeout.ts';

/** Said to servers and clients about a message that cannot be attributed to one session. */
export const NOT_SHARED = 'sessions share this server (share: true), so this cannot be attributed to one of them';

const UNSUBSCRIBE_MS = 10_000;
/** Holds the subscriptions of callers without sessions, which nothing ends. */
const SESSIONLESS = {};

export function shareSession(upstream: UpstreamSession): UpstreamSession {
  /** Sessions that use it, each with the function that removes it. */
  const members = new Map<SessionContext, () => void>();
  /** The sessions that are subscribed to each resource. */
  const holders = new Map<string, Set<object>>();

  upstream.onChange((notice) => {
    const uri = notice.method === 'notifications/resources/updated' ? asText(notice.params?.uri) : undefined;
    for (const session of members.keys()) {
      if (uri === undefined || holders.get(uri)?.has(session)) session.notify(notice);
    }
  });

  void upstream.gone
    .finally(() => {
      holders.clear();
      for (const leave of [...members.values()]) leave();
    })
    .catch(() => {});

  /** A session that has left joins again with its next request. */
  function join(session: SessionContext): void {
    if (members.has(session) || session.ended.aborted) return;
    const leave = () => {
      stay();
      session.ended.removeEventListener('abort', leave);
      members.delete(session);
      for (const [uri, held] of holders) if (held.has(session)) release(uri, session);
    };
    const stay = session.onLeave(leave);
    session.ended.addEventListener('abort', leave, { once: true });
    members.set(session, leave);
  }

  /** Ends the holder's subscription. True when it was the last one, so that the server need not send updates any more. */
  function letGo(uri: string, holder: object): boolean {
    const held = holders.get(uri);
    if (!held) return true;
    held.delete(holder);
    return held.size === 0 && holders.delete(uri);
  }

  function release(uri: string, holder: object): void {
    if (!letGo(uri, holder)) return;
    const timeout = createResponseTimeout(new AbortController().signal, UNSUBSCRIBE_MS, UNSUBSCRIBE_MS);
    upstream
      .call('resources/unsubscribe', { uri }, backgroundContext(), timeout)
      .catch(() => {})
      .finally(() => timeout.end());
  }

  async function subscribe(
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const uri = asText(params.uri);
    const holder = context.session ?? SESSIONLESS;
    const held = holders.get(uri) ?? new Set();
    const before = held.has(holder);
    // Held before the server is asked: another session that ends its subscription meanwhile must not end this one.
    holders.set(uri, held.add(holder));
    const outcome = await upstream.call('resources/subscribe', params, context, timeout).catch((cause) => {
      if (!before) letGo(uri, holder);
      throw cause;
    });
    if ('error' in outcome && !before) letGo(uri, holder);
    return outcome;
  }

  return {
    ...upstream,
    about: shareable(upstream.about),
    get busy() {
      return upstream.busy || members.size > 0;
    },
    async call(method, params, context, timeout) {
      if (context.session) join(context.session);
      if (method === 'logging/setLevel' || method.startsWith('tasks/')) {
        return failed(CODES.methodNotFound, `${method}: ${NOT_SHARED}`);
      }
      if (params.task !== undefined) return failed(CODES.invalidParams, `${method} as a task: ${NOT_SHARED}`);
      if (method === 'resources/subscribe') return await subscribe(params, context, timeout);
      const kept = method === 'resources/unsubscribe' && !letGo(asText(params.uri), context.session ?? SESSIONLESS);
      return kept ? { result: {} } : await upstream.call(method, params, context, timeout);
    },
    /** `notifications/initialized` was sent when the session was opened; every other one is about a single client. */
    async notify() {},
  };
}

/** The server's answer to `initialize`, without abilities that need a session for each client. */
function shareable(about: JsonObject): JsonObject {
  if (!isObject(about.capabilities)) return about;
  const { logging: _l, tasks: _t, ...capabilities } = about.capabilities;
  return { ...about, capabilities };
}
