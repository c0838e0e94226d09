/**
 * The rules as an engine: selects the rules that can match, evaluates them in Cedar once, caches the answer. Selecting and
 * caching are for speed; the answer is the same without them.
 */

import type { Action, Decision } from '../../model/actions.ts';
import { Memo } from '../../model/values/memo.ts';
import type { ActReader } from '../../ports/index.ts';
import { type FactSight, inDoubt, namedValues, toContext } from '../context.ts';
import { block, type PureEngine } from '../engine.ts';
import { isRedacted } from '../redacted.ts';
import { type CompiledPolicies, type Slice, sliceOf } from './compiled.ts';
import { type CedarOutcome, evaluate, NOTHING, withDoubt } from './outcome.ts';
import type { Rule } from './rule.ts';
import { type CedarRuntime, cedarRuntime } from './runtime.ts';
import { createSelector, principalOf, resourceOf } from './select.ts';
import { Unjudgeable } from './values.ts';
import { CEDAR, settle } from './verdict.ts';

const MEMO_ENTRIES = 4_096;
/** Longer questions are not cached: otherwise callers could fill the memory. */
const MEMO_KEY_CHARS = 2_048;
const SLICES = 1_024;

/** Placeholders where no rule looks at the principal or the resource, so that cache keys differ only in what matters. */
const ANYONE = { type: 'System', id: '-' } as const;
const ANYTHING = { type: 'Workspace', id: '-' } as const;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export interface CedarEngineDeps {
  readonly policies: CompiledPolicies;
  /** 0 disables the cache. The answers are the same either way. */
  readonly memoEntries?: number;
  readonly runtime?: CedarRuntime;
  /** Extracts what an act touches. Required as soon as a rule looks at that. */
  readonly read?: ActReader;
}

export function createCedarEngine({
  policies,
  memoEntries = MEMO_ENTRIES,
  runtime,
  read,
}: CedarEngineDeps): PureEngine {
  const { version } = policies;
  if (policies.seesFacts && !read) throw new Error('these rules look at what acts touch, and nothing here can tell it');
  const selector = createSelector(policies);
  const slices = new Memo<string, Slice & { readonly number: number }>(SLICES);
  const memo = new Memo<string, CedarOutcome>(memoEntries);
  let made = 0;

  const sliceFor = (kind: string, rules: readonly Rule[]) => {
    const key = `${kind} ${rules.map(({ index }) => index).join(',')}`;
    let slice = slices.get(key);
    if (!slice) {
      made += 1;
      slice = { ...sliceOf(version, kind, rules), number: made };
      slices.set(key, slice);
    }
    return slice;
  };

  /** With facts read from its present arguments: rewritten arguments touch something else. */
  const asRead = (action: Action): Action =>
    !read || !policies.seesFacts || action.facts?.of === action.arguments ? action : { ...action, facts: read(action) };

  const outcomeOf = (proposed: Action): CedarOutcome => {
    const action = policies.seesFacts ? asRead(proposed) : proposed;
    const rules = selector.select(action);
    if (rules.length === 0) return NOTHING;
    const slice = sliceFor(action.kind, rules);
    const known = answer(action, slice, 'known');
    if (!slice.seesFacts || !inDoubt(action, slice.names, slice.patterns)) return known;
    return withDoubt(known, answer(action, slice, 'doubt'));
  };

  const answer = (action: Action, slice: Slice & { readonly number: number }, sight: FactSight): CedarOutcome => {
    const question = {
      principal: slice.seesPrincipal ? principalOf(action) : ANYONE,
      resource: slice.seesResource ? resourceOf(action) : ANYTHING,
      context: toContext(action, slice.names, slice.seesFacts ? { patterns: slice.patterns, sight } : undefined),
    };
    if (memoEntries <= 0) return evaluate(runtime ?? cedarRuntime(), slice, action.kind, question);
    const key = `${slice.number} ${JSON.stringify(question)}`;
    const known = memo.get(key);
    if (known) return known;
    const outcome = evaluate(runtime ?? cedarRuntime(), slice, action.kind, question);
    if (key.length <= MEMO_KEY_CHARS) memo.set(key, outcome);
    return outcome;
  };

  const judge = (action: Action): Decision => {
    try {
      const decision: Writable<Decision> = settle(action, outcomeOf);
      decision.policy_version = version;
      return decision;
    } catch (thrown) {
      const why = thrown instanceof Unjudgeable ? thrown.message : 'evaluation broke down';
      return { ...block(CEDAR, 'policy_error', `the rules could not be evaluated: ${why}`), policy_version: version };
    }
  };

  return {
    name: CEDAR,
    version,
    judge,
    decide: async (action) => judge(action),
    inputs(proposed) {
      const action = asRead(proposed);
      const rules = selector.selectInDoubt(action, isRedacted);
      const { names, seesPrincipal, seesResource } = sliceOf(version, action.kind, rules);
      return [
        ...(seesPrincipal ? [{ path: 'principal', value: action.actor.id }] : []),
        ...(seesResource ? [{ path: 'resource', value: resourceOf(action).id }] : []),
        ...namedValues(action, names),
      ];
    },
  };
}
