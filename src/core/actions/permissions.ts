/** What policy would decide about an act that nobody has proposed. Nothing is recorded, and nothing is charged. */
import type { Action } from '../../model/actions.ts';
import type { ActReader, Ids, Permissions, PolicyEngine } from '../../ports/index.ts';
import type { ReadPolicyData } from './policy-data.ts';

export interface PermissionsDeps {
  readonly policy: Pick<Permissions, 'requireSound'> & Pick<PolicyEngine, 'decide'>;
  readonly policyData: ReadPolicyData;
  readonly read: ActReader;
  readonly ids: Ids;
  /** The version of the rules in force. */
  readonly version: () => string;
}

/** How long a check may take. */
const CHECK_MS = 2000;

export function createPermissions({ policy, policyData, read, ids, version }: PermissionsDeps): Permissions {
  return {
    version,
    requireSound: policy.requireSound,
    async check({ session, ...act }) {
      const { id, workspace_id, persona_id = null } = session;
      const action: Action = {
        ...act,
        id: ids.next('action'),
        workspace_id,
        session_id: id,
        evidence: 'asked',
        ...(await policyData({ workspace_id, persona_id, quota_id: null })),
      };
      const effect = read(action).shows ?? act.effect;
      return await policy.decide({ ...action, effect }, AbortSignal.timeout(CHECK_MS), CHECK_MS);
    },
  };
}
