/** What policy has to know about whoever works: the persona, its tier, and the quotas that pay. Read fresh each time. */
import type { Persona, Quota, Task, Workspace } from '../model/resources.ts';
import { AUTONOMY_TIERS, type AutonomyTier } from '../model/words.ts';
import type { Row, Store } from '../ports.ts';

export interface PolicyData {
  readonly persona?: Persona;
  readonly tier: AutonomyTier;
  readonly quotas: readonly Quota[];
}
export type ReadPolicyData = (about: Pick<Task, 'workspace_id' | 'persona_id' | 'quota_id'>) => Promise<PolicyData>;

export function createPolicyData(store: Pick<Store, 'get'>, defaultTier: AutonomyTier): ReadPolicyData {
  return async (about) => {
    const [persona, workspace] = await Promise.all([
      about.persona_id ? store.get<Persona & Row>('persona', about.persona_id) : undefined,
      store.get<Workspace & Row>('workspace', about.workspace_id),
    ]);
    const quotaIds = [persona?.quota_id, workspace?.quota_id, about.quota_id].filter((id) => typeof id === 'string');
    const found = await Promise.all([...new Set(quotaIds)].map((id) => store.get<Quota & Row>('quota', id)));
    // Withdrawn while its work goes on: nobody can say any more how far it may go, so it asks.
    const gone = !workspace || (about.persona_id && !persona) || found.includes(undefined);
    return {
      ...(persona && { persona }),
      tier: gone ? 'suggest' : tierOf(persona, defaultTier),
      quotas: found.filter((quota) => quota !== undefined),
    };
  };
}

/** No persona means rules alone; a tier nobody has heard of means ask. */
export function tierOf(persona: Pick<Persona, 'autonomy_tier'> | undefined, otherwise: AutonomyTier): AutonomyTier {
  if (!persona) return otherwise;
  const known = (AUTONOMY_TIERS as readonly string[]).includes(persona.autonomy_tier);
  return known ? (persona.autonomy_tier as AutonomyTier) : 'suggest';
}
