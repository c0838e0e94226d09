/**
 * The rules' answer. Cedar decides which rules match; this file says what follows from that: the strictest
 * matching rule, a block when a restricting rule could not be evaluated, a person when no rule speaks of a side effect.
 */
import type { Action, Decision } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import type { JsonObject } from '../model/schema.ts';
import { isSideEffect } from '../model/words.ts';
import type { Rule } from './cedar-rule.ts';
import { type CedarRuntime, cedarRuntime } from './cedar-runtime.ts';
import { isPlainText, Unjudgeable } from './cedar-values.ts';
import { type CompiledPolicies, type Slice, sliceOf } from './compiled.ts';
import { namedValues, toContext } from './context.ts';
import { block, type PureEngine, rank } from './engine.ts';
import { createMemo } from './memo.ts';
import { changedPaths, mergePatch, overlap } from './merge-patch.ts';
import { isRedacted } from './redacted.ts';
import { createSelector, principalOf, resourceOf } from './select.ts';

const NAME = 'cedar';
const MEMO_ENTRIES = 4_096;
/** Longer questions are asked afresh: remembering them would let callers fill the memory. */
const MEMO_KEY_CHARS = 2_048;
const SLICES = 1_024;

export interface CedarEngineDeps {
  readonly policies: CompiledPolicies;
  /** 0 remembers nothing. The answers are the same either way. */
  readonly memoEntries?: number;
  readonly runtime?: CedarRuntime;
}

/** Which rules matched, and which restricting rules could not be evaluated, both in order. */
interface Outcome {
  readonly matched: readonly Rule[];
  readonly failed: readonly { readonly rule: Rule; readonly why: string }[];
}
const NOTHING: Outcome = { matched: [], failed: [] };

export function createCedarEngine({ policies, memoEntries = MEMO_ENTRIES, runtime }: CedarEngineDeps): PureEngine {
  const { version } = policies;
  const selector = createSelector(policies);
  const slices = createMemo<Slice>(SLICES);
  const memo = createMemo<Outcome>(memoEntries);

  const sliceFor = (kind: string, rules: readonly Rule[]): Slice => {
    const key = rules.map(({ index }) => index).join(',');
    const id = `${kind} ${key}`;
    let slice = slices.get(id);
    if (!slice) {
      slice = sliceOf(version, kind, rules);
      slices.set(id, slice);
    }
    return slice;
  };

  const outcomeOf = (action: Action): Outcome => {
    const rules = selector.select(action);
    if (rules.length === 0) return NOTHING;
    const slice = sliceFor(action.kind, rules);
    const question = {
      principal: slice.seesPrincipal ? principalOf(action) : ANYONE,
      resource: slice.seesResource ? resourceOf(action) : ANYTHING,
      context: toContext(action, slice.names),
    };
    const key = memoEntries > 0 ? `${slice.key} ${JSON.stringify(question)}` : '';
    const known = memoEntries > 0 ? memo.get(key) : undefined;
    if (known) return known;
    const outcome = evaluate(runtime ?? cedarRuntime(), slice, action.kind, question);
    if (key.length <= MEMO_KEY_CHARS) memo.set(key, outcome);
    return outcome;
  };

  const judge = (action: Action): Decision => {
    try {
      return { ...settle(action, outcomeOf, true), policy_version: version };
    } catch (thrown) {
      const why = thrown instanceof Unjudgeable || thrown instanceof Fault ? thrown.message : 'evaluation broke down';
      return { ...block(NAME, 'policy_error', `the rules could not be evaluated: ${why}`), policy_version: version };
    }
  };

  return {
    name: NAME,
    version,
    judge,
    decide: async (action) => judge(action),
    inputs(action) {
      const { names, seesPrincipal, seesResource } = sliceOf(
        version,
        action.kind,
        selector.selectInDoubt(action, isRedacted),
      );
      return [
        ...(seesPrincipal ? [{ path: 'principal', value: action.actor.id }] : []),
        ...(seesResource ? [{ path: 'resource', value: resourceOf(action).id }] : []),
        ...namedValues(action, names),
      ];
    },
  };
}

const ANYONE = { type: 'System', id: '-' } as const;
const ANYTHING = { type: 'Workspace', id: '-' } as const;

interface Asked {
  readonly principal: { readonly type: string; readonly id: string };
  readonly resource: { readonly type: string; readonly id: string };
  readonly context: object;
}

function evaluate(runtime: CedarRuntime, slice: Slice, kind: string, asked: Asked): Outcome {
  if (!isPlainText(asked.principal.id) || !isPlainText(asked.resource.id) || !isPlainText(kind)) {
    throw new Unjudgeable('a name in it is too long or not valid Unicode');
  }
  const id = runtime.prepare(slice.key, slice.text);
  if (id === undefined) throw new Unjudgeable('the evaluator did not take the rules');
  const answer = runtime.call((cedar) =>
    cedar.statefulIsAuthorized({
      principal: asked.principal,
      action: { type: 'Action', id: kind },
      resource: asked.resource,
      context: asked.context as Record<string, never>,
      preparsedPolicySetId: id,
      entities: [],
    }),
  );
  if (answer?.type !== 'success') throw new Unjudgeable('the evaluator refused the question');
  const { reason, errors } = answer.response.diagnostics;
  return {
    matched: inOrder(reason.map((name) => ruleOf(slice, name))),
    failed: errors
      .map(({ policyId, error }) => ({ rule: ruleOf(slice, policyId), why: explain(error.message) }))
      // An allow that cannot be evaluated simply does not allow.
      .filter(({ rule }) => rule.verdict !== 'allow')
      .toSorted((a, b) => a.rule.index - b.rule.index),
  };
}

/** Cedar numbers the policies of a text in their order. */
function ruleOf(slice: Slice, policyId: string): Rule {
  const rule = slice.rules[Number(policyId.slice('policy'.length))];
  if (!rule) throw new Unjudgeable('the evaluator named a rule that does not exist');
  return rule;
}

function inOrder(rules: readonly Rule[]): readonly Rule[] {
  return rules.toSorted((a, b) => a.index - b.index);
}

/** Only what cannot quote a value: names come from the rule, types from Cedar. */
function explain(message: string): string {
  const [missing] = /does not have the attribute `[^`]*`/.exec(message) ?? [];
  if (missing) return `the action ${missing}; test for it first with "has"`;
  const [type] = /type error: expected .+, got \w+/.exec(message) ?? [];
  return type?.replace(/got ipaddr$/, 'got a value rules cannot hold') ?? 'a value in it has the wrong form';
}

function settle(action: Action, outcomeOf: (action: Action) => Outcome, mayRewrite: boolean): Decision {
  const { matched, failed } = outcomeOf(action);
  const winner = matched.toSorted((a, b) => rank(a.verdict) - rank(b.verdict))[0];
  if (failed[0] && winner?.verdict !== 'block') {
    const { rule, why } = failed[0];
    const reason = `rule ${rule.id} could not be evaluated, which counts as no: ${why}`;
    return { ...block(NAME, 'policy_error', reason), rule_id: rule.id };
  }
  if (!winner) return byDefault(action);
  const decision: Decision = { verdict: winner.verdict, reason: winner.reason, rule_id: winner.id, engine: NAME };
  switch (winner.verdict) {
    case 'allow':
    case 'block':
      return decision;
    case 'defer':
      return { ...decision, retry_after_ms: winner.retryAfterMs ?? 0 };
    case 'escalate':
    case 'modify':
      return rewrite(action, winner, matched, decision, mayRewrite ? outcomeOf : undefined);
  }
}

function byDefault(action: Action): Decision {
  return isSideEffect(action.effect)
    ? { verdict: 'escalate', code: 'no_rule', reason: 'no rule covers this', engine: NAME }
    : { verdict: 'allow', code: 'no_rule', reason: 'no rule covers this, and it changes nothing', engine: NAME };
}

/** Applies every matching rewrite, then judges the result: what runs, or is shown to a person, has passed the rules too. */
function rewrite(
  action: Action,
  winner: Rule,
  matched: readonly Rule[],
  decision: Decision,
  outcomeOf: ((action: Action) => Outcome) | undefined,
): Decision {
  const asking = winner.verdict === 'escalate' ? { ...decision, ...(winner.ask && { ask: winner.ask }) } : decision;
  const patched = applyPatches(action.arguments, matched);
  if (patched === 'conflict') {
    return { ...asking, verdict: 'escalate', code: 'modify_conflict', reason: `${decision.reason}; ${CONFLICT}` };
  }
  if (changedPaths(action.arguments, patched).length === 0) {
    // Nothing left to change: the call already is as the rule wants it.
    return winner.verdict === 'modify' ? { ...decision, verdict: 'allow' } : asking;
  }
  const rewritten = { ...asking, arguments: patched };
  if (!outcomeOf) {
    return { ...asking, verdict: 'escalate', code: 'modify_conflict', reason: `${decision.reason}; ${CONFLICT}` };
  }
  const second = settle({ ...action, arguments: patched }, outcomeOf, false);
  if (second.code === 'no_rule' || rank(second.verdict) >= rank(rewritten.verdict)) return rewritten;
  return second.verdict === 'escalate' && second.code !== 'modify_conflict'
    ? { ...second, arguments: patched }
    : second;
}
const CONFLICT = 'the rewrites it calls for contradict each other';

function applyPatches(args: JsonObject, matched: readonly Rule[]): JsonObject | 'conflict' {
  let current = args;
  let touched: readonly string[] = [];
  for (const { patch } of matched) {
    if (!patch) continue;
    const next = mergePatch(current, patch) as JsonObject;
    const changes = changedPaths(current, next);
    if (overlap(touched, changes)) return 'conflict';
    touched = [...touched, ...changes];
    current = next;
  }
  return current;
}
