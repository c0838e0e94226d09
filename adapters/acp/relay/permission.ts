/**
 * `session/request_permission`: merged with what is known of the call, put to the gate, answered by a rule, by the person at
 * the editor, or by anyone elsewhere. Options are chosen by kind; the one that lasts is never chosen for someone.
 */
import { STANDING_GRANT } from '../../../mappings/acp.ts';
import { type Answer, asFault, type JsonObject } from '../../../src/index.ts';
import type { Call } from '../calls.ts';
import { listOf, objectOf, textOf, within } from '../shapes.ts';
import { onlyLasting, optionsOf, toAction, toWireOutcome, type WireOption } from '../translate.ts';
import type { Approvals } from './approvals.ts';
import { encodeResult, idOf, paramsOf, type Request, type Response } from './frame.ts';
import { withMember } from './members.ts';
import { type Questions, type Read, readChoice } from './questions.ts';
import type { Begun, Turn } from './turns.ts';
import type { Wires } from './wires.ts';

export interface PermissionDeps {
  readonly wires: Wires;
  readonly questions: Questions;
  readonly approvals: Approvals;
  /** Whether people are offered to be asked no more. */
  readonly standingGrants: 'honour' | 'hide';
}

interface Asking {
  readonly request: Request;
  readonly turn: Turn;
  readonly begun: Begun;
  readonly withdrawn: AbortSignal;
}

export function createPermissions({ wires, questions, approvals, standingGrants }: PermissionDeps) {
  /** Settles when the agent has its answer. */
  return async function permission(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void> {
    const params = paramsOf(request);
    const begun = await turn.begun;
    const asked = toolCallOf(params);
    const call = begun.scribe.asked(asked);
    // What was told before the question stands before it in the log.
    await begun.scribe.settled();
    const options = optionsOf(params.options);
    let lasting = false;
    let saidYes = false;
    const read = (response: Response): Read => {
      const choice = readChoice(response, options);
      lasting = choice.lasting;
      saidYes = choice.body.approved === true;
      return choice;
    };
    const { line, hidden } = asShown(request, params, standingGrants);
    const expectation = questions.expect(turn, call.id, {
      shown: { request, line },
      read,
      onShown: () => turn.cards.shown(call.told.toolCallId),
    });
    const title = textOf(asked.title) ?? call.told.title;
    const ext = { acp: { toolCallId: call.told.toolCallId, options: listOf(params.options) } };
    const ask = {
      kind: 'approval',
      action: toAction(call.told, call.id),
      ...(title && { question: title }),
      ext,
      withdrawn,
    } as const;
    try {
      let answer = await begun.sink.ask(ask).catch(refusal);
      let words = await expectation.words();
      if (answer.kind === 'approved' && !words && onlyLasting(options)) {
        ({ answer, words } = await chooseAmong(options, call, { request, turn, begun, withdrawn }));
      }
      if (hidden)
        void begun.scribe.note({
          event: 'vendor.acp.options_hidden',
          payload: { tool_call_id: call.id, kinds: [STANDING_GRANT] },
        });
      await settle(answer, call, turn, begun, lasting);
      // The editor's yes is not the last word: rules that changed meanwhile, or a quota that ran out, may have refused the act.
      const line = words && (answer.kind === 'approved' || !saidYes) ? words : undefined;
      wires.agent.send(line ?? encodeResult(idOf(request), toWireOutcome(options, answer)));
    } finally {
      expectation.done();
    }
  };

  /** A rule said yes, and the agent takes nothing but a yes that lasts: that is for a person to give. */
  async function chooseAmong(options: readonly WireOption[], call: Call, { request, turn, begun, withdrawn }: Asking) {
    const key = `${call.id}/option`;
    const expectation = questions.expect(turn, key, {
      shown: { request, line: request.line },
      read(response) {
        const { passes, body } = readChoice(response, options);
        const chosen = textOf(within(response.message, 'result', 'outcome', 'optionId'));
        return { passes, body: body.approved && chosen ? { value: chosen } : { approved: false, ...body } };
      },
      onShown: () => turn.cards.shown(call.told.toolCallId),
    });
    try {
      const question = `${call.told.title ?? 'The agent'}: only a lasting permission is offered. Which?`;
      const schema = { type: 'string', enum: options.map(({ optionId }) => optionId) };
      const given = await begun.sink.ask({ kind: 'input', key, question, schema, withdrawn }).catch(refusal);
      const words = await expectation.words();
      if (given.kind !== 'value') return { answer: given, words };
      const chosen = options.find(({ optionId }) => optionId === given.value);
      const yes = chosen?.kind.startsWith('allow_');
      const outcome = { outcome: { outcome: 'selected', optionId: String(given.value) } };
      const answer: Answer = yes
        ? { kind: 'approved', by: given.by }
        : { kind: 'denied', by: given.by, reason: 'said no' };
      return { answer, words: words ?? encodeResult(idOf(request), outcome) };
    } finally {
      expectation.done();
    }
  }

  async function settle(answer: Answer, call: Call, turn: Turn, { scribe }: Begun, lasting: boolean): Promise<void> {
    if (answer.kind === 'approved') {
      approvals.approved(turn, call, answer);
      // An auditor has to know why later calls were not asked about.
      if (lasting) {
        await scribe.note({ event: 'vendor.acp.standing_grant', payload: { tool_call_id: call.id, by: answer.by } });
      }
      return;
    }
    scribe.reading.denied(call);
    const reason = 'reason' in answer ? answer.reason : 'not approved';
    turn.cards.refused(call.told as unknown as JsonObject, reason);
  }
}

/** The gate could not be asked, or the work is over: not a yes. */
function refusal(cause: unknown): Answer {
  const { kind, message } = asFault(cause);
  if (kind === 'client_closed' || kind === 'conflict') return { kind: 'canceled', reason: message };
  return { kind: 'denied', by: 'bridge', reason: message };
}

/** The call in question, in either version of the wire; a question about none is one about itself. */
function toolCallOf(params: JsonObject): JsonObject {
  const subject = objectOf(params.subject);
  const toolCall = objectOf(params.toolCall) ?? objectOf(subject?.toolCall);
  if (toolCall && textOf(toolCall.toolCallId)) return toolCall;
  const { type: _, ...about } = subject ?? {};
  const title = textOf(params.title) ?? 'permission';
  const named = textOf(subject?.command)
    ? { name: 'command', kind: 'execute', rawInput: about }
    : { name: 'permission', rawInput: { title } };
  return { ...toolCall, toolCallId: `permission:${title}`.slice(0, 200), title, ...named };
}

function asShown(request: Request, params: JsonObject, grants: 'honour' | 'hide'): { line: Buffer; hidden: boolean } {
  const options = listOf(params.options);
  const left = options.filter((option) => within(option, 'kind') !== STANDING_GRANT);
  if (grants === 'honour' || left.length === options.length) return { line: request.line, hidden: false };
  return { line: withMember(request.line, ['params', 'options'], left), hidden: true };
}
