/**
 * Rules of a file that may only tighten, such as one that came with a repository. The strictest matching rule decides, so a rule
 * that blocks, asks or defers can never turn another answer into an allow. Every other rule is refused, with the reason.
 */
import type { Rule } from '../cedar/rule.ts';

const PERMITS = 'it is written as a permit; in this file write forbid, whatever its verdict';

/** Undefined for a rule that can only tighten. */
export function whyItLoosens({ verdict, ask }: Rule, effect: 'permit' | 'forbid'): string | undefined {
  switch (verdict) {
    case 'allow':
      return 'it allows, and rules of this file may only block, ask or defer';
    case 'modify':
      // Where no other rule matches, a rewritten call runs; without the rewrite an approver would have been asked.
      return 'it rewrites arguments, which lets a call run that would have asked; rules of this file may only block, ask or defer';
    case 'escalate':
      if (effect === 'permit') return PERMITS;
      if (ask?.to) return 'it says who may answer; in this file a question goes to those who answer all others';
      if (ask?.expires_ms !== undefined)
        return 'it says how long a question waits; in this file that is left to your own';
      return undefined;
    case 'block':
    case 'defer':
      return effect === 'permit' ? PERMITS : undefined;
  }
}

/** `#` is not permitted in a written id, so no rule of this file can have the id of another. */
export function asRestricting(rule: Rule): Rule {
  return { ...rule, id: `project#${rule.id}` };
}
