/**
 * Sessions with a server of the legacy era. Each legacy client has one of its own, opened with its own `initialize` and closed
 * with it; modern clients, which have no sessions, share one per principal and capabilities while they use it. Of a server that may
 * be shared, all clients of one principal use one session, whose client is the gateway and can be asked nothing.
 */
import { createHash } from 'node:crypto';
import { LATEST_LEGACY, LEGACY } from '../../../mappings/mcp.ts';
import { canonicalJson, Fault, type JsonObject } from '../../../src/index.ts';
import type { FrameOutcome, Notice } from '../frames.ts';
import type { McpRequestContext, SessionContext } from '../request-context.ts';
import { createIdle, type Idle } from './idle.ts';
import { type OpenWire, openSession, type UpstreamSession } from './legacy-session.ts';
import { shareSession } from './shared-session.ts';
import { createResponseTimeout, type ResponseTimeout, unlessStopped } from './timeout.ts';
import { SessionGone } from './transport/http.ts';

export interface LegacyPeers {
  /** Opens the session of a client, with the params of its `initialize`. */
  open(
    session: SessionContext,
    opening: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<UpstreamSession>;
  call(method: string, params: JsonObject, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome>;
  notify(session: SessionContext, notice: Notice): Promise<void>;
  /** The session a client's requests go to. */
  of(context: McpRequestContext, timeout: ResponseTimeout): Promise<UpstreamSession>;
  /** The name of the session that a client's requests go to. */
  keyOf(context: McpRequestContext): string;
  /** An open session, of this name where it is given: for requests whose answer is the same for all callers. */
  any(key?: string): { readonly key: string; readonly session: Promise<UpstreamSession> } | undefined;
  /** A session has announced a change. */
  onChange(listener: (notice: Notice, key: string) => void): void;
  /** A session is over. */
  onGone(listener: (key: string) => void): void;
  close(): Promise<void>;
}

interface Kept {
  readonly session: Promise<UpstreamSession>;
  /** The same, once it is open. */
  made: UpstreamSession | undefined;
  readonly opening: JsonObject;
  readonly owner: SessionContext | undefined;
  readonly idle: Idle;
}

export function createLegacyPeers(
  transport: OpenWire,
  client: JsonObject,
  { idleMs, startMs, share }: { readonly idleMs: number; readonly startMs: number; readonly share: boolean },
  /** Receives refused frames of the server that belong to no call. */
  refused?: (method: string, reason: string) => void,
): LegacyPeers {
  const kept = new Map<string, Kept>();
  const listeners = new Set<(notice: Notice, key: string) => void>();
  const leaving = new Set<(key: string) => void>();

  function open(key: string, opening: JsonObject, owner: SessionContext | undefined, ready = false): Kept {
    // Not the time of the request that needs the session first: others wait for it too, and a program starts only once.
    const starting = createResponseTimeout(owner?.ended ?? new AbortController().signal, startMs, startMs);
    const session = openSession(transport, opening, owner, starting, refused, share)
      .then(async (made) => {
        if (ready && owner) await made.notify(READY);
        return share ? shareSession(made) : made;
      })
      .catch((thrown) => {
        const expired = starting.reason(thrown) !== thrown;
        const late = `the server did not open a session within ${Math.ceil(startMs / 1000)} s (start_timeout_ms)`;
        throw expired ? new Fault('upstream_unavailable', late) : thrown;
      })
      .finally(() => starting.end());
    const idle = createIdle(idleMs, () => {
      session.then((made) => (made.busy ? idle.used() : void drop(key))).catch(() => {});
    });
    const entry: Kept = { session, made: undefined, opening, owner, idle };
    kept.set(key, entry);
    session.then(
      (made) => {
        entry.made = made;
        for (const listener of listeners) made.onChange((notice) => listener(notice, key));
        made.gone
          .finally(() => {
            if (kept.get(key) === entry) kept.delete(key);
            if (!kept.has(key)) for (const left of leaving) left(key);
          })
          .catch(() => {});
      },
      () => kept.get(key) === entry && kept.delete(key),
    );
    if (owner) {
      const ended = () => void drop(key);
      const left = owner.onLeave(() => entry.made && !entry.made.busy && void drop(key));
      owner.ended.addEventListener('abort', ended, { once: true });
      // The client's session may last far longer, and a listener would keep the connection and its buffers in memory.
      void session
        .then(({ gone }) => gone)
        .finally(() => {
          left();
          owner.ended.removeEventListener('abort', ended);
        })
        .catch(() => {});
    }
    return entry;
  }

  async function drop(key: string): Promise<void> {
    const entry = kept.get(key);
    if (!entry) return;
    kept.delete(key);
    entry.idle.stop();
    await entry.session.then((session) => session.close()).catch(() => {});
  }

  /** The params of a legacy client's `initialize`, so that a lost session can be opened again. */
  const openings = new WeakMap<SessionContext, JsonObject>();

  function keyOf(context: McpRequestContext): string {
    const { session, principal } = context;
    if (share) return `h:${versionFor(session)}:${principal}`;
    return session ? `s:${session.id}` : poolKey(context);
  }

  /** The revision that a session of a shared server is opened with. Clients choose among the known ones, so that there are few. */
  function versionFor(session: SessionContext | undefined): string {
    const wanted = session && openings.get(session)?.protocolVersion;
    return LEGACY.find((each) => each === wanted) ?? LATEST_LEGACY;
  }

  function entryFor(context: McpRequestContext): [string, Kept] {
    const { session } = context;
    const key = keyOf(context);
    const known = kept.get(key);
    if (known) return [key, known];
    if (share) {
      const opening = { protocolVersion: versionFor(session), capabilities: {}, clientInfo: client };
      return [key, open(key, opening, undefined)];
    }
    const opening = session && openings.get(session);
    // A client that has not said who it is, because it sent no `initialize` first, is answered all the same.
    const clientInfo = session && Object.keys(context.client).length > 0 ? context.client : client;
    const own = { protocolVersion: LATEST_LEGACY, capabilities: shareable(context.capabilities), clientInfo };
    // The client has sent `notifications/initialized` before, here or at the common address.
    return [key, open(key, opening ?? own, session, true)];
  }

  /** While a session opens, its server is not silent but starting. */
  function opened({ made, session }: Kept, timeout: ResponseTimeout): UpstreamSession | Promise<UpstreamSession> {
    return made ?? timeout.during(unlessStopped(session, timeout.signal));
  }

  /** A client's own session is closed with its client, not when idle. */
  function rest({ owner, idle }: Kept): void {
    if (!owner) idle.used();
  }

  return {
    async open(session, opening, context, timeout) {
      openings.set(session, opening);
      if (share) return await this.of(context, timeout);
      return await opened(open(`s:${session.id}`, opening, session), timeout);
    },
    async of(context, timeout) {
      const [, entry] = entryFor(context);
      rest(entry);
      return await opened(entry, timeout);
    },
    async call(method, params, context, timeout) {
      for (let again = false; ; again = true) {
        const [key, entry] = entryFor(context);
        try {
          return await (await opened(entry, timeout)).call(method, params, context, timeout);
        } catch (cause) {
          if (!(cause instanceof SessionGone)) throw cause;
          // The server never saw the request: a new session may ask again.
          if (kept.get(key) === entry) kept.delete(key);
          void entry.session.then((session) => session.close()).catch(() => {});
          if (again) throw cause;
        } finally {
          rest(entry);
        }
      }
    },
    async notify(session, notice) {
      // A shared session was opened by the gateway, and a notification says nothing about which client sent it.
      if (share) return;
      await (await kept.get(`s:${session.id}`)?.session)?.notify(notice);
    },
    keyOf,
    any(wanted) {
      const found = wanted === undefined ? undefined : kept.get(wanted);
      if (found && wanted !== undefined) return { key: wanted, session: found.session };
      const [first] = kept;
      return first && { key: first[0], session: first[1].session };
    },
    onChange(listener) {
      listeners.add(listener);
    },
    onGone(listener) {
      leaving.add(listener);
    },
    async close() {
      await Promise.all([...kept.keys()].map(drop));
    },
  };
}

const READY = { jsonrpc: '2.0', method: 'notifications/initialized' } as const;

/** A principal with these capabilities: callers of one share what a server says to one of them. */
export function poolKey({ principal, capabilities }: McpRequestContext): string {
  return `p:${principal}:${createHash('sha256').update(canonicalJson(capabilities)).digest('base64url')}`;
}

/** The extensions of the modern era have no meaning there. */
function shareable({ extensions: _, ...capabilities }: JsonObject): JsonObject {
  return capabilities;
}
