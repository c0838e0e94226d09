/**
 * Puts approvals to the person at the client, where the client can show a form and acts for a person. The form names the
 * requester and the act, and cannot be mistaken for a form of the server. Other approvers answer at another door.
 */
import type { ElicitRequestFormParams } from '@modelcontextprotocol/server';
import {
  type AskRecord,
  asFault,
  type Bridge,
  type Dialog,
  dialogFor,
  isObject,
  type JsonObject,
  type Logger,
  type Row,
} from '../../../src/index.ts';
import type { Inputs, Inputted } from '../request-context.ts';
import { type Caller, canFillForms } from './caller.ts';

export const APPROVAL_KEY = 'tollbridge_approval';

export interface Approvals {
  /** Shows the question and submits the answer. The first answer counts, at whichever door it is given. */
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
        // The question was answered at another door, or the client has disconnected: its state in the log does not change.
        const { kind } = asFault(cause);
        if (kind === 'internal') log.warn({ err: cause, ask: askId }, 'an approval could not be put to a client');
      }
    },
  };
}

/** A form with the whole act, or one that offers no approval: a person cannot approve an act that is only partly shown. */
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
  } satisfies ElicitRequestFormParams;
}
const ELSEWHERE = 'answer elsewhere';

/** Only an explicit approval approves. A dismissed form is a denial that says so, unless the form offered no approval. */
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
