/**
 * Sessions with a server of the legacy era. Each legacy client has one of its own, opened with its own `initialize` and closed
 * with it; modern clients, which have no sessions, share one per principal and capabilities while they use it.
 */
import { createHash } from 'node:crypto';
import { LATEST_LEGACY } from '../../../mappings/mcp.ts';
import { canonicalJson, type JsonObject } from '../../../src/index.ts';
import type { FrameOutcome, Notice } from '../frames.ts';
import type { McpRequestContext, SessionContext } from '../request-context.ts';
import { createIdle, type Idle } from './idle.ts';
import { type OpenWire, openSession, type UpstreamSession } from './legacy-session.ts';
import type { ResponseTimeout } from './timeout.ts';
import { SessionGone } from './transport/http.ts';

export interface LegacyPeers {
  /** Opens the session of a client, with the params of its `initialize`. */
  open(session: SessionContext, opening: JsonObject, timeout: ResponseTimeout): Promise<UpstreamSession>;
  call(method: string, params: JsonObject, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome>;
  notify(session: SessionContext, notice: Notice): Promise<void>;
  /** The session a client's requests go to. */
  of(context: McpRequestContext, timeout: ResponseTimeout): Promise<UpstreamSession>;
  /** Any open session: for requests whose answer is the same for all callers. */
  any(): Promise<UpstreamSession> | undefined;
  onChange(listener: (notice: Notice) => void): void;
  close(): Promise<void>;
}

interface Kept {
  readonly session: Promise<UpstreamSession>;
  readonly opening: JsonObject;
  readonly owner: SessionContext | undefined;
  readonly idle: Idle;
}

export function createLegacyPeers(
  transport: OpenWire,
  client: JsonObject,
  idleMs: number,
  /** Receives refused frames of the server that belong to no call. */
  refused?: (method: string, reason: string) => void,
): LegacyPeers {
  const kept = new Map<string, Kept>();
  const listeners = new Set<(notice: Notice) => void>();

  function open(
    key: string,
    opening: JsonObject,
    owner: SessionContext | undefined,
    timeout: ResponseTimeout,
    ready = false,
  ): Kept {
    const session = openSession(transport, opening, owner, timeout, refused).then(async (made) => {
      if (ready && owner) await made.notify(READY);
      return made;
    });
    const idle = createIdle(idleMs, () => {
      session.then((made) => (made.busy ? idle.used() : void drop(key))).catch(() => {});
    });
    const entry: Kept = { session, opening, owner, idle };
    kept.set(key, entry);
    session.then(
      (made) => {
        for (const listener of listeners) made.onChange(listener);
        made.gone.finally(() => kept.get(key) === entry && kept.delete(key)).catch(() => {});
      },
      () => kept.get(key) === entry && kept.delete(key),
    );
    if (owner) owner.ended.addEventListener('abort', () => void drop(key), { once: true });
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

  function entryFor(context: McpRequestContext, timeout: ResponseTimeout): [string, Kept] {
    const { session } = context;
    const key = session ? `s:${session.id}` : poolKey(context);
    const known = kept.get(key);
    if (known) return [key, known];
    const opening = session && openings.get(session);
    const clientInfo = session ? context.client : client;
    const own = { protocolVersion: LATEST_LEGACY, capabilities: shareable(context.capabilities), clientInfo };
    // The client has sent `notifications/initialized` before, here or at the common address.
    return [key, open(key, opening ?? own, session, timeout, true)];
  }

  /** A client's own session is closed with its client, not when idle. */
  function rest({ owner, idle }: Kept): void {
    if (!owner) idle.used();
  }

  return {
    async open(session, opening, timeout) {
      openings.set(session, opening);
      return await open(`s:${session.id}`, opening, session, timeout).session;
    },
    async of(context, timeout) {
      const [, entry] = entryFor(context, timeout);
      rest(entry);
      return await entry.session;
    },
    async call(method, params, context, timeout) {
      for (let again = false; ; again = true) {
        const [key, entry] = entryFor(context, timeout);
        try {
          return await (await entry.session).call(method, params, context, timeout);
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
      await (await kept.get(`s:${session.id}`)?.session)?.notify(notice);
    },
    any: () => [...kept.values()][0]?.session,
    onChange(listener) {
      listeners.add(listener);
    },
    async close() {
      await Promise.all([...kept.keys()].map(drop));
    },
  };
}

const READY = { jsonrpc: '2.0', method: 'notifications/initialized' } as const;

function poolKey({ principal, capabilities }: McpRequestContext): string {
  return `p:${principal}:${createHash('sha256').update(canonicalJson(capabilities)).digest('base64url')}`;
}

/** The extensions of the modern era have no meaning there. */
function shareable({ extensions: _, ...capabilities }: JsonObject): JsonObject {
  return capabilities;
}
