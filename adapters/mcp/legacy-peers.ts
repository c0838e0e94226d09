/**
 * Sessions with a server of the legacy era. A client of that era has one of its own, opened with its own words and closed
 * with it; clients of the modern era, who have none, share one per person and abilities while they use it.
 */
import { createHash } from 'node:crypto';
import { LATEST_LEGACY } from '../../mappings/mcp.ts';
import { canonicalJson, type JsonObject } from '../../src/index.ts';
import type { Notice, Outcome } from './frames.ts';
import { createIdle, type Idle } from './idle.ts';
import type { McpLine, SessionLine } from './line.ts';
import type { Patience } from './patience.ts';
import { SessionGone } from './south-http.ts';
import { type OpenWire, openSession, type UpstreamSession } from './south-session.ts';

export interface LegacyPeers {
  /** Opens the session of a client, with what the client said. */
  open(session: SessionLine, opening: JsonObject, patience: Patience): Promise<UpstreamSession>;
  call(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome>;
  notify(session: SessionLine, notice: Notice): Promise<void>;
  /** The session a client's requests go to. */
  of(line: McpLine, patience: Patience): Promise<UpstreamSession>;
  /** Any that is open: for what is the same to everyone. */
  any(): Promise<UpstreamSession> | undefined;
  onChange(heard: (notice: Notice) => void): void;
  close(): Promise<void>;
}

interface Kept {
  readonly session: Promise<UpstreamSession>;
  readonly opening: JsonObject;
  readonly owner: SessionLine | undefined;
  readonly idle: Idle;
}

export function createLegacyPeers(way: OpenWire, client: JsonObject, idleMs: number): LegacyPeers {
  const kept = new Map<string, Kept>();
  const listeners = new Set<(notice: Notice) => void>();

  function open(
    key: string,
    opening: JsonObject,
    owner: SessionLine | undefined,
    patience: Patience,
    ready = false,
  ): Kept {
    const session = openSession(way, opening, owner, patience).then(async (made) => {
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
        for (const heard of listeners) made.onChange(heard);
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

  /** What a client of the legacy era opened with is remembered, so that a lost session can be opened again. */
  const openings = new WeakMap<SessionLine, JsonObject>();

  function entryFor(line: McpLine, patience: Patience): [string, Kept] {
    const { session } = line;
    const key = session ? `s:${session.id}` : poolKey(line);
    const known = kept.get(key);
    if (known) return [key, known];
    const opening = session && openings.get(session);
    const clientInfo = session ? line.client : client;
    const own = { protocolVersion: LATEST_LEGACY, capabilities: shareable(line.capabilities), clientInfo };
    // Its client has long since said that it is ready, here or at an address that stands for more than this server.
    return [key, open(key, opening ?? own, session, patience, true)];
  }

  /** One of a client goes with its client. */
  function rest({ owner, idle }: Kept): void {
    if (!owner) idle.used();
  }

  return {
    async open(session, opening, patience) {
      openings.set(session, opening);
      return await open(`s:${session.id}`, opening, session, patience).session;
    },
    async of(line, patience) {
      const [, entry] = entryFor(line, patience);
      rest(entry);
      return await entry.session;
    },
    async call(method, params, line, patience) {
      for (let again = false; ; again = true) {
        const [key, entry] = entryFor(line, patience);
        try {
          return await (await entry.session).call(method, params, line, patience);
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
    onChange(heard) {
      listeners.add(heard);
    },
    async close() {
      await Promise.all([...kept.keys()].map(drop));
    },
  };
}

const READY = { jsonrpc: '2.0', method: 'notifications/initialized' } as const;

function poolKey({ principal, capabilities }: McpLine): string {
  return `p:${principal}:${createHash('sha256').update(canonicalJson(capabilities)).digest('base64url')}`;
}

/** Tasks and extensions of the modern era mean nothing there. */
function shareable({ extensions: _, ...capabilities }: JsonObject): JsonObject {
  return capabilities;
}
