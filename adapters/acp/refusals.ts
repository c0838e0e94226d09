/**
 * Refusals in words, for the person at the editor and for the model: which rule or who said no, and why. The protocol has no
 * member for a reason in the response to a permission request, so it reaches the model as an error where the agent passes the
 * text of errors on, and as a note with the next prompt where it does not.
 */
import { PASSES_ERRORS_ON } from '../../mappings/acp.ts';
import { type Answer, beginning, type JsonObject, vendorEvent, visibleLine } from '../../src/index.ts';

/** The agent was told the reasons of earlier refusals. */
export const REFUSALS_REPORTED = vendorEvent('vendor.acp.refusals_reported');

export function refusalText(answer: Answer): string {
  const reason = ('reason' in answer && answer.reason) || 'not approved';
  if (answer.kind !== 'denied') return reason;
  if (answer.rule_id) return byRule(answer.rule_id, reason);
  return answer.ask_id ? `Denied by ${answer.by}: ${reason}` : reason;
}

export interface RefusedAct {
  readonly reason: string;
  readonly decision: { readonly verdict: string; readonly rule_id?: string | null };
}

export function refusedActText({ reason, decision }: RefusedAct): string {
  return decision.verdict !== 'escalate' && decision.rule_id ? byRule(decision.rule_id, reason) : reason;
}

export function byRule(rule: string, reason: string): string {
  return `Refused by rule ${rule}: ${reason}`;
}

/** Whether the agent, by its name for itself, passes the text of an error response on to its model. */
export function passesErrorsOn(agent: string): boolean {
  return PASSES_ERRORS_ON.has(agent.replace(/^@[^/]+\//, ''));
}

/** For the next prompt of an agent that told its model only that the user refused. */
export function refusalsBlock(refusals: readonly string[]): JsonObject {
  const text = `Note of the gateway between editor and agent: the user did not refuse these calls.\n${refusals.join('\n')}`;
  return { type: 'text', text, annotations: { audience: ['assistant'] } };
}

export function refusalOf(title: string | undefined, text: string): string {
  return `- ${beginning(visibleLine(title ?? 'a call'), 200)}: ${text}`;
}
