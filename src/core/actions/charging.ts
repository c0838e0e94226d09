/**
 * Charges usage to quotas in the commit that records it: acts before they run, reported usage when it is reported. It refuses
 * nothing; its callers check beforehand that the quota has room.
 */

import type { Action, Decision } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import type { Pointer, Quota, Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { own } from '../../model/values/own.ts';
import type { At, LimitPassed, QuotaRules, Row, Unit } from '../../ports/index.ts';
import { inTask } from '../tasks/lifecycle.ts';
import type { ReadPolicyData } from './policy-data.ts';

type Amounts = Readonly<Record<string, number>>;

export interface Charge {
  readonly quotas: readonly string[];
  /** The amounts to charge, in the names of each quota's limits. */
  amounts(limits: Amounts): Amounts;
  /** The act or call that is charged. */
  readonly about?: JsonObject;
}

/** A pending charge: the rows its commit has to read, and the events it then writes. */
export interface Metering {
  readonly reads: readonly Pointer[];
  events(at: Pick<At, 'get' | 'now'>): readonly EventDraft[];
  /** After the commit: the hard limit that was exceeded, if any. The work has to stop. */
  passed?(): LimitPassed | undefined;
}

export const UNMETERED: Metering = { reads: [], events: () => [] };

export interface MeteringDeps {
  readonly quotas: Pick<QuotaRules, 'charge' | 'softPassed' | 'passed'>;
  readonly policyData: ReadPolicyData;
}

/** Charges reported usage to the task's quotas, in the commit that records the report. */
export function createMetering({ quotas: rules, policyData }: MeteringDeps) {
  return async (task: Task, reports: readonly JsonObject[]): Promise<Metering> => {
    if (reports.length === 0) return UNMETERED;
    const quotas = (await policyData(task)).quotas.map(({ id }) => id);
    const charge: Charge = { quotas, amounts: (limits) => reportedAmounts(reports, limits) };
    let passed: LimitPassed | undefined;
    return {
      reads: quotas.map((id) => ({ object: 'quota', id })),
      events(at) {
        passed = undefined;
        return chargeEvents(rules, at, task, charge, (quota) => {
          passed ??= rules.passed(quota, at.now);
        });
      },
      passed: () => passed,
    };
  };
}

/** Adds a charge to a commit: the usage and its charge are written together or not at all. */
export function charging<U extends Unit>(unit: U, { reads, events }: Metering): U {
  return {
    ...unit,
    reads: [...(unit.reads ?? []), ...reads],
    decide(at: At) {
      const draft = unit.decide(at);
      return { ...draft, events: [...draft.events, ...events(at)] };
    },
  };
}

/** Runs inside a commit that names the quotas in its reads. One charge per commit: a second would not see the first. */
export function chargeEvents(
  rules: Pick<QuotaRules, 'charge' | 'softPassed'>,
  at: Pick<At, 'get' | 'now'>,
  task: Pick<Task, 'id' | 'session_id' | 'workspace_id'>,
  { quotas, amounts: amountsFor, about }: Charge,
  charged?: (quota: Quota) => void,
): EventDraft[] {
  return quotas.flatMap((id) => {
    const quota = at.get<Quota & Row>('quota', id);
    if (!quota) return [];
    const amounts = amountsFor(quota.limits);
    if (Object.keys(amounts).length === 0) return [];
    const { usage, ...window } = rules.charge(quota, amounts, at.now);
    const counted = wholeMicros(usage);
    const payload = { quota_id: id, amounts, usage: counted, ...window, ...about };
    const used: EventDraft = { event: 'vendor.tollbridge.quota_used', payload, ...inTask(task) };
    const warned = rules.softPassed(quota, counted, at.now).map(
      (limit): EventDraft => ({
        event: 'vendor.tollbridge.quota_warned',
        payload: { quota_id: id, limit, allowed: own(quota.limits, limit) ?? null, used: own(counted, limit) ?? null },
        ...inTask(task),
      }),
    );
    charged?.({ ...quota, usage: counted, ...window });
    return [used, ...warned];
  });
}

/** The decision on this act where its quotas have room, or theirs. Runs inside a commit, like the charge. */
export function withinQuotas(
  rules: Pick<QuotaRules, 'refuse'>,
  at: Pick<At, 'get' | 'now'>,
  action: Action,
  decision: Decision,
): Decision {
  for (const { id } of action.quotas ?? []) {
    const quota = at.get<Quota & Row>('quota', id);
    const refusal = quota && rules.refuse(quota, action.cost ?? {}, at.now);
    if (refusal?.verdict !== 'escalate') {
      if (refusal) return refusal;
      continue;
    }
    // A question about the quota covers the arguments that the rules allowed, rewritten ones included.
    const { arguments: args, arguments_digest } = decision;
    return { ...refusal, ...(args && { arguments: args }), ...(arguments_digest && { arguments_digest }) };
  }
  return decision;
}

export function actCharges(
  rules: Pick<QuotaRules, 'charge' | 'softPassed'>,
  at: Pick<At, 'get' | 'now'>,
  task: Task,
  { id: action_id, cost = {}, quotas = [] }: Action,
): EventDraft[] {
  const charge = { quotas: quotas.map(({ id }) => id), amounts: () => cost, about: { action_id } };
  return chargeEvents(rules, at, task, charge);
}

export function quotasOf({ quotas = [] }: Action): Pointer[] {
  return quotas.map(({ id }) => ({ object: 'quota', id }));
}

/**
 * Reported usage as quotas count it: money in `usd_micros`, tokens in `input_tokens` and `output_tokens`, as reported. A limit may
 * also be written in `usd` or in `tokens`; then, and only then, the same report is counted under that name too. Values that are not
 * non-negative numbers are not counted.
 */
export function reportedAmounts(reports: readonly JsonObject[], limits: Amounts): Amounts {
  const sums: Record<string, number> = {};
  const add = (name: string, amount: number) => {
    sums[name] = (sums[name] ?? 0) + amount;
  };
  for (const report of reports) {
    for (const name of REPORTED) {
      const amount = report[name];
      if (typeof amount !== 'number' || !Number.isFinite(amount) || amount < 0) continue;
      add(name, amount);
      if (name !== 'usd_micros' && Object.hasOwn(limits, 'tokens')) add('tokens', amount);
    }
  }
  if (sums.usd_micros !== undefined && Object.hasOwn(limits, 'usd')) sums.usd = sums.usd_micros / MICROS;
  return sums;
}
const REPORTED = ['usd_micros', 'input_tokens', 'output_tokens'] as const;
const MICROS = 1_000_000;

/** Dollars are sums of whole millionths; without rounding, ten dimes would sum to less than a dollar and allow one more act. */
function wholeMicros(usage: Amounts): Amounts {
  return usage.usd === undefined ? usage : { ...usage, usd: Math.round(usage.usd * MICROS) / MICROS };
}
