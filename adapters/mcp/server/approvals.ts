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
  isGrantable,
  isObject,
  type JsonObject,
  type Logger,
  mayAnswer,
  own,
  type Row,
  type Task,
} from '../../../src/index.ts';
import type { Inputs, Inputted } from '../request-context.ts';
import { type Caller, canFillForms } from './caller.ts';

export const APPROVAL_KEY = 'tollbridge_approval';

export interface ApprovalForms {
  /** Shows the question and submits the answer. The first answer counts, at whichever door it is given. */
  ask(caller: Caller, askId: string, input: (requests: Inputs) => Promise<Inputted>): Promise<void>;
}

export function createApprovals(bridge: Bridge, { log }: { readonly log: Logger }): ApprovalForms {
  return {
    async ask(caller, askId, input) {
      const { person } = caller;
      if (!person || !canFillForms(caller.capabilities)) return;
      try {
        const ask = await bridge.view<AskRecord & Row>(person, 'ask', askId);
        const key = `${APPROVAL_KEY}_${askId}`;
        const actor = { ...person, interactive: true } as const;
        const dialog = await dialogFor(bridge, actor, ask);
        const longer =
          isGrantable(ask) && mayAnswer(actor, ask, await bridge.view<Task & Row>(actor, 'task', ask.task_id));
        const form = approvalForm(dialog, longer ? GRANTS : {});
        const { inputResponses } = await input({ [key]: { method: 'elicitation/create', params: form } });
        const answer = answerIn(inputResponses[key] as JsonObject | undefined, dialog, longer ? GRANTS : {});
        if (!answer) return;
        await bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: askId, ...answer } });
      } catch (cause) {
        // The question was answered at another door, or the client has disconnected: its state in the log does not change.
        const { kind } = asFault(cause);
        if (kind === 'internal') log.warn({ err: cause, ask: askId }, 'an approval could not be put to a client');
      }
    },
  };
}

/** Approvals for longer than once, by what the form calls them: the same tool is then not asked about again. */
type Grants = Readonly<Record<string, string>>;
const GRANTS: Grants = { 'approve for this session': 'session', 'approve for 2 hours': '2h' };

/** A form with the whole act, or one that offers no approval: a person cannot approve an act that is only partly shown. */
export function approvalForm({ text, whole }: Dialog, grants: Grants = {}): JsonObject {
  const choices = whole ? ['approve', ...Object.keys(grants), 'deny'] : [ELSEWHERE, 'deny'];
  return {
    message: `Tollbridge asks for your approval: ${text}`,
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: choices },
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
  grants: Grants = {},
): { approved: boolean; reason?: string; for?: string } | undefined {
  if (!result) return undefined;
  const content = isObject(result.content) ? result.content : {};
  const reason = typeof content.reason === 'string' && content.reason !== '' ? content.reason : undefined;
  if (!whole && !(result.action === 'accept' && content.decision === 'deny')) return undefined;
  const longer = typeof content.decision === 'string' ? own(grants, content.decision) : undefined;
  if (result.action === 'accept' && (content.decision === 'approve' || longer !== undefined))
    return { approved: true, ...(reason && { reason }), ...(longer && { for: longer }) };
  if (result.action === 'accept') return { approved: false, reason: reason ?? 'denied by the person at the client' };
  return { approved: false, reason: result.action === 'decline' ? 'declined at the client' : 'the form was put away' };
}
