/**
 * Rules that may change at run time. A new policy is read, checked and put in force in one step; one that cannot be read leaves
 * the old one in force and is reported. Before the first policy is in force every act is blocked.
 */
import { asFault, type Fault } from '../../model/faults.ts';
import type { ActReader } from '../../ports/index.ts';
import type { CompiledPolicies } from '../cedar/compiled.ts';
import { createCedarEngine } from '../cedar/engine.ts';
import { CEDAR } from '../cedar/verdict.ts';
import { block, type PureEngine, pureEngine } from '../engine.ts';
import { loadPolicies, type Sources, versionOf } from './load.ts';
import type { Mention } from './mentions.ts';
import type { Problem } from './problems.ts';
import { type WatchedPaths, watchPaths } from './watch.ts';

/** Sources that change at every read are refused after this many reads. */
const MAX_READS = 5;

export type PolicyChange = {
  readonly outcome: 'loaded' | 'refused';
  /** Version now in force; undefined when there has never been one. */
  readonly version: string | undefined;
  readonly rules: number;
  /** When refused: the version that was not accepted, if it could be read at all, and everything wrong with it. */
  readonly refused?: string;
  readonly errors: readonly Problem[];
};

export interface ReloadDeps {
  /** Reads the sources again at each call. */
  readonly load: () => Promise<Sources>;
  /** Called for every policy that came into force or was refused; not for reloads that changed nothing. */
  readonly onChange: (change: PolicyChange) => void;
  /** Files and directories to watch. */
  readonly watch?: readonly string[];
  readonly debounceMs?: number;
  readonly memoEntries?: number;
  /** Extracts what an act touches, for rules that look at it. */
  readonly read?: ActReader;
}

export interface ReloadablePolicy {
  /** The engine of the rules in force. Before any are in force it blocks every act. */
  inForce(): PureEngine;
  readonly version: string | undefined;
  /** Reads now. The first call puts the first policy in force. Never rejects: errors are in the result. */
  reload(): Promise<PolicyChange>;
  /** Names of personas, doors and the like that the rules in force mention. */
  readonly mentions: readonly Mention[];
  close(): Promise<void>;
}

const NOTHING_YET: PolicyChange = { outcome: 'refused', version: undefined, rules: 0, errors: [] };
const NO_RULES_YET = pureEngine(CEDAR, () =>
  block(CEDAR, 'policy_error', 'no policy is in force yet, which counts as no'),
);

export function createReloadablePolicy({
  load,
  onChange,
  watch,
  debounceMs = 50,
  memoEntries,
  read,
}: ReloadDeps): ReloadablePolicy {
  let current = NO_RULES_YET;
  let mentions: readonly Mention[] = [];
  let state = NOTHING_YET;
  let running: Promise<PolicyChange> | undefined;
  let queued: Promise<PolicyChange> | undefined;
  let closed = false;

  const once = async (): Promise<PolicyChange> => {
    const change = await attempt(
      load,
      state,
      (engine, policies) => {
        current = engine;
        mentions = policies.mentions;
      },
      { ...(memoEntries !== undefined && { memoEntries }), ...(read && { read }) },
    );
    const first = state === NOTHING_YET;
    const news = JSON.stringify(change) !== JSON.stringify(state);
    state = change;
    if ((first || news) && !closed) onChange(change);
    return change;
  };

  /** One load at a time. A call during a load gets the next load, because the current one may have read too early. */
  const reload = (): Promise<PolicyChange> => {
    if (!running) {
      running = once().finally(() => {
        running = undefined;
      });
      return running;
    }
    queued ??= running.then(() => {
      queued = undefined;
      return reload();
    });
    return queued;
  };

  // Rejects only when `onChange` threw; the policy is in force all the same, and nothing awaits this load.
  const onEvent = () => void reload().catch(() => {});
  const watcher: WatchedPaths | undefined = watch?.length
    ? watchPaths({ paths: watch, debounceMs, onEvent })
    : undefined;

  return {
    inForce: () => current,
    get version() {
      return current.version;
    },
    get mentions() {
      return mentions;
    },
    reload,
    async close() {
      closed = true;
      watcher?.close();
      await (queued ?? running);
    },
  };
}

async function attempt(
  load: () => Promise<Sources>,
  before: PolicyChange,
  swap: (engine: PureEngine, policies: CompiledPolicies) => void,
  options: Pick<ReloadDeps, 'memoEntries' | 'read'>,
): Promise<PolicyChange> {
  let version: string | undefined;
  try {
    let sources = await load();
    for (let reads = 1; reads <= MAX_READS; reads += 1) {
      version = versionOf(sources);
      const unchanged = version === before.version && before.version !== undefined;
      const result = unchanged ? undefined : await loadPolicies(sources).catch((thrown: unknown) => asFault(thrown));
      const again = await load();
      if (versionOf(again) !== version) {
        // Changed while it was being read: the checked text may be half of one version and half of another.
        sources = again;
        continue;
      }
      if (result === undefined) return { outcome: 'loaded', version, rules: before.rules, errors: [] };
      if (result instanceof Error) throw result;
      swap(createCedarEngine({ policies: result, ...options }), result);
      return { outcome: 'loaded', version, rules: result.ruleCount, errors: [] };
    }
    throw new Error('the policy keeps changing while it is being read');
  } catch (thrown) {
    return {
      outcome: 'refused',
      version: before.version,
      rules: before.rules,
      ...(version !== undefined && { refused: version }),
      errors: problemsIn(thrown),
    };
  }
}

/** Limits the errors that are reported and logged; the author sees the rest after correcting these. */
const MAX_REPORTED = 100;

function problemsIn(thrown: unknown): readonly Problem[] {
  const listed = (thrown as Partial<Fault>).details?.problems;
  if (Array.isArray(listed)) {
    const problems = listed as readonly Problem[];
    if (problems.length <= MAX_REPORTED) return problems;
    return [
      ...problems.slice(0, MAX_REPORTED),
      { file: 'policy', message: `and ${problems.length - MAX_REPORTED} more` },
    ];
  }
  return [{ file: 'policy', message: thrown instanceof Error ? thrown.message : 'could not be read' }];
}
