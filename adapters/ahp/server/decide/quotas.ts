/** For an agent that hit a limit elsewhere: when our own quotas allow it to try again. */
import { limitNames } from '../../../../mappings/ahp.ts';
import { type Bridge, type Json, type JsonObject, own } from '../../../../src/index.ts';
import type { GateDecision } from '../../translate.ts';
import type { SupervisedRun } from '../supervised-tasks.ts';

/** A quota window that opens later than this is not waited for. */
const LONGEST_MS = 60 * 60 * 1000;

/** Undefined when none of our quotas is exceeded. */
export async function waitForQuota(
  bridge: Bridge,
  run: SupervisedRun,
  limit: Json,
  now: string,
): Promise<GateDecision | undefined> {
  const names =
    typeof limit === 'string'
      ? ((Object.hasOwn(limitNames, limit) ? limitNames[limit] : undefined) ?? [])
      : Object.values(limit as JsonObject).map(String);
  for (const quota of await bridge.quotasOf(run.actor, run.taskId)) {
    // A soft limit only warns.
    if (quota.hard_limit !== true && (quota.soft_limit === true || quota.hard_limit === false)) continue;
    const spent = names.find(
      (name) => (own(quota.usage, name) ?? 0) >= (own(quota.limits, name) ?? Number.POSITIVE_INFINITY),
    );
    const opens = quota.reset_at ? Date.parse(quota.reset_at) - Date.parse(now) : Number.NaN;
    if (!spent || opens <= 0) continue;
    const reason = `limit ${spent} of quota ${quota.id} is used up`;
    return opens <= LONGEST_MS
      ? { verdict: 'defer', reason, retry_after_ms: opens }
      : { verdict: 'block', reason: `${reason}${quota.exhaustion_reason ? `: ${quota.exhaustion_reason}` : ''}` };
  }
  return undefined;
}
