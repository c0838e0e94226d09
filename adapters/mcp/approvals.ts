/**
 * Approvals put to whoever sits in front of the client, where the client can show a form and may speak for a person. The
 * question says who wants what; it cannot be taken for one of the server's. Everyone else answers at another door.
 */
import { type AskRecord, asFault, type Bridge, type JsonObject, type Logger, type Row } from '../../src/index.ts';
import { type Caller, canFillForms } from './caller.ts';
import { isObject } from './frames.ts';
import type { Inputs, Inputted } from './line.ts';

export const APPROVAL_KEY = 'tollbridge_approval';

export interface Approvals {
  /** Puts the question, and hands the answer in. Whoever answers elsewhere first has answered. */
  ask(caller: Caller, askId: string, input: (requests: Inputs) => Promise<Inputted>): Promise<void>;
}

export function createApprovals(bridge: Bridge, { log }: { readonly log: Logger }): Approvals {
  return {
    async ask(caller, askId, input) {
      const { person } = caller;
      if (!person || !canFillForms(caller.capabilities)) return;
      try {
        const ask = await bridge.view<AskRecord & Row>(person, 'ask', askId);
        const key = `${APPROVAL_KEY}_${askId}`;
        const { inputResponses } = await input({ [key]: { method: 'elicitation/create', params: approvalForm(ask) } });
        const answer = answerIn(inputResponses[key] as JsonObject | undefined);
        if (!answer) return;
        const actor = { ...person, interactive: true } as const;
        await bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: askId, ...answer } });
      } catch (cause) {
        // Answered elsewhere, or nobody there any more: the question stands where it stood.
        const { kind } = asFault(cause);
        if (kind === 'internal') log.warn({ err: cause, ask: askId }, 'an approval could not be put to a client');
      }
    },
  };
}

export function approvalForm({ question, reason, action }: AskRecord): JsonObject {
  const { server, tool, effect, arguments: args } = action as JsonObject;
  const shown = JSON.stringify(args ?? {});
  const lines = [
    `Tollbridge asks for your approval: ${question}`,
    ...(reason ? [`Why you are asked: ${reason}`] : []),
    `Tool: ${String(tool)}${server ? ` of ${String(server)}` : ''}, effect: ${String(effect)}`,
    `Arguments: ${shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown}`,
  ];
  return {
    message: lines.join('\n'),
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: ['approve', 'deny'] },
        reason: { type: 'string', title: 'Reason', description: 'For the record' },
      },
      required: ['decision'],
    },
  };
}
const LONGEST = 2000;

/** Only a word for yes is a yes. A form that was put away is a no that says so. */
export function answerIn(result: JsonObject | undefined): { approved: boolean; reason?: string } | undefined {
  if (!result) return undefined;
  const content = isObject(result.content) ? result.content : {};
  const reason = typeof content.reason === 'string' && content.reason !== '' ? content.reason : undefined;
  if (result.action === 'accept' && content.decision === 'approve')
    return { approved: true, ...(reason && { reason }) };
  if (result.action === 'accept') return { approved: false, reason: reason ?? 'denied by the person at the client' };
  return { approved: false, reason: result.action === 'decline' ? 'declined at the client' : 'the form was put away' };
}
