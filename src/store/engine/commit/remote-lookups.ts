/**
 * Lookups for a database over a network. A decision is synchronous and pure: when it asks for something that is not loaded, it is
 * stopped, everything its batch asked for is loaded with one request, and it is made again.
 */
import type { Pointer } from '../../../model/resources.ts';
import type { ChainHead } from '../../../ports/index.ts';
import type { Lookups, RemoteLookups, StoredAnswer, StoredHead } from '../database.ts';

/** Thrown to stop a decision. */
export const NOT_LOADED = Symbol('not loaded');

export interface Wanted {
  readonly rows: readonly Pointer[];
  readonly heads: readonly Pointer[];
  readonly answers: readonly string[];
  readonly chains: readonly string[];
  readonly leases: readonly string[];
}
/** In the order of `Wanted`. */
export interface Loaded {
  readonly rows: readonly (string | null | undefined)[];
  readonly heads: readonly (StoredHead | undefined)[];
  readonly answers: readonly (StoredAnswer | undefined)[];
  readonly chains: readonly ChainHead[];
  readonly epochs: readonly number[];
}

export function createRemoteLookups(
  load: (wanted: Wanted) => Promise<Loaded>,
): Lookups & { readonly remote: RemoteLookups } {
  const rows = cache<Pointer, string | null | undefined>(keyOf);
  const heads = cache<Pointer, StoredHead | undefined>(keyOf);
  const answers = cache<string, StoredAnswer | undefined>(String);
  const chains = cache<string, ChainHead>(String);
  const epochs = cache<string, number>(String);
  const all = [rows, heads, answers, chains, epochs];
  return {
    row: (object, id) => rows.get({ object, id }),
    head: (object, id) => heads.get({ object, id }),
    answer: answers.get,
    chain: chains.get,
    epoch: epochs.get,
    remote: {
      get wanting() {
        return all.some(({ wanted }) => wanted.size > 0);
      },
      async load() {
        const [w, h, a, c, e] = [rows.take(), heads.take(), answers.take(), chains.take(), epochs.take()];
        const found = await load({ rows: w, heads: h, answers: a, chains: c, leases: e });
        rows.put(w, found.rows);
        heads.put(h, found.heads);
        answers.put(a, found.answers);
        chains.put(c, found.chains);
        epochs.put(e, found.epochs);
      },
      forget() {
        for (const { loaded, wanted } of all) {
          loaded.clear();
          wanted.clear();
        }
      },
    },
  };
}

function cache<K, V>(nameOf: (key: K) => string) {
  const loaded = new Map<string, V>();
  const wanted = new Map<string, K>();
  return {
    loaded,
    wanted,
    get(key: K): V {
      const name = nameOf(key);
      if (loaded.has(name)) return loaded.get(name) as V;
      wanted.set(name, key);
      throw NOT_LOADED;
    },
    take(): K[] {
      const keys = [...wanted.values()];
      wanted.clear();
      return keys;
    },
    put(keys: readonly K[], values: readonly V[]): void {
      for (const [at, key] of keys.entries()) loaded.set(nameOf(key), values[at] as V);
    },
  };
}

function keyOf({ object, id }: Pointer): string {
  return `${object}\n${id}`;
}
