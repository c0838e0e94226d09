/** What policy has to know about whoever works: the persona, its tier, and the quotas that pay. Read fresh each time. */
import type { Persona, Quota, Task, Workspace } from '../model/resources.ts';
import { AUTONOMY_TIERS, type AutonomyTier } from '../model/words.ts';
import type { Row, Store } from '../ports.ts';

export interface PolicyData {
  readonly persona?: Persona;
  readonly tier: AutonomyTier;
  readonly quotas: readonly Quota[];
  /** The workspace's directory, from which relative paths are meant. */
  readonly root?: string;
}
export type ReadPolicyData = (about: Pick<Task, 'workspace_id' | 'persona_id' | 'quota_id'>) => Promise<PolicyData>;

export function createPolicyData(store: Pick<Store, 'get'>, defaultTier: () => AutonomyTier): ReadPolicyData {
  async function quotasNamed(ids: ReadonlySet<string>): Promise<readonly (Quota | undefined)[]> {
    return await Promise.all([...ids].map((id) => store.get<Quota & Row>('quota', id)));
  }

  return async ({ persona_id, workspace_id, quota_id }) => {
    const [workspace, persona] = persona_id
      ? await Promise.all([
          store.get<Workspace & Row>('workspace', workspace_id),
          store.get<Persona & Row>('persona', persona_id),
        ])
      : [await store.get<Workspace & Row>('workspace', workspace_id)];
    const named = [persona?.quota_id, workspace?.quota_id, quota_id].filter((id) => typeof id === 'string');
    // Most work is paid by nobody in particular, and then there is nothing to wait for.
    const found = named.length === 0 ? NONE : await quotasNamed(new Set(named));
    // Withdrawn while its work goes on: nobody can say any more how far it may go, so it asks.
    const gone = !workspace || (persona_id && !persona) || found.includes(undefined);
    return {
      tier: gone ? 'suggest' : tierOf(persona, defaultTier()),
      quotas: found === NONE ? NONE : found.filter((quota) => quota !== undefined),
      ...(workspace?.root && { root: workspace.root }),
      ...(persona && { persona }),
    };
  };
}
const NONE: readonly Quota[] = [];

/** No persona means rules alone; a tier nobody has heard of means ask. */
export function tierOf(persona: Pick<Persona, 'autonomy_tier'> | undefined, otherwise: AutonomyTier): AutonomyTier {
  if (!persona) return otherwise;
  const known = (AUTONOMY_TIERS as readonly string[]).includes(persona.autonomy_tier);
  return known ? (persona.autonomy_tier as AutonomyTier) : 'suggest';
}
