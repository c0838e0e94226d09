/** Refusals, in the words of the wire. A denial by policy is neither the caller's mistake nor our failure, and has its own code. */
import { POLICY_BLOCK } from '../../../../mappings/acp.ts';
import { asFault } from '../../../../src/index.ts';
import type { WireError } from '../../../../src/transport/json-rpc/messages.ts';
import { byRule } from '../../refusals.ts';
import { toWireError } from '../../translate.ts';
import { encode, encodeError, encodeResult } from './frame.ts';

/** `rule` is in the text already; programs read it from `data`. */
export function refusedError(reason: string, rule?: unknown): WireError {
  const data = { code: 'policy_violation', reason, ...(typeof rule === 'string' && { rule_id: rule }) };
  return { code: POLICY_BLOCK, message: reason, data };
}

/** A denied prompt ends its turn: the reason as a message of the agent, then the refusal. */
export function refusedPrompt(id: string, sessionId: string, reason: string): readonly Buffer[] {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `${reason}\n` } };
  return [
    encode({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } }),
    encodeResult(id, { stopReason: 'refusal' }),
  ];
}

/** The error response for a failure on our side of an editor's request. A denial by policy keeps its own code. */
export function failedRequest(id: string, thrown: unknown): Buffer {
  const fault = asFault(thrown);
  const rule = fault.details?.rule_id;
  return encodeError(id, fault.kind === 'policy_violation' ? refusedError(reasonOf(thrown), rule) : toWireError(fault));
}

/** The reason of a fault, with the rule that it comes from. */
export function reasonOf(thrown: unknown): string {
  const { kind, message, details } = asFault(thrown);
  const rule = details?.rule_id;
  return kind === 'policy_violation' && typeof rule === 'string' ? byRule(rule, message) : message;
}

export function agentGoneError(why: string): WireError {
  return { code: -32603, message: why, data: { code: 'upstream_unavailable' } };
}
