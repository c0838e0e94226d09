/**
 * The keyed digest by which a decision names the arguments it covers. Each act asks for it twice, when it is decided and just before
 * it runs; the second request finds the digest by the canonical text, so that only the first one computes an HMAC.
 */

import type { JsonObject } from '../../model/schema.ts';
import { LruMap } from '../../model/values/lru-map.ts';

export type ArgumentsDigest = (args: JsonObject) => string;

/** About as many acts as are at any time between decision and start. An act beyond these is computed again. */
const REMEMBERED = 256;
/** Longer arguments are computed again: caching them would let callers fill the memory. */
const LONGEST_TEXT = 2_048;

export function createArgumentsDigest(
  canonical: (value: JsonObject) => string,
  mac: (text: string) => string,
): ArgumentsDigest {
  const known = new LruMap<string, string>(REMEMBERED);
  return (args) => {
    const text = canonical(args);
    const found = known.get(text);
    if (found !== undefined) return found;
    const digest = mac(text);
    if (text.length <= LONGEST_TEXT) known.set(text, digest);
    return digest;
  };
}
