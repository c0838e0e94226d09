/** Converts decisions and rules to the words of `agents-protocol-2026-10-11`, and the acts it asks about to ours. Pure. */
import { ACTION_CLASSES, DECISIONS, RISKS } from '../../../mappings/harn-2026-10-11.ts';
import type {
  Actor,
  CoreEvent,
  DecidedPayload,
  Decision,
  HypotheticalAct,
  PermissionRule,
  Row,
} from '../../../src/index.ts';
import type { NewerWire } from './schemas-2026-10-11.ts';

export function toWireRule(rule: PermissionRule & Row): NewerWire<'RememberRule'> {
  return {
    id: rule.id,
    tenant_id: rule.tenant_id ?? null,
    scope: rule.scope,
    scope_value: rule.scope_value ?? null,
    class: rule.class,
    action_pattern: rule.action_pattern,
    target_pattern: rule.target_pattern,
    allow: rule.allow,
    reason: rule.reason ?? null,
    created_at: rule.created_at,
    created_by: rule.created_by,
    expires_at: rule.expires_at ?? null,
    revoked_at: null,
  };
}

/** The act that is asked about, as an agent of the caller's tenant would propose it. */
export function toCoreAct(
  asked: NewerWire<'PermissionCheckRequest'>,
  { tenant_id }: Actor,
): Omit<HypotheticalAct, 'session'> {
  const row = ACTION_CLASSES.find(({ wire }) => wire === asked.class)!;
  const actor: Actor = { id: asked.actor, kind: 'agent', scopes: [], ...(tenant_id && { tenant_id }) };
  return {
    kind: row.core,
    actor,
    tool: asked.action,
    ...(asked.target && { target: asked.target }),
    arguments: { [row.target]: asked.target },
    effect: row.effect,
  };
}

export function toWireDecision(decision: Decision): NewerWire<'PermissionCheckResponse'>['decision'] {
  const { reason, rule_id = null, policy_version = '' } = decision;
  const { check } = DECISIONS.find(({ core }) => core === decision.verdict)!;
  if (check === 'suspend') {
    return { outcome: check, policy_version, escalate_to: [...(decision.ask?.to ?? [])], reason };
  }
  return { outcome: check, scope: 'always', policy_version, reason, rule_id };
}

/** Undefined for a decision that is not about an act. */
export function toWireAudit({ payload, ...event }: CoreEvent): NewerWire<'AuditEntry'> | undefined {
  const { action, decision } = payload as Partial<DecidedPayload>;
  if (!action || !decision) return undefined;
  const { outcome } = DECISIONS.find(({ core }) => core === decision.verdict) ?? { outcome: 'denied' as const };
  const risk = riskOf(action.effect);
  return {
    request: {
      id: action.id,
      tenant_id: action.actor.tenant_id ?? null,
      session_id: event.session_id ?? 'none',
      workspace_id: event.workspace_id ?? null,
      actor: action.actor.id,
      class: classOf(action.kind),
      action: action.tool ?? action.kind,
      target: action.target ?? '',
      risk,
      requested_at: event.created_at,
    },
    outcome,
    policy_version: decision.policy_version ?? '',
    risk,
    rule_id: decision.rule_id ?? null,
    reason: decision.reason,
    decided_at: event.created_at,
    decided_by: decision.engine,
  };
}

/** The class an act belongs to; `custom` where several share a kind. */
export function classOf(kind: string): string {
  const rows = ACTION_CLASSES.filter(({ core }) => core === kind);
  return rows.length === 1 ? rows[0]!.wire : 'custom';
}

function riskOf(effect: string): NewerWire<'AuditEntry'>['risk'] {
  const row = RISKS.find(({ core }) => core === effect);
  return (row?.wire ?? 'high') as NewerWire<'AuditEntry'>['risk'];
}
