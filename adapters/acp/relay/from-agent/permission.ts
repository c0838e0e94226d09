/**
 * `session/request_permission`: merged with the known state of the call, submitted to the gate, and answered by a rule, by the
 * person at the editor, or by another approver. Each request is one question with one answer, about the call as it was when it
 * was asked. Options are chosen by kind; the relay never chooses one that lasts.
 */

import { STANDING_GRANT } from '../../../../mappings/acp.ts';
import { type Answer, asFault, asText, type JsonObject, vendorEvent } from '../../../../src/index.ts';
import type { AgentCall } from '../../client/acts/tool-calls.ts';
import { passesErrorsOn, refusalOf, refusalText } from '../../refusals.ts';
import { listOf, objectOf, textOf, within } from '../../shapes.ts';
import {
  onlyLasting,
  optionsOf,
  type ReportedCall,
  toAction,
  toWireOutcome,
  type WireOption,
  withReason,
} from '../../translate.ts';
import { type Questions, type Read, readChoice } from '../editor-view/questions.ts';
import { encodeError, encodeResult, idOf, paramsOf, type Request, type Response } from '../frames/frame.ts';
import { withMember } from '../frames/members.ts';
import type { Wires } from '../frames/pending.ts';
import { refusedError } from '../frames/refusals.ts';
import type { Begun, Turn } from '../from-editor/turns.ts';
import type { Approvals } from './approved-acts.ts';

export interface PermissionDeps {
  readonly wires: Wires;
  readonly questions: Questions;
  readonly approvals: Approvals;
  /** Whether people are offered options after which the agent asks no more. */
  readonly standingGrants: 'honour' | 'hide';
  /** Whether an agent that cannot be told the reason of a refusal gets it with its next prompt. */
  readonly additions: boolean;
  /** The agent's name for itself. */
  readonly agent: () => string;
}

interface Asking {
  readonly request: Request;
  readonly turn: Turn;
  readonly begun: Begun;
  readonly withdrawn: AbortSignal;
}

export function createPermissions(deps: PermissionDeps) {
  const { wires, questions, approvals, standingGrants, additions, agent } = deps;
  const asks = new WeakMap<Turn, Map<string, number>>();

  /** The call's id for its first question; every further question has its own id. */
  function questionId(turn: Turn, callId: string): string {
    const counts = asks.get(turn) ?? new Map<string, number>();
    asks.set(turn, counts);
    const count = (counts.get(callId) ?? 0) + 1;
    counts.set(callId, count);
    return count === 1 ? callId : `${callId}?${count}`;
  }

  /** Settles when the agent has its response. */
  return async function permission(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void> {
    const params = paramsOf(request);
    const begun = await turn.begun;
    const asked = toolCallOf(params);
    const call = begun.recorder.asked(asked);
    // A snapshot: later updates of the call were not part of the question.
    const { reported } = call;
    const id = questionId(turn, call.id);
    // Updates before the question precede it in the log.
    await begun.recorder.settled();
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
    const expectation = questions.expect(turn, id, {
      shown: { request, line },
      read,
      onShown: () => turn.cards.shown(reported.toolCallId),
    });
    const title = textOf(asked.title) ?? reported.title;
    const ext = { acp: { toolCallId: reported.toolCallId, options: listOf(params.options) } };
    const ask = {
      kind: 'approval',
      action: toAction(reported, id, { agent: agent(), cwd: turn.sessionKey.cwd }),
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
        void begun.recorder.note({
          event: vendorEvent('vendor.acp.options_hidden'),
          payload: { tool_call_id: id, kinds: [STANDING_GRANT] },
        });
      // The editor's yes is not final: rules that changed meanwhile, or a quota that ran out, may have denied the act.
      const line = words && (answer.kind === 'approved' || !saidYes) ? words : undefined;
      const here = !saidYes && (await expectation.here());
      await settle(answer, { id, call, reported, lasting, here }, turn, begun);
      wires.agent.send(line ?? responseTo(request, options, answer, here));
    } finally {
      expectation.done();
    }
  };

  /** A rule allowed the act, but the agent offers only a lasting yes: that needs a person. */
  async function chooseAmong(
    options: readonly WireOption[],
    call: AgentCall,
    { request, turn, begun, withdrawn }: Asking,
  ) {
    const key = `${call.id}/option`;
    const expectation = questions.expect(turn, key, {
      shown: { request, line: request.line },
      read(response) {
        const { passes, body } = readChoice(response, options);
        const chosen = textOf(within(response.message, 'result', 'outcome', 'optionId'));
        return { passes, body: body.approved && chosen ? { value: chosen } : { approved: false, ...body } };
      },
      onShown: () => turn.cards.shown(call.reported.toolCallId),
    });
    try {
      const question = `${call.reported.title ?? 'The agent'}: only a lasting permission is offered. Which?`;
      const schema = { type: 'string', enum: options.map(({ optionId }) => optionId) };
      const reply = await begun.sink.ask({ kind: 'input', key, question, schema, withdrawn }).catch(refusal);
      const words = await expectation.words();
      if (reply.kind !== 'value') return { answer: reply, words };
      const chosen = options.find(({ optionId }) => optionId === reply.value);
      const yes = chosen?.kind.startsWith('allow_');
      const outcome = { outcome: { outcome: 'selected', optionId: asText(reply.value) } };
      const answer: Answer = yes
        ? { kind: 'approved', by: reply.by }
        : { kind: 'denied', by: reply.by, reason: 'said no' };
      return { answer, words: words ?? encodeResult(idOf(request), outcome) };
    } finally {
      expectation.done();
    }
  }

  /** A no by a rule, or by an approver elsewhere: the agent gets the reason, in the form in which its model gets it too. */
  function responseTo(request: Request, options: readonly WireOption[], answer: Answer, here: boolean): Buffer {
    const outcome = toWireOutcome(options, answer);
    if (answer.kind !== 'denied' || here) return encodeResult(idOf(request), outcome);
    if (passesErrorsOn(agent())) return encodeError(idOf(request), refusedError(refusalText(answer), answer.rule_id));
    return encodeResult(idOf(request), withReason(outcome, answer));
  }

  async function settle(answer: Answer, asked: Asked, turn: Turn, { recorder }: Begun): Promise<void> {
    const { id, call, reported, lasting, here } = asked;
    if (answer.kind === 'approved') {
      // An editor shows a call in its latest state: a yes to a call that changed meanwhile covers only what both states show.
      const changed = !isSameAct(reported, call.reported);
      await approvals.approved(turn, { call, shown: changed ? [reported, call.reported] : [reported], answer });
      if (changed)
        await recorder.note({ event: vendorEvent('vendor.acp.changed_while_asked'), payload: { tool_call_id: id } });
      // An auditor must know why later calls were not asked about.
      if (lasting) {
        await recorder.note({
          event: vendorEvent('vendor.acp.standing_grant'),
          payload: { tool_call_id: id, by: answer.by },
        });
      }
      return;
    }
    recorder.reader.denied(call);
    const { wireId: sessionId, untold } = turn.sessionKey;
    const text = refusalText(answer);
    const card = turn.cards.refused(call.reported as JsonObject, text, here ? 'here' : { sessionId });
    if (card) wires.editor.send(card);
    const knows = here || !additions || passesErrorsOn(agent());
    if (answer.kind === 'denied' && !knows) untold.push(refusalOf(reported.title, text));
  }
}

interface Asked {
  /** The question's id in the log. */
  readonly id: string;
  readonly call: AgentCall;
  /** The call as it was when it was asked about. */
  readonly reported: ReportedCall;
  /** A person chose an option that lasts. */
  readonly lasting: boolean;
  /** The answer is the one given in this editor. */
  readonly here: boolean;
}

/** Whether it is still the act that was asked about; state and output do not matter. */
function isSameAct(asked: ReportedCall, now: ReportedCall): boolean {
  const act = ({ title, name, kind, rawInput, content, locations }: ReportedCall) =>
    JSON.stringify([title, name, kind, rawInput, content, locations]);
  return asked === now || act(asked) === act(now);
}

/** The gate could not be asked, or the work is over: not a yes. */
function refusal(cause: unknown): Answer {
  const { kind, message } = asFault(cause);
  if (kind === 'client_closed' || kind === 'conflict') return { kind: 'canceled', reason: message };
  return { kind: 'denied', by: 'bridge', reason: message };
}

/** The call in question, in either version of the wire; a question without a call is about itself. */
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
