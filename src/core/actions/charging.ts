/**
 * Charges usage to quotas in the commit that records it: acts before they run, reported usage when it is reported. It refuses
 * nothing; its callers check beforehand that the quota has room.
 */

import type { EventDraft } from '../../model/events.ts';
import type { Pointer, Quota, Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { own } from '../../model/values/own.ts';
import type { At, LimitPassed, QuotaRules, Row, Unit } from '../../ports/index.ts';
import { inTask } from '../tasks/lifecycle.ts';

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
