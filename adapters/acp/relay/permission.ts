/**
 * `session/request_permission`: merged with what is known of the call, put to the gate, answered by a rule, by the person at
 * the editor, or by a person elsewhere. Each request is one question with one answer, about the call as it was when it was
 * asked. Options are chosen by kind; the one that lasts is never chosen for someone.
 */

import { STANDING_GRANT } from '../../../mappings/acp.ts';
import { type Answer, asFault, asText, type JsonObject } from '../../../src/index.ts';
import type { Call } from '../calls.ts';
import { listOf, objectOf, textOf, within } from '../shapes.ts';
import {
  effectOfCall,
  onlyLasting,
  optionsOf,
  type ToldCall,
  toAction,
  toWireOutcome,
  type WireOption,
} from '../translate.ts';
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
  /** The agent, as it names itself. */
  readonly agent: () => string;
}

interface Asking {
  readonly request: Request;
  readonly turn: Turn;
  readonly begun: Begun;
  readonly withdrawn: AbortSignal;
}

export function createPermissions({ wires, questions, approvals, standingGrants, agent }: PermissionDeps) {
  const asks = new WeakMap<Turn, Map<string, number>>();

  /** The call's own name for its first question; every further one is a question of its own. */
  function questionId(turn: Turn, callId: string): string {
    const counts = asks.get(turn) ?? new Map<string, number>();
    asks.set(turn, counts);
    const count = (counts.get(callId) ?? 0) + 1;
    counts.set(callId, count);
    return count === 1 ? callId : `${callId}?${count}`;
  }

  /** Settles when the agent has its answer. */
  return async function permission(request: Request, turn: Turn, withdrawn: AbortSignal): Promise<void> {
    const params = paramsOf(request);
    const begun = await turn.begun;
    const asked = toolCallOf(params);
    const call = begun.scribe.asked(asked);
    // Frozen here: whatever the agent says of the call from now on was not asked about.
    const { told } = call;
    const id = questionId(turn, call.id);
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
    const expectation = questions.expect(turn, id, {
      shown: { request, line },
      read,
      onShown: () => turn.cards.shown(told.toolCallId),
    });
    const title = textOf(asked.title) ?? told.title;
    const ext = { acp: { toolCallId: told.toolCallId, options: listOf(params.options) } };
    const ask = {
      kind: 'approval',
      action: toAction(told, id, { agent: agent(), cwd: turn.place.cwd }),
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
          payload: { tool_call_id: id, kinds: [STANDING_GRANT] },
        });
      await settle(answer, { id, call, told }, turn, begun, lasting);
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
      const outcome = { outcome: { outcome: 'selected', optionId: asText(given.value) } };
      const answer: Answer = yes
        ? { kind: 'approved', by: given.by }
        : { kind: 'denied', by: given.by, reason: 'said no' };
      return { answer, words: words ?? encodeResult(idOf(request), outcome) };
    } finally {
      expectation.done();
    }
  }

  async function settle(answer: Answer, asked: Asked, turn: Turn, { scribe }: Begun, lasting: boolean): Promise<void> {
    const { id, call, told } = asked;
    if (answer.kind === 'approved') {
      // An editor shows a call as it was last told: a yes to one that changed meanwhile covers nothing beyond the answer.
      if (isSameAct(told, call.told))
        await approvals.approved(turn, { call, told, effect: effectOfCall(told), answer });
      else await scribe.note({ event: 'vendor.acp.changed_while_asked', payload: { tool_call_id: id } });
      // An auditor has to know why later calls were not asked about.
      if (lasting) {
        await scribe.note({ event: 'vendor.acp.standing_grant', payload: { tool_call_id: id, by: answer.by } });
      }
      return;
    }
    scribe.reading.denied(call);
    const reason = 'reason' in answer ? answer.reason : 'not approved';
    turn.cards.refused(call.told as unknown as JsonObject, reason);
  }
}

interface Asked {
  /** What the log calls this question. */
  readonly id: string;
  readonly call: Call;
  /** The call as it was when it was asked about. */
  readonly told: ToldCall;
}

/** Whether it is still the act that was asked about, whatever became of its state and its output. */
function isSameAct(asked: ToldCall, now: ToldCall): boolean {
  const act = ({ title, name, kind, rawInput, content, locations }: ToldCall) =>
    JSON.stringify([title, name, kind, rawInput, content, locations]);
  return asked === now || act(asked) === act(now);
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
