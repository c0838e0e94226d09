/** When an agent ran into a limit elsewhere: what our own quotas have to say about trying again. */
import { limitNames } from '../../mappings/ahp.ts';
import type { Bridge, Json, JsonObject, Quota, Row, Task, Workspace } from '../../src/index.ts';
import type { Run } from './runs.ts';
import type { Ruled } from './translate.ts';

/** A window that opens later than this is not waited for. */
const LONGEST_MS = 60 * 60 * 1000;

/** Undefined when no quota of ours is in the way. */
export async function waitForQuota(bridge: Bridge, run: Run, limit: Json, now: string): Promise<Ruled | undefined> {
  const names =
    typeof limit === 'string'
      ? ((Object.hasOwn(limitNames, limit) ? limitNames[limit] : undefined) ?? [])
      : Object.values(limit as JsonObject).map(String);
  const task = await bridge.view<Task & Row>(run.actor, 'task', run.taskId);
  const workspace = await bridge.view<Workspace & Row>(run.actor, 'workspace', task.workspace_id);
  const ids = [task.quota_id, workspace.quota_id].filter((id): id is string => typeof id === 'string');
  for (const id of new Set(ids)) {
    const quota = await bridge.view<Quota & Row>(run.actor, 'quota', id);
    const spent = names.find((name) => (quota.usage[name] ?? 0) >= (quota.limits[name] ?? Number.POSITIVE_INFINITY));
    const opens = quota.reset_at ? Date.parse(quota.reset_at) - Date.parse(now) : Number.NaN;
    if (!spent || opens <= 0) continue;
    const reason = `limit ${spent} of quota ${quota.id} is used up`;
    return opens <= LONGEST_MS
      ? { verdict: 'defer', reason, retry_after_ms: opens }
      : { verdict: 'block', reason: `${reason}${quota.exhaustion_reason ? `: ${quota.exhaustion_reason}` : ''}` };
  }
  return undefined;
}
