/**
 * Decides whether a secret may be used: when a resource names it and again when it is used, recorded as a decision both times. The
 * answer does not reveal whether the secret exists.
 */
import type { Action, Actor, Decision } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Pointer } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { SecretUser, VaultAccess } from '../../ports/index.ts';
import { decidedEvent } from '../actions/gate.ts';
import type { Context } from '../context.ts';

/** Without a configured policy: any work without a tenant may use any secret, as in an installation without tenants. */
export const WITHOUT_TENANT: VaultAccess = {
  vaultsFor: (_secret, { tenant_id }) => (tenant_id === null ? ['any'] : []),
  listed: (_vault, tenantId) => tenantId === null,
  open: (_vault, { tenant_id }) => tenant_id === null,
};

export interface SecretUse {
  readonly allowed: boolean;
  readonly event: EventDraft;
  readonly refusal: Fault;
}

export function judgeUse(
  { ids }: Pick<Context, 'ids'>,
  access: VaultAccess,
  {
    actor,
    secret,
    user,
    by,
    param,
  }: {
    readonly actor: Actor;
    readonly secret: string;
    readonly user: SecretUser;
    /** The resource that names the secret. */
    readonly by: Pointer;
    readonly param?: string;
  },
): SecretUse {
  const allowed = access.vaultsFor(secret, user).length > 0;
  const reason = allowed ? 'a vault is open to this work' : `no vault here lets this work use the secret ${secret}`;
  const decision: Decision = {
    verdict: allowed ? 'allow' : 'block',
    engine: 'vault-access',
    reason,
    ...(!allowed && { code: 'secret_not_allowed' }),
  };
  const action: Action = {
    id: ids.next('action'),
    kind: 'secret.use',
    actor,
    workspace_id: user.workspace_id ?? '',
    tool: 'vault',
    target: secret,
    arguments: { for: by, tenant_id: user.tenant_id, persona_id: user.persona_id },
    effect: 'read',
    evidence: 'held',
  };
  const event = { ...decidedEvent(action, decision), resource: by, workspace_id: user.workspace_id, session_id: null };
  const refusal = new Fault('policy_violation', reason, {
    details: { code: 'secret_not_allowed' },
    ...(param && { param }),
  });
  return { allowed, event, refusal };
}

/** Every secret a resource names, at any depth, with its path. */
export function secretsNamed(body: JsonObject): readonly { readonly secret: string; readonly param: string }[] {
  const found: { secret: string; param: string }[] = [];
  const look = (value: Json | undefined, path: string, depth: number): void => {
    if (typeof value !== 'object' || value === null || depth > DEEPEST) return;
    for (const [name, member] of Object.entries(value)) {
      const param = `${path}/${name}`;
      if (name === 'secret_name') {
        if (typeof member !== 'string' || member === '') {
          throw new Fault('invalid_request', 'secret_name has to be the name of a secret', { param });
        }
        found.push({ secret: member, param });
      } else look(member, param, depth + 1);
    }
  };
  look(body, '', 0);
  return found;
}
const DEEPEST = 100;
