/**
 * The Cedar evaluator, loaded on first use and kept alive. It lives in WebAssembly, where one stack overflow spoils
 * the instance for good: whatever throws inside it gets a new instance, and policy sets are parsed again on demand.
 */
import { createRequire } from 'node:module';
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs';

/** A parsed set stays in the evaluator until its slot is taken by another: memory is bounded over any number of reloads. */
const SLOTS = 256;

export interface CedarRuntime {
  /** Runs one call; undefined when the evaluator broke down over it (and has been replaced). */
  call<T>(use: (cedar: typeof Cedar) => T): T | undefined;
  /** Parses `text` under `key` unless it is already there, and returns the id to evaluate it by. */
  prepare(key: string, text: () => string): string | undefined;
  /** How often the evaluator had to be replaced. */
  readonly revived: number;
}

let shared: CedarRuntime | undefined;

/** One per process: policy sets are told apart by their keys. */
export function cedarRuntime(): CedarRuntime {
  shared ??= createCedarRuntime();
  return shared;
}

export function createCedarRuntime(slots = SLOTS): CedarRuntime {
  const require = createRequire(import.meta.url);
  const path = require.resolve('@cedar-policy/cedar-wasm/nodejs');
  let cedar: typeof Cedar | undefined;
  let revived = 0;
  /** Key to slot, least recently used first. */
  const taken = new Map<string, string>();
  let free = slotNames(slots);

  const call = <T>(use: (cedar: typeof Cedar) => T): T | undefined => {
    cedar ??= load();
    try {
      return use(cedar);
    } catch {
      taken.clear();
      free = slotNames(slots);
      revived += 1;
      cedar = undefined;
      return undefined;
    }
  };
  const load = (): typeof Cedar => {
    delete require.cache[path];
    return require(path) as typeof Cedar;
  };

  return {
    call,
    prepare(key, text) {
      const known = taken.get(key);
      if (known !== undefined) {
        // Moving to the end on every use would cost more than it saves while there is room.
        if (taken.size >= slots) {
          taken.delete(key);
          taken.set(key, known);
        }
        return known;
      }
      const slot = free.pop() ?? evictOldest(taken);
      const answer = call((use) => use.preparsePolicySet(slot, { staticPolicies: text() }));
      if (answer?.type === 'success') {
        taken.set(key, slot);
        return slot;
      }
      // After a breakdown every slot is free already.
      if (answer) free.push(slot);
      return undefined;
    },
    get revived() {
      return revived;
    },
  };
}

function slotNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `slot${index}`);
}

function evictOldest(taken: Map<string, string>): string {
  const [key, slot] = taken.entries().next().value as [string, string];
  taken.delete(key);
  return slot;
}
