/**
 * The lists of prompts, resources and resource templates that a server has returned, for addresses that serve more than one server. An
 * answer is kept for as long as its server says, or while the connection is open on which the server announces changes. It is kept
 * by principal and capabilities, since a server may list other entries to others, and by the caller's era, in whose words it is. A caller
 * with a session of its own at the server gets that session's lists. A list in several pages is not kept: its cursors belong to one session.
 */
import { CHANGES } from '../../../mappings/mcp.ts';
import { type Clock, isObject, type JsonObject, LruMap, own } from '../../../src/index.ts';
import type { FrameOutcome } from '../frames.ts';
import type { McpRequestContext } from '../request-context.ts';
import type { Eras } from './eras.ts';
import { type LegacyPeers, poolKey } from './legacy-peers.ts';

export interface KnownLists {
  /** The kept answer, or the one that `read` gets from the server. */
  answer(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    read: () => Promise<FrameOutcome>,
  ): Promise<FrameOutcome>;
  /** The server has announced a change of this list, in one session or to all. */
  changed(list: string, source?: string): void;
  /** A session is over. */
  gone(source: string): void;
  /** The changes that a modern server announces from now on: the `notifications` it has granted, or none when it is no longer listened to. */
  announced(granted: JsonObject): void;
}

interface KnownListsDeps {
  readonly eras: Eras;
  readonly legacy: LegacyPeers;
  readonly clock: Clock;
}

interface Kept {
  readonly outcome: FrameOutcome;
  readonly list: string;
  /** The session it was read in, or the connection that all callers of a modern server share. */
  readonly source: string;
  readonly until: number;
}

const MODERN_SOURCE = 'modern';
const MOST_LISTS = 100;
const LONGEST_TEXT = 128 * 1024;
/** An announcement can be lost, over HTTP with the stream that would have carried it. */
const LONGEST_MS = 5 * 60_000;

export function createKnownLists({ eras, legacy, clock }: KnownListsDeps): KnownLists {
  const kept = new LruMap<string, Kept>(MOST_LISTS);
  /** Counted up with every change: an answer that was on its way meanwhile is not kept. */
  let changes = 0;
  let granted: JsonObject = {};
  const now = () => Date.parse(clock.now());

  function drop(isDropped: (entry: Kept) => boolean): void {
    changes += 1;
    for (const [key, entry] of [...kept]) if (isDropped(entry)) kept.delete(key);
  }

  function find(keys: readonly string[], context: McpRequestContext): FrameOutcome | undefined {
    const session = legacy.keyOf(context);
    const isOpen = legacy.any(session)?.key === session;
    for (const key of keys) {
      const entry = kept.get(key);
      if (entry && entry.until > now() && (!isOpen || entry.source === session)) return entry.outcome;
    }
    return undefined;
  }

  /** Where the answer was read, and for how long it holds there. */
  async function sourceOf(
    { list, wish }: Changing,
    result: JsonObject,
    context: McpRequestContext,
  ): Promise<{ readonly source: string; readonly ms: number }> {
    if ((await eras.of(context)) === 'modern') {
      const stated = typeof result.ttlMs === 'number' ? result.ttlMs : 0;
      return { source: MODERN_SOURCE, ms: own(granted, wish) === true ? LONGEST_MS : Math.min(stated, LONGEST_MS) };
    }
    const source = legacy.keyOf(context);
    const session = legacy.any(source);
    const { capabilities } = session?.key === source ? (await session.session).about : {};
    const declared = isObject(capabilities) ? capabilities[list] : undefined;
    return { source, ms: isObject(declared) && declared.listChanged === true ? LONGEST_MS : 0 };
  }

  return {
    async answer(method, params, context, read) {
      const row = CHANGES.find(({ methods }) => (methods as readonly string[]).includes(method));
      if (!row || row.list === 'tools' || params.cursor !== undefined) return await read();
      const keyFor = (scope: string) => JSON.stringify([context.era, method, scope]);
      const keys = [keyFor(poolKey(context)), keyFor(EVERYBODY)] as const;
      const known = find(keys, context);
      if (known) return known;
      const before = changes;
      const outcome = await read();
      if ('error' in outcome || outcome.result.nextCursor !== undefined) return outcome;
      const { source, ms } = await sourceOf(row, outcome.result, context);
      if (ms > 0 && changes === before && JSON.stringify(outcome).length <= LONGEST_TEXT) {
        const shared = source === MODERN_SOURCE && outcome.result.cacheScope === 'public';
        kept.set(keys[shared ? 1 : 0], { outcome, list: row.list, source, until: now() + ms });
      }
      return outcome;
    },
    changed: (list, source) => drop((entry) => entry.list === list && (source ?? entry.source) === entry.source),
    gone: (source) => drop((entry) => entry.source === source),
    announced(notifications) {
      granted = notifications;
      drop(({ source }) => source === MODERN_SOURCE);
    },
  };
}

type Changing = (typeof CHANGES)[number];
/** The scope of an answer that its server allows to be shared. */
const EVERYBODY = '';
