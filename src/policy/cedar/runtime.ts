/**
 * The Cedar evaluator, loaded on first use and kept. It runs in WebAssembly, where one stack overflow ruins the instance for
 * good: after any exception the instance is replaced, and policy sets are parsed again on demand.
 */
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs';
import type { YieldTurn } from '../time-slices.ts';

/** A parsed set stays in the evaluator until another set takes its slot: memory is bounded over any number of reloads. */
const SLOTS = 256;

/**
 * V8 compiles a function of the evaluator a second time, with optimisation, once it has run about this many bytes of code: a
 * hundred times V8's default. The functions that parse the first rules reach the default while the process starts, and optimising
 * them took two fifths of the processor time of a start. The code a decision runs is optimised within the first thousand
 * decisions.
 */
const TIERING_BUDGET = 180_000_000;

export interface CedarRuntime {
  /** Runs one call; undefined when the evaluator threw (and has been replaced). */
  call<T>(use: (cedar: typeof Cedar) => T): T | undefined;
  /** Parses `text` under `key` unless it is already parsed, and returns the id for evaluating it. */
  prepare(key: string, text: () => string): string | undefined;
  /**
   * Exercises the evaluator a step at a time, so that its code is compiled and the first evaluation of new rules costs no more
   * than later ones. Resolves at once when that has been done.
   */
  warm(yieldTurn: YieldTurn): Promise<void>;
  /** How often the evaluator had to be replaced. */
  readonly revived: number;
}

let shared: CedarRuntime | undefined;

/** One per process: policy sets are distinguished by their keys. */
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
    // V8 reads the flag when it compiles a module, so it is set before every load.
    setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`);
    delete require.cache[path];
    return require(path) as typeof Cedar;
  };

  const prepare: CedarRuntime['prepare'] = (key, text) => {
    const known = taken.get(key);
    if (known !== undefined) {
      // Moving an entry to the end on every use would cost more than it saves while there are free slots.
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
    // After a replacement every slot is free already.
    if (answer) free.push(slot);
    return undefined;
  };

  let warmed: Promise<void> | undefined;
  /** Loading, reading a rule, parsing one and evaluating it each compile code of their own. */
  const steps: readonly (() => unknown)[] = [
    () => call((use) => use.getCedarVersion()),
    () => call((use) => use.policyToJson(ANY_RULE)),
    () => prepare('warm', () => ANY_RULE),
    () => {
      const preparsedPolicySetId = prepare('warm', () => ANY_RULE) ?? '';
      return call((use) => use.statefulIsAuthorized({ ...ANY_QUESTION, preparsedPolicySetId }));
    },
  ];
  const warmUp = async (yieldTurn: YieldTurn): Promise<void> => {
    for (const step of steps) {
      step();
      await yieldTurn();
    }
  };

  return {
    call,
    prepare,
    warm(yieldTurn) {
      warmed ??= warmUp(yieldTurn);
      return warmed;
    },
    get revived() {
      return revived;
    },
  };
}

/** Uses a little of everything: a scope, a presence test, a comparison, a pattern. */
const ANY_RULE =
  'permit(principal, action == Action::"tool", resource) when { context has tool && (context.tool == "a" || context.tool like "b*") };';
const ANY_QUESTION = {
  principal: { type: 'System', id: '-' },
  action: { type: 'Action', id: 'tool' },
  resource: { type: 'Workspace', id: '-' },
  context: { tool: 'bc' },
  entities: [],
};

function slotNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `slot${index}`);
}

function evictOldest(taken: Map<string, string>): string {
  const [key, slot] = taken.entries().next().value as [string, string];
  taken.delete(key);
  return slot;
}
