/**
 * Calls that another gateway ran or refused, with the decision it reports. The remote decision is stated under that gateway's
 * name beside our own, so that neither can be mistaken for the other.
 */
import type { CoreEvent } from '../../model/events.ts';
import type { Receipt } from '../../model/receipt.ts';
import type { JsonObject } from '../../model/schema.ts';
import { type Members, sha256, text, time } from './read-members.ts';
import { type CallEvidence, type Calls, callOf, foldRewritten } from './tool-calls.ts';

type Approval = NonNullable<Receipt['approvals']>[number];

/** `vendor.tollbridge.remote_decided`. Undefined when necessary members are missing. */
export function remotelyDecided(calls: Calls, payload: Members): CallEvidence | undefined {
  const id = text(payload.tool_call_id);
  const remote = text(payload.remote);
  const denied = payload.verdict === 'denied';
  if (!id || !remote || !(denied || payload.verdict === 'approved')) return undefined;
  // A call with an answer is settled: later reports change nothing.
  if (calls.over.has(id)) return undefined;
  const call = callOf(calls, id, text(payload.name));
  foldRewritten(call, payload.input);
  call.requested_hash ??= sha256(payload.requested_input_hash);
  call.executed_hash = (payload.input === undefined ? sha256(payload.input_hash) : undefined) ?? call.executed_hash;
  call.remote_output = sha256(payload.output_hash) ?? call.remote_output;
  call.remote = wordOf(payload, remote, denied);
  if (denied) {
    call.denied = true;
    call.code = text(payload.code) ?? call.code;
  } else if (call.code === WITHDRAWN) {
    // Our question was withdrawn, not denied. If the call ran, it ran without an approval of ours.
    call.denied = undefined;
    call.code = undefined;
  } else if (call.verdict === undefined) {
    // The remote gateway decided, whatever was reported before; no decision was made here.
    call.denied = false;
  }
  return call;
}

const WITHDRAWN = 'approval_withdrawn';

function wordOf(payload: Members, remote: string, denied: boolean): JsonObject {
  const [ask_id, by, code] = [text(payload.ask_id), text(payload.by), text(payload.code)];
  const [reason, rule_id] = [text(payload.reason), text(payload.rule_id)];
  return {
    ...(ask_id && { ask_id }),
    ...(by && { by }),
    ...(code && { code }),
    decision: denied ? 'denied' : 'approved',
    ...(reason && { reason }),
    ...(payload.relayed === true && { relayed: true }),
    remote,
    ...(rule_id && { rule_id }),
  };
}

/**
 * The remote approvers' answer, attributed to them. Undefined when no approver was asked, or the answer came from this gateway.
 */
export function remoteApproval(payload: Members, event: CoreEvent): Approval | undefined {
  const remote = text(payload.remote);
  const ask = text(payload.ask_id);
  if (!remote || !ask || payload.relayed === true) return undefined;
  return {
    action: `tool:${text(payload.name) ?? 'unknown'}`,
    actor: `remote:${remote}:${text(payload.by) ?? 'unknown'}`,
    approval_id: `remote:${remote}:${ask}`,
    decided_at: time(payload.at) ?? event.created_at,
    decision: decisionOf(payload),
    quorum_proof: { claimed_by: remote },
  };
}

function decisionOf({ verdict, code }: Members): Approval['decision'] {
  if (verdict === 'approved') return 'approved';
  if (code === 'approval_timed_out') return 'timeout';
  return code === WITHDRAWN ? 'canceled' : 'denied';
}
