/**
 * Limits, checked before the work. Counting is done by core inside its commit, with the pure functions below; the
 * engine only says early what that commit would say. It refuses to take a number nobody knows for zero.
 */
import type { Decision } from '../model/actions.ts';
import type { Receipt } from '../model/receipt.ts';
import type { Quota } from '../model/resources.ts';
import type { Clock } from '../ports.ts';
import { noObjection, type PureEngine, pureEngine, stricter } from './engine.ts';

const NAME = 'quota';

/** A window that opens again this soon is a rate, not a budget: waiting is better than refusing. */
const RATE_WINDOW_MS = 60_000;

/** Known only after the work. Once used up, nothing more may start, whatever the action says it will cost. */
const METERED: readonly string[] = ['usd_micros', 'usd', 'tokens', 'input_tokens', 'output_tokens'];

export type Amounts = Readonly<Record<string, number>>;

export interface QuotaFinding {
  /** `unknown`: the limit exists and nobody can say how much of it is used. */
  readonly kind: 'exceeds' | 'unknown';
  readonly quota_id: string;
  readonly limit: string;
  readonly allowed: number;
  readonly used: number | undefined;
  readonly cost: number;
  /** Soft limits are told, never enforced. */
  readonly soft: boolean;
  /** When the window opens again, if that would help. */
  readonly retry_after_ms: number | undefined;
}

/** The first limit this cost would break; `exceeds` before `unknown`. Undefined: there is room for it. */
export function wouldExceed(quota: Quota, cost: Amounts | undefined, now: string): QuotaFinding | undefined {
  const fresh = windowPassed(quota, now);
  let unknown: QuotaFinding | undefined;
  for (const [limit, allowed] of Object.entries(quota.limits)) {
    const used = fresh ? 0 : known(quota.usage, limit);
    const declared = known(cost, limit);
    const price = declared ?? 0;
    const about = { quota_id: quota.id, limit, allowed, used, cost: price, soft: isSoft(quota) };
    if (used === undefined || !Number.isFinite(allowed)) {
      unknown ??= { kind: 'unknown', ...about, retry_after_ms: undefined };
    } else if (used + price > allowed || (declared === undefined && METERED.includes(limit) && used >= allowed)) {
      return { kind: 'exceeds', ...about, retry_after_ms: price > allowed ? undefined : untilReset(quota, now) };
    }
  }
  return unknown;
}

/** Usage and window after this cost. What was unknown stays unknown until the window opens anew. */
export function charge(
  quota: Quota,
  cost: Amounts | undefined,
  now: string,
): { readonly usage: Amounts; readonly reset_at: string | null } {
  const fresh = windowPassed(quota, now);
  const usage: Record<string, number> = fresh ? freshUsage(quota.limits) : { ...quota.usage };
  for (const key of Object.keys(cost ?? {})) {
    const used = known(usage, key);
    const price = known(cost, key);
    if (price === undefined) continue;
    if (used !== undefined) usage[key] = used + price;
    // A key that is not limited has no unknown to protect: start counting it.
    else if (!Object.hasOwn(quota.limits, key)) usage[key] = price;
  }
  return { usage, reset_at: fresh ? nextReset(quota, now) : (quota.reset_at ?? null) };
}

/** Nothing used of anything limited: what a new quota starts with, so that it is known and not merely absent. */
export function freshUsage(limits: Amounts): Record<string, number> {
  return Object.fromEntries(Object.keys(limits).map((key) => [key, 0]));
}

/**
 * How far work under these quotas may go, in a receipt's words: of each limit that is enforced the least. A limit on tokens
 * of either kind has no place there, and one nobody can count by says nothing. Undefined: no limit of this kind applies.
 */
export function budgetOf(quotas: readonly Pick<Quota, 'limits' | 'hard_limit' | 'soft_limit'>[]): Budget | undefined {
  const budget: Record<string, number> = {};
  const atMost = (name: string, most: number) => {
    budget[name] = Math.min(budget[name] ?? most, most);
  };
  for (const quota of quotas.filter((each) => !isSoft(each))) {
    for (const name of BUDGETED) {
      const limit = known(quota.limits, name);
      if (limit !== undefined) atMost(name, name === 'usd' ? limit : Math.floor(limit));
    }
    const micros = known(quota.limits, 'usd_micros');
    if (micros !== undefined) atMost('usd', Math.floor(micros) / 1_000_000);
  }
  return Object.keys(budget).length > 0 ? budget : undefined;
}
const BUDGETED = ['usd', 'input_tokens', 'output_tokens', 'tool_calls', 'wall_time_ms'] as const;
type Budget = NonNullable<Receipt['autonomy_budget']['limit']>;

export function createQuotaEngine({ clock }: { readonly clock: Clock }): PureEngine {
  return pureEngine(NAME, (action) => {
    const quotas = action.quotas;
    if (!quotas?.length) return noObjection(NAME, 'no quota applies');
    const now = clock.now();
    let worst: Decision = noObjection(NAME, 'within every quota');
    const warnings: string[] = [];
    for (const quota of quotas) {
      const finding = wouldExceed(quota, action.cost, now);
      if (!finding) continue;
      if (finding.soft) {
        warnings.push(`soft ${sentence(finding)}`);
        continue;
      }
      const decision = toDecision(finding);
      if (stricter(decision.verdict, worst.verdict)) worst = decision;
    }
    if (warnings.length === 0) return worst;
    const reason = worst.verdict === 'allow' ? warnings.join('; ') : [worst.reason, ...warnings].join('; ');
    return { ...worst, reason, ...(worst.verdict === 'allow' && { code: SOFT_LIMIT }) };
  });
}
/** On an allow: a soft limit is passed, and whoever decides in the end has to say so. */
export const SOFT_LIMIT = 'quota_soft_limit';

function toDecision(finding: QuotaFinding): Decision {
  const reason = sentence(finding);
  if (finding.kind === 'unknown') return { verdict: 'escalate', code: 'quota_unknown', reason, engine: NAME };
  const wait = finding.retry_after_ms;
  return wait !== undefined && wait <= RATE_WINDOW_MS
    ? { verdict: 'defer', code: 'quota_exhausted', reason, engine: NAME, retry_after_ms: wait }
    : { verdict: 'block', code: 'quota_exhausted', reason, engine: NAME };
}

function sentence({ kind, quota_id, limit, allowed, used, cost, retry_after_ms }: QuotaFinding): string {
  if (kind === 'unknown') return `limit ${limit} (${allowed}) of quota ${quota_id}: how much is used is not known`;
  const again = retry_after_ms === undefined ? '' : `; opens again in ${Math.ceil(retry_after_ms / 1000)} s`;
  return `limit ${limit} (${allowed}) of quota ${quota_id}: ${used} used, this needs ${cost > 0 ? cost : 'more'}${again}`;
}

/** A quota is hard unless it says that it is only soft. */
function isSoft(quota: Pick<Quota, 'hard_limit' | 'soft_limit'>): boolean {
  return quota.hard_limit !== true && (quota.soft_limit === true || quota.hard_limit === false);
}

/** Absent, negative and non-numbers are all the same here: nobody knows. */
function known(amounts: Amounts | undefined, key: string): number | undefined {
  if (amounts === undefined || !Object.hasOwn(amounts, key)) return undefined;
  const value: unknown = amounts[key];
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function resetTime(quota: Quota): number | undefined {
  const at = quota.reset_at ? Date.parse(quota.reset_at) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

function windowPassed(quota: Quota, now: string): boolean {
  const at = resetTime(quota);
  return at !== undefined && at <= Date.parse(now);
}

function untilReset(quota: Quota, now: string): number | undefined {
  const at = resetTime(quota);
  return at === undefined ? undefined : Math.max(0, at - Date.parse(now));
}

/** `metadata.window_ms` says how long a window is. Without it the quota counts on and opens no second time. */
function nextReset(quota: Quota, now: string): string | null {
  const at = resetTime(quota);
  const length = quota.metadata.window_ms;
  if (at === undefined || typeof length !== 'number' || !(length >= 1)) return null;
  const passed = Math.floor((Date.parse(now) - at) / length) + 1;
  const next = new Date(at + passed * length);
  return Number.isNaN(next.getTime()) ? null : next.toISOString();
}
