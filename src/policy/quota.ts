/**
 * Limits, checked before the work. The core counts inside its commit, with the pure functions below; the engine only predicts
 * what that commit would decide. An unknown usage is never taken for zero.
 */

import type { Action, Decision } from '../model/actions.ts';
import type { Receipt } from '../model/receipt.ts';
import type { Quota } from '../model/resources.ts';
import { own } from '../model/values/own.ts';
import { QUOTA_LIMITS } from '../model/words.ts';
import type { Clock, QuotaRules } from '../ports/index.ts';
import { noObjection, type PureEngine, pureEngine, stricter } from './engine.ts';

const NAME = 'quota';

/** A window that reopens this soon is a rate, not a budget: waiting is better than refusing. */
const RATE_WINDOW_MS = 60_000;

/** Usage known only after the work. Once a limit is used up, nothing more may start, whatever the action says it will cost. */
const METERED: readonly string[] = ['usd_micros', 'usd', 'tokens', 'input_tokens', 'output_tokens'];

/** The number of tasks open now, not the usage since a window opened: a new window does not reset it. */
const CONCURRENCY = 'concurrency';
/** When to retry: a task may have ended by then. */
const CONCURRENCY_RETRY_MS = 1_000;

/** Has a one-minute window of its own, which begins with its first request, whatever the window of the quota. */
const RATE = 'requests_per_minute';
const MINUTE_MS = 60_000;

/** A quota with its counters: `minute_ends_at` is internal and cannot be set by clients. */
export type Counted = Quota & { readonly minute_ends_at?: string | null };

export type Amounts = Readonly<Record<string, number>>;

export interface QuotaFinding {
  /** `unknown`: the limit exists and its usage is not known. */
  readonly kind: 'exceeds' | 'unknown';
  readonly quota_id: string;
  readonly limit: string;
  readonly allowed: number;
  readonly used: number | undefined;
  readonly cost: number;
  /** Soft limits are reported, never enforced. */
  readonly soft: boolean;
  /** Time until the window reopens, if that would help. */
  readonly retry_after_ms: number | undefined;
  /** The limit of one tool's calls by one caller, in words. */
  readonly call_limit?: string;
}

/** The first limit this cost would exceed; `exceeds` before `unknown`. Undefined: the cost fits. */
export function wouldExceed(quota: Counted, cost: Amounts | undefined, now: string): QuotaFinding | undefined {
  let unknown: QuotaFinding | undefined;
  for (const [limit, allowed] of Object.entries(quota.limits)) {
    const used = usedOf(quota, limit, now);
    const declared = known(cost, limit);
    const price = declared ?? 0;
    const { call_limit } = quota.metadata;
    const words = typeof call_limit === 'string' && { call_limit };
    const about = { quota_id: quota.id, limit, allowed, used, cost: price, soft: isSoft(quota), ...words };
    if (used === undefined || !Number.isFinite(allowed)) {
      unknown ??= { kind: 'unknown', ...about, retry_after_ms: undefined };
    } else if (used + price > allowed || (declared === undefined && METERED.includes(limit) && used >= allowed)) {
      return { kind: 'exceeds', ...about, retry_after_ms: price > allowed ? undefined : untilRoom(quota, limit, now) };
    }
  }
  return unknown;
}

/** The used amount of a limit; undefined when unknown, and for limits that are not counted. */
function usedOf(quota: Counted, limit: string, now: string): number | undefined {
  if (!COUNTED.has(limit)) return undefined;
  if (limit === RATE) return minutePassed(quota, now) ? 0 : known(quota.usage, limit);
  return limit !== CONCURRENCY && windowPassed(quota, now) ? 0 : known(quota.usage, limit);
}
const COUNTED: ReadonlySet<string> = new Set(QUOTA_LIMITS);

function untilRoom(quota: Counted, limit: string, now: string): number | undefined {
  if (limit === CONCURRENCY) return CONCURRENCY_RETRY_MS;
  if (limit !== RATE) return untilReset(quota, now);
  return Math.max(0, Date.parse(quota.minute_ends_at ?? now) - Date.parse(now));
}

/** The first hard limit on metered usage that this quota has passed: the work under it has to stop. */
export function passedLimit(quota: Counted, now: string): QuotaFinding | undefined {
  if (isSoft(quota)) return undefined;
  for (const limit of [...METERED, 'wall_time_ms']) {
    const allowed = known(quota.limits, limit);
    const used = usedOf(quota, limit, now);
    if (allowed === undefined || used === undefined || used <= allowed) continue;
    const about = { quota_id: quota.id, limit, allowed, used, cost: 0, soft: false };
    return { kind: 'exceeds', ...about, retry_after_ms: untilReset(quota, now) };
  }
  return undefined;
}

/** Soft limits that this charge passed. */
export function softPassed(quota: Counted, after: Amounts, now: string): readonly string[] {
  if (!isSoft(quota)) return [];
  return Object.keys(quota.limits).filter((limit) => {
    const allowed = own(quota.limits, limit) ?? Number.NaN;
    return (usedOf(quota, limit, now) ?? 0) <= allowed && (own(after, limit) ?? 0) > allowed;
  });
}

/** How much time work under this quota may still take; undefined when the quota does not limit time. */
export function timeLeft(quota: Counted, now: string): number | undefined {
  const allowed = isSoft(quota) ? undefined : known(quota.limits, 'wall_time_ms');
  return allowed === undefined ? undefined : allowed - (usedOf(quota, 'wall_time_ms', now) ?? allowed);
}

/** Usage and window after this cost. Unknown usage stays unknown until the window reopens. */
export function charge(quota: Counted, cost: Amounts | undefined, now: string): Charged {
  const fresh = windowPassed(quota, now);
  const usage: Record<string, number> = fresh ? freshUsage(quota.limits) : { ...quota.usage };
  for (const own of [CONCURRENCY, RATE]) {
    const used = known(quota.usage, own);
    if (used !== undefined) usage[own] = used;
  }
  const requests = known(cost, RATE) !== undefined && Object.hasOwn(quota.limits, RATE);
  const minute = requests && minutePassed(quota, now);
  if (minute) usage[RATE] = 0;
  for (const key of Object.keys(cost ?? {})) {
    const used = known(usage, key);
    const price = known(cost, key);
    if (price === undefined || (ONLY_IF_LIMITED.has(key) && !Object.hasOwn(quota.limits, key))) continue;
    if (used !== undefined) usage[key] = used + price;
    // An amount without a limit has no unknown state to protect: start counting it.
    else if (!Object.hasOwn(quota.limits, key)) usage[key] = price;
  }
  return {
    usage,
    reset_at: fresh ? nextReset(quota, now) : (quota.reset_at ?? null),
    ...(minute && { minute_ends_at: new Date(Date.parse(now) + MINUTE_MS).toISOString() }),
  };
}
export interface Charged {
  readonly usage: Amounts;
  readonly reset_at: string | null;
  readonly minute_ends_at?: string;
}
/** Not counted where it is not limited. */
const ONLY_IF_LIMITED: ReadonlySet<string> = new Set([CONCURRENCY, RATE, 'wall_time_ms']);

/** Zero for every limit: the usage of a new quota, so that it is known and not merely absent. */
export function freshUsage(limits: Amounts): Record<string, number> {
  return Object.fromEntries(Object.keys(limits).map((key) => [key, 0]));
}

/**
 * The limits of work under these quotas, in a receipt's terms: of each enforced limit the smallest. A limit on tokens of either
 * kind has no member there, and a limit that is not a valid number is skipped. Undefined: no limit of this kind applies.
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
/** The limits that a receipt's budget has no member for, of each the smallest. */
export function otherLimitsOf(quotas: readonly Pick<Quota, 'limits' | 'hard_limit' | 'soft_limit'>[]): Amounts {
  const least: Record<string, number> = {};
  for (const quota of quotas.filter((each) => !isSoft(each))) {
    for (const name of QUOTA_LIMITS) {
      const limit = known(quota.limits, name);
      if (limit === undefined || (BUDGETED as readonly string[]).includes(name) || name === 'usd_micros') continue;
      least[name] = Math.min(least[name] ?? limit, limit);
    }
  }
  return least;
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
/** On a defer: too many requests. The client has to retry; the gateway does not queue the request. */
export const RATE_LIMITED = 'rate_limited';

/** On an allow: a soft limit is passed, and the final decision has to report it. */
export const SOFT_LIMIT = 'quota_soft_limit';

function toDecision(finding: QuotaFinding): Decision {
  const reason = sentence(finding);
  if (finding.kind === 'unknown') return { verdict: 'escalate', code: 'quota_unknown', reason, engine: NAME };
  const wait = finding.retry_after_ms;
  if ((finding.limit === RATE || finding.call_limit) && wait !== undefined) {
    return { verdict: 'defer', code: RATE_LIMITED, reason, engine: NAME, retry_after_ms: wait };
  }
  return wait !== undefined && wait <= RATE_WINDOW_MS
    ? { verdict: 'defer', code: 'quota_exhausted', reason, engine: NAME, retry_after_ms: wait }
    : { verdict: 'block', code: 'quota_exhausted', reason, engine: NAME };
}

function sentence({ kind, quota_id, limit, allowed, used, cost, retry_after_ms, call_limit }: QuotaFinding): string {
  if (kind === 'exceeds' && call_limit) return call_limit;
  if (kind === 'unknown') return `limit ${limit} (${allowed}) of quota ${quota_id}: how much is used is not known`;
  const again = retry_after_ms === undefined ? '' : `; opens again in ${Math.ceil(retry_after_ms / 1000)} s`;
  return `limit ${limit} (${allowed}) of quota ${quota_id}: ${used} used, this needs ${cost > 0 ? cost : 'more'}${again}`;
}

/** A quota is hard unless it says that it is only soft. */
function isSoft(quota: Pick<Quota, 'hard_limit' | 'soft_limit'>): boolean {
  return quota.hard_limit !== true && (quota.soft_limit === true || quota.hard_limit === false);
}

/** Absent, negative and non-numeric amounts all count as unknown. */
function known(amounts: Amounts | undefined, key: string): number | undefined {
  if (amounts === undefined || !Object.hasOwn(amounts, key)) return undefined;
  const value: unknown = amounts[key];
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function resetTime(quota: Quota): number | undefined {
  const at = quota.reset_at ? Date.parse(quota.reset_at) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

function minutePassed({ minute_ends_at }: Counted, now: string): boolean {
  const at = minute_ends_at ? Date.parse(minute_ends_at) : Number.NaN;
  return Number.isNaN(at) || at <= Date.parse(now);
}

function windowPassed(quota: Quota, now: string): boolean {
  const at = resetTime(quota);
  return at !== undefined && at <= Date.parse(now);
}

function untilReset(quota: Quota, now: string): number | undefined {
  const at = resetTime(quota);
  return at === undefined ? undefined : Math.max(0, at - Date.parse(now));
}

/** `metadata.window_ms` is the length of a window. Without it the quota counts on and never reopens. */
function nextReset(quota: Quota, now: string): string | null {
  const at = resetTime(quota);
  const length = quota.metadata.window_ms;
  if (at === undefined || typeof length !== 'number' || !(length >= 1)) return null;
  const passed = Math.floor((Date.parse(now) - at) / length) + 1;
  const next = new Date(at + passed * length);
  return Number.isNaN(next.getTime()) ? null : next.toISOString();
}

/** The quota engine's own judgement, asked about one quota at the moment of the charge. */
export const quotaRules: QuotaRules = {
  refuse(quota, cost, now) {
    // The engine reads nothing else of an act.
    const decision = createQuotaEngine({ clock: { now: () => now } }).judge({
      quotas: [quota],
      cost,
    } as unknown as Action);
    return decision.verdict === 'allow' ? undefined : decision;
  },
  charge,
  passed: passedLimit,
  softPassed,
  timeLeft,
  budget: budgetOf,
  otherLimits: otherLimitsOf,
};
