/**
 * Derives the decision from the rules that matched: the strictest of them; a block when a restricting rule could not be
 * evaluated; an approval when no rule covers a side effect.
 */
import type { Action, Decision } from '../../model/actions.ts';
import type { JsonObject } from '../../model/schema.ts';
import { isSideEffect } from '../../model/words.ts';
import { block, rank } from '../engine.ts';
import { changedPaths, mergePatch, overlap } from '../merge-patch.ts';
import type { CedarOutcome } from './outcome.ts';
import type { Rule } from './rule.ts';

/** The engine name in decisions made by rules. */
export const CEDAR = 'cedar';

/** Returns a new decision each time: the caller may add to it. */
export function settle(action: Action, outcomeOf: (action: Action) => CedarOutcome, mayRewrite = true): Decision {
  const { matched, failed, doubted } = outcomeOf(action);
  const known = strictest(matched);
  const doubtful = strictest(doubted);
  // A rule that cannot be decided asks an approver, unless a rule that is certain is as strict.
  const asking = doubtful !== undefined && (known === undefined || rank(known.verdict) > rank('escalate'));
  const winner = asking ? inDoubtful(doubtful) : known;
  if (failed[0] && winner?.verdict !== 'block') {
    const { rule, why } = failed[0];
    const reason = `rule ${rule.id} could not be evaluated, which counts as no: ${why}`;
    return { ...block(CEDAR, 'policy_error', reason), rule_id: rule.id };
  }
  if (!winner) return byDefault(action);
  const decision: Decision = {
    verdict: winner.verdict,
    reason: winner.reason,
    rule_id: winner.id,
    engine: CEDAR,
    ...(asking && { code: 'undetermined' }),
  };
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

function inDoubtful(rule: Rule): Rule {
  const reason = `rule ${rule.id} looks at what this act touches, and that could not be determined for certain (${rule.reason})`;
  return { ...rule, verdict: 'escalate', reason, patch: undefined };
}

/** The first among equally strict rules. */
function strictest(matched: readonly Rule[]): Rule | undefined {
  let winner: Rule | undefined;
  for (const rule of matched) if (!winner || rank(rule.verdict) < rank(winner.verdict)) winner = rule;
  return winner;
}

function byDefault(action: Action): Decision {
  return isSideEffect(action.effect)
    ? { verdict: 'escalate', code: 'no_rule', reason: 'no rule covers this', engine: CEDAR }
    : { verdict: 'allow', code: 'no_rule', reason: 'no rule covers this, and it changes nothing', engine: CEDAR };
}

/**
 * Applies every matching rewrite, then judges the result: the act that runs, or is shown to an approver, has passed the rules
 * too.
 */
function rewrite(
  action: Action,
  winner: Rule,
  matched: readonly Rule[],
  decision: Decision,
  outcomeOf: ((action: Action) => CedarOutcome) | undefined,
): Decision {
  const asking = winner.verdict === 'escalate' ? { ...decision, ...(winner.ask && { ask: winner.ask }) } : decision;
  const patched = applyPatches(action.arguments, matched);
  if (patched === 'conflict') {
    return { ...asking, verdict: 'escalate', code: 'modify_conflict', reason: `${decision.reason}; ${CONFLICT}` };
  }
  if (changedPaths(action.arguments, patched).length === 0) {
    // Nothing left to change: the call is already as the rule wants it.
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
