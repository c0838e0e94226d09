/** Approvals as a receipt states them: the approver, the action, the decision, the time, and the question's hash. */

import type { CoreEvent } from '../../model/events.ts';
import type { Receipt } from '../../model/receipt.ts';
import { asText } from '../../model/values/as-text.ts';
import { own } from '../../model/values/own.ts';
import { hashIfPossible, type Members, membersOf, text, time } from './read-members.ts';

type Approval = NonNullable<Receipt['approvals']>[number];

export interface OpenAsk {
  readonly approval_id: string;
  readonly action: string;
  /** The question asked for a value, not a permission: stated as an input, never as an approval. */
  readonly input: boolean;
  /** Hash of the question as it was recorded. */
  readonly evidence_hash?: string;
}

/** `vendor.tollbridge.ask_opened` */
export function openedAsk(payload: Members): OpenAsk | undefined {
  const ask = membersOf(payload.ask);
  const approval_id = text(ask.id);
  if (!approval_id) return undefined;
  const evidence_hash = hashIfPossible(payload.ask);
  const input = text(ask.kind) === 'input';
  return { approval_id, action: actionOf(ask), input, ...(evidence_hash && { evidence_hash }) };
}

function actionOf(ask: Members): string {
  const kind = text(ask.kind) ?? 'unknown';
  if (kind !== 'approval') return kind;
  const action = membersOf(ask.action);
  const name = text(action.tool) ?? text(action.name);
  return name ? `tool:${name}` : (text(action.kind) ?? kind);
}

/** `vendor.tollbridge.ask_closed`. An answer to a question that is not in the log is still stated, without its hash. */
export function approvalDecision(id: string, ask: OpenAsk | undefined, payload: Members, event: CoreEvent): Approval {
  const decision = own(DECISIONS, asText(payload.state)) ?? 'canceled';
  return approval(ask ?? { approval_id: id, action: 'unknown', input: false }, {
    actor: text(payload.by) ?? text(event.actor) ?? 'unknown',
    decided_at: time(payload.at) ?? event.created_at,
    decision,
  });
}

/** The question was not answered before the task ended. */
export function unanswered(ask: OpenAsk, actor: string, ended_at: string): Approval {
  return approval(ask, { actor, decided_at: ended_at, decision: 'canceled' });
}

const DECISIONS: Readonly<Record<string, Approval['decision']>> = {
  approved: 'approved',
  answered: 'approved',
  denied: 'denied',
  expired: 'timeout',
  canceled: 'canceled',
};

function approval(ask: OpenAsk, ruled: Pick<Approval, 'actor' | 'decided_at' | 'decision'>): Approval {
  return {
    action: ask.action,
    actor: ruled.actor,
    approval_id: ask.approval_id,
    decided_at: ruled.decided_at,
    decision: ruled.decision,
    ...(ask.evidence_hash && { evidence_hash: ask.evidence_hash }),
    quorum_proof: ruled.decision === 'approved' ? { required: 1, satisfied: 1 } : null,
  };
}
