/**
 * Approvals put to whoever sits in front of the client, where the client can show a form and may speak for a person. The
 * question says who wants what; it cannot be taken for one of the server's. Everyone else answers at another door.
 */
import {
  type AskRecord,
  asFault,
  type Bridge,
  type Dialog,
  dialogFor,
  type JsonObject,
  type Logger,
  type Row,
} from '../../src/index.ts';
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
        const dialog = await dialogFor(bridge, { ...person, interactive: true }, ask);
        const form = approvalForm(dialog);
        const { inputResponses } = await input({ [key]: { method: 'elicitation/create', params: form } });
        const answer = answerIn(inputResponses[key] as JsonObject | undefined, dialog);
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

/** The whole act, or a form that takes no yes: what a person has not seen is not approved here. */
export function approvalForm({ text, whole }: Dialog): JsonObject {
  return {
    message: `Tollbridge asks for your approval: ${text}`,
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: whole ? ['approve', 'deny'] : [ELSEWHERE, 'deny'] },
        reason: { type: 'string', title: 'Reason', description: 'For the record' },
      },
      required: ['decision'],
    },
  };
}
const ELSEWHERE = 'answer elsewhere';

/** Only a word for yes is a yes. A form that was put away is a no that says so, unless it could not have been a yes. */
export function answerIn(
  result: JsonObject | undefined,
  { whole }: Pick<Dialog, 'whole'>,
): { approved: boolean; reason?: string } | undefined {
  if (!result) return undefined;
  const content = isObject(result.content) ? result.content : {};
  const reason = typeof content.reason === 'string' && content.reason !== '' ? content.reason : undefined;
  if (!whole && !(result.action === 'accept' && content.decision === 'deny')) return undefined;
  if (result.action === 'accept' && content.decision === 'approve')
    return { approved: true, ...(reason && { reason }) };
  if (result.action === 'accept') return { approved: false, reason: reason ?? 'denied by the person at the client' };
  return { approved: false, reason: result.action === 'decline' ? 'declined at the client' : 'the form was put away' };
}
