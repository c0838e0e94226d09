/** The data policy needs about the work: its persona, its tier, and its quotas. Read anew each time. */
import type { Persona, Quota, Task, Workspace } from '../../model/resources.ts';
import { AUTONOMY_TIERS, type AutonomyTier } from '../../model/words.ts';
import type { Row, Store } from '../../ports/index.ts';
import { type ScopedQuotas, scopeKey } from '../events/rows.ts';
import { ours } from '../tasks/lifecycle.ts';

export interface PolicyData {
  readonly persona?: Persona;
  readonly tier: AutonomyTier;
  readonly quotas: readonly Quota[];
  /** The workspace's directory, which relative paths are relative to. */
  readonly root?: string;
}
export type ReadPolicyData = (about: PolicySubject) => Promise<PolicyData>;

/** The subject of a decision: a task, or a task about to be created, with its tenant. */
export type PolicySubject = Pick<Task, 'workspace_id' | 'persona_id' | 'quota_id'> &
  Partial<Pick<Task, 'metadata' | 'assigned_agent_id'>> & {
    readonly tenant_id?: string | undefined;
    /** The session's highest tier, where no task states it yet. */
    readonly most?: string | undefined;
  };

export function createPolicyData(
  store: Pick<Store, 'get'>,
  defaultTier: () => AutonomyTier,
  agentQuota: (agent: string) => string | undefined = () => undefined,
): ReadPolicyData {
  async function quotasNamed(ids: ReadonlySet<string>): Promise<readonly (Quota | undefined)[]> {
    return await Promise.all([...ids].map((id) => store.get<Quota & Row>('quota', id)));
  }

  /** Quotas of the tenant and of the whole installation: no resource names them, they apply to all work. */
  async function scopedQuotas(tenant: string | undefined): Promise<readonly string[]> {
    const common = await store.get<ScopedQuotas>('scoped_quotas', scopeKey(undefined));
    const own = tenant === undefined ? undefined : await store.get<ScopedQuotas>('scoped_quotas', scopeKey(tenant));
    if (!common && !own) return NO_IDS;
    // A tenant-scoped quota without a tenant applies to work that has none.
    const shared = common?.quotas.filter(({ scope }) => scope === 'organization' || tenant === undefined) ?? [];
    return [...shared, ...(own?.quotas ?? [])].map(({ id }) => id);
  }

  return async ({ persona_id, workspace_id, quota_id, assigned_agent_id: agent, metadata, tenant_id, most }) => {
    const [workspace, persona] = persona_id
      ? await Promise.all([
          store.get<Workspace & Row>('workspace', workspace_id),
          store.get<Persona & Row>('persona', persona_id),
        ])
      : [await store.get<Workspace & Row>('workspace', workspace_id)];
    const ofAgent = agent ? agentQuota(agent) : undefined;
    const named = [persona?.quota_id, workspace?.quota_id, quota_id, ofAgent].filter((id) => typeof id === 'string');
    // Most work names no quota, and then there is nothing to await.
    const found = named.length === 0 ? NONE : await quotasNamed(new Set(named));
    // A workspace, persona or quota was deleted while its work runs: its limits are unknown, so acts need approval.
    const gone = !workspace || (persona_id && !persona) || found.includes(undefined);
    const tenant = tenant_id ?? (metadata && ours({ metadata }).tenant_id) ?? workspace?.tenant_id ?? undefined;
    const scoped = await scopedQuotas(tenant);
    const more = scoped.length === 0 ? NONE : await quotasNamed(new Set(scoped.filter((id) => !named.includes(id))));
    const all = more.length === 0 ? found : [...found, ...more];
    return {
      tier: atMost(gone ? 'suggest' : tierOf(persona, defaultTier()), most ?? (metadata && ours({ metadata }).most)),
      quotas: all === NONE ? NONE : all.filter((quota) => quota !== undefined),
      ...(workspace?.root && { root: workspace.root }),
      ...(persona && { persona }),
    };
  };
}
const NONE: readonly Quota[] = [];
const NO_IDS: readonly string[] = [];

/** Without a persona the rules alone decide; an unknown tier requires approval. */
export function tierOf(persona: Pick<Persona, 'autonomy_tier'> | undefined, otherwise: AutonomyTier): AutonomyTier {
  if (!persona) return otherwise;
  const known = (AUTONOMY_TIERS as readonly string[]).includes(persona.autonomy_tier);
  return known ? (persona.autonomy_tier as AutonomyTier) : 'suggest';
}

/** The narrower of two tiers: a limit never widens a tier. An unknown limit requires approval. */
export function atMost(tier: AutonomyTier, most: string | undefined): AutonomyTier {
  if (most === undefined) return tier;
  const limit = AUTONOMY_TIERS.find((word) => word === most) ?? 'suggest';
  return AUTONOMY_TIERS.indexOf(limit) < AUTONOMY_TIERS.indexOf(tier) ? limit : tier;
}
