/** What new work costs, and whether its quotas still have room in the commit that accepts it. */
import type { Decision } from '../../../model/actions.ts';
import { Fault } from '../../../model/faults.ts';
import type { Quota } from '../../../model/resources.ts';
import type { At, QuotaRules, Row } from '../../../ports/index.ts';

/** The cost of a task under the given limits. Time is charged while the work runs; here some must be left. */
export function limitedCost(quotas: readonly Quota[], outside: boolean): Record<string, number> {
  const names = ['concurrency', 'wall_time_ms', ...(outside ? [] : ['requests_per_minute'])];
  const limits = (name: string) => quotas.some((quota) => Object.hasOwn(quota.limits, name));
  return Object.fromEntries(names.filter(limits).map((name) => [name, 1]));
}

/** The charge for accepting a task, in the names of each quota's limits; time is charged later. */
export function atSubmission(cost: Readonly<Record<string, number>>, limits: Readonly<Record<string, number>>) {
  const charged = (name: string) =>
    name === 'tasks' || ((name === 'concurrency' || name === 'requests_per_minute') && Object.hasOwn(limits, name));
  return Object.fromEntries(Object.entries(cost).filter(([name]) => charged(name)));
}

/** The quotas that the work holds a place in until it ends. Throws where one has no room left. */
export function requireRoom(
  rules: Pick<QuotaRules, 'refuse'>,
  at: At,
  quotas: readonly Quota[],
  cost: Readonly<Record<string, number>>,
): readonly string[] {
  const holds: string[] = [];
  for (const { id } of quotas) {
    const current = at.get<Quota & Row>('quota', id);
    const over = current && rules.refuse(current, cost, at.now);
    if (over && over.verdict !== 'escalate') throw new Exhausted(isNo(over) ? over : { ...over, verdict: 'block' });
    if (current && Object.hasOwn(current.limits, 'concurrency')) holds.push(id);
  }
  return holds;
}

export type No = Decision & { readonly verdict: 'block' | 'defer' };
export function isNo(decision: Decision): decision is No {
  return decision.verdict === 'block' || decision.verdict === 'defer';
}

/** A quota had room when it was read and has none in the commit that would use it. That commit writes nothing. */
export class Exhausted extends Fault {
  readonly decision: No;

  constructor(decision: No) {
    super('policy_violation', decision.reason);
    this.decision = decision;
  }
}
