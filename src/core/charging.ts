/**
 * What work uses up, charged to its quotas in the commit that says so: acts before they run, reported usage when it is
 * reported. Refuses nothing; whether there is room is asked before, by whoever is about to act.
 */
import type { EventDraft } from '../model/events.ts';
import type { Pointer, Quota, Task } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import type { At, QuotaRules, Row, Unit } from '../ports.ts';
import { inTask } from './lifecycle.ts';

type Amounts = Readonly<Record<string, number>>;

export interface Charge {
  readonly quotas: readonly string[];
  /** What to charge, in the words of each quota's limits. */
  amounts(limits: Amounts): Amounts;
  /** The act or the call it was for. */
  readonly about?: JsonObject;
}

/** A charge on its way: what a commit has to look at for it, and what it then writes. */
export interface Metering {
  readonly reads: readonly Pointer[];
  events(at: Pick<At, 'get' | 'now'>): readonly EventDraft[];
}

/** The same commit, charging too: what is used up and the word of it are written together or not at all. */
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

/** Inside a commit that names the quotas in its reads. One charge per commit: a second would not see the first. */
export function chargeEvents(
  rules: Pick<QuotaRules, 'charge'>,
  at: Pick<At, 'get' | 'now'>,
  task: Pick<Task, 'id' | 'session_id' | 'workspace_id'>,
  { quotas, amounts: amountsFor, about }: Charge,
): EventDraft[] {
  return quotas.flatMap((id) => {
    const quota = at.get<Quota & Row>('quota', id);
    if (!quota) return [];
    const amounts = amountsFor(quota.limits);
    if (Object.keys(amounts).length === 0) return [];
    const { usage, reset_at } = rules.charge(quota, amounts, at.now);
    const payload = { quota_id: id, amounts, usage: wholeMicros(usage), reset_at, ...about };
    return [{ event: 'vendor.tollbridge.quota_used', payload: payload as unknown as JsonObject, ...inTask(task) }];
  });
}

/**
 * Reported usage as quotas count it: money in `usd_micros`, tokens in `input_tokens` and `output_tokens`, as they came.
 * A limit may also be written in `usd` or in `tokens`; then, and only then, the same report is counted under that name
 * too. What is not a number of something used, a negative one included, is not counted.
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

/** Dollars are sums of whole millionths; without this, ten dimes would not quite be a dollar and let one more pass. */
function wholeMicros(usage: Amounts): Amounts {
  return usage.usd === undefined ? usage : { ...usage, usd: Math.round(usage.usd * MICROS) / MICROS };
}
