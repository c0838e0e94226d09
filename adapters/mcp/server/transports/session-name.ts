/**
 * Names of sessions that another replica can go on with. What the client said at `initialize` is in the name, and a proof that this
 * installation wrote it for this caller at this address: so no row is kept for a session, and one whose replica is gone can be opened
 * again by any other. It opens nothing that the same caller could not open with an `initialize` of its own.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { isObject, type JsonObject } from '../../../../src/index.ts';

export interface SessionNames {
  /** A new name. `said` are the params of `initialize`. */
  make(said: JsonObject | undefined, owner: string): string;
  /** What was said when this name was made for this owner; undefined for every other name. */
  read(name: string, owner: string): JsonObject | undefined;
}

export interface SessionNamesDeps {
  /** What ends each name; empty where there are no other replicas. */
  readonly mark: () => string;
  readonly mac: ((text: string) => string) | undefined;
  readonly now?: () => number;
}

/** Headers are limited; a client that says more begins anew. */
const LONGEST = 2_000;
const MOST_BYTES = 64 * 1024;
const LIFETIME_MS = 24 * 3_600_000;
const NAME = /^([A-Za-z0-9_-]{24})\.([A-Za-z0-9_-]+)\.([0-9a-f]{64})~/;

export function createSessionNames({ mark, mac, now = Date.now }: SessionNamesDeps): SessionNames {
  const proofOf = (random: string, packed: string, owner: string) =>
    mac?.(JSON.stringify(['mcp-session', random, packed, owner])).replace(/^hmac-sha256:/, '') ?? '';

  return {
    make(said, owner) {
      const random = randomBytes(18).toString('base64url');
      const ending = mark();
      if (ending === '' || !mac) return random;
      const { protocolVersion, capabilities, clientInfo } = said ?? {};
      const text = JSON.stringify({ at: now(), said: { protocolVersion, capabilities, clientInfo } });
      const packed = deflateRawSync(text).toString('base64url');
      if (packed.length > LONGEST) return `${random}${ending}`;
      return `${random}.${packed}.${proofOf(random, packed, owner)}${ending}`;
    },
    read(name, owner) {
      const [, random = '', packed = '', proof = ''] = NAME.exec(name) ?? [];
      if (!random || packed.length > LONGEST || !same(proof, proofOf(random, packed, owner))) return undefined;
      const text = inflateRawSync(Buffer.from(packed, 'base64url'), { maxOutputLength: MOST_BYTES }).toString('utf8');
      const { at, said } = JSON.parse(text) as { at: number; said: unknown };
      return now() - at <= LIFETIME_MS && isObject(said) ? said : undefined;
    },
  };
}

function same(shown: string, right: string): boolean {
  const [one, other] = [Buffer.from(shown), Buffer.from(right)];
  return one.length > 0 && one.length === other.length && timingSafeEqual(one, other);
}
