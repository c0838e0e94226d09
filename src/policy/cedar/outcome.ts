/** One call to Cedar, and its answer in our terms: the rules that matched, and the rules that could not be evaluated. */

import type { Slice } from './compiled.ts';
import type { Rule } from './rule.ts';
import type { CedarRuntime } from './runtime.ts';
import { isPlainText, Unjudgeable } from './values.ts';

/** The rules that matched, and the restricting rules that could not be evaluated, both in order. */
export interface CedarOutcome {
  readonly matched: readonly Rule[];
  readonly failed: readonly { readonly rule: Rule; readonly why: string }[];
  /** Restricting rules that may match: they look at a value that is not known. */
  readonly doubted: readonly Rule[];
}
export const NOTHING: CedarOutcome = { matched: [], failed: [], doubted: [] };

/**
 * Combines the certain with the possible outcome: a restricting rule counts if it may match, an allowing one only if it matches
 * both ways.
 */
export function withDoubt(known: CedarOutcome, doubt: CedarOutcome): CedarOutcome {
  const certain = new Set([...known.matched, ...known.failed.map(({ rule }) => rule)]);
  const possible = [...doubt.matched, ...doubt.failed.map(({ rule }) => rule)];
  return {
    matched: known.matched.filter((rule) => rule.verdict !== 'allow' || doubt.matched.includes(rule)),
    failed: known.failed,
    doubted: possible.filter((rule) => rule.verdict !== 'allow' && !certain.has(rule)),
  };
}

export interface CedarQuestion {
  readonly principal: { readonly type: string; readonly id: string };
  readonly resource: { readonly type: string; readonly id: string };
  readonly context: object;
}

export function evaluate(runtime: CedarRuntime, slice: Slice, kind: string, asked: CedarQuestion): CedarOutcome {
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
      // An allow that cannot be evaluated does not allow.
      .filter(({ rule }) => rule.verdict !== 'allow')
      .toSorted((a, b) => a.rule.index - b.rule.index),
    doubted: [],
  };
}

/** Cedar numbers the policies of a text in order. */
function ruleOf(slice: Slice, policyId: string): Rule {
  const rule = slice.rules[Number(policyId.slice('policy'.length))];
  if (!rule) throw new Unjudgeable('the evaluator named a rule that does not exist');
  return rule;
}

function inOrder(rules: readonly Rule[]): readonly Rule[] {
  return rules.toSorted((a, b) => a.index - b.index);
}

/** Uses only parts of the message that cannot quote a value: names come from the rule, types from Cedar. */
function explain(message: string): string {
  const [missing] = /does not have the attribute `[^`]*`/.exec(message) ?? [];
  if (missing) return `the action ${missing}; test for it first with "has"`;
  const [type] = /type error: expected .+, got \w+/.exec(message) ?? [];
  return type?.replace(/got ipaddr$/, 'got a value rules cannot hold') ?? 'a value in it has the wrong form';
}
