/** Renders the questions of a run and their answers. Pure. */
import { type InputKind, inputKind, signalOf } from '../../../../mappings/runs.ts';
import { type AskRecord, asText, dialogText, type JsonObject, visibleText } from '../../../../src/index.ts';
import type { Rendered } from '../frames.ts';
import { toDecision } from './calls.ts';
import { summarize } from './summary.ts';

export interface RunQuestion {
  readonly ask_id: string;
  readonly kind: 'approval' | 'input';
  readonly input_kind: InputKind;
  readonly reason_code: string;
  /** The whole act was shown, so that it can be approved here. */
  readonly whole: boolean;
}

export function toQuestion(ask: AskRecord): RunQuestion {
  return {
    whole: dialogText(ask).whole,
    ask_id: ask.id,
    kind: ask.kind,
    input_kind: inputKind.toWire(ask.kind),
    reason_code: reasonOf(ask),
  };
}

function reasonOf({ rule_id, kind }: AskRecord): string {
  return rule_id ?? `${kind}_required`;
}

export function toAsked(ask: AskRecord, requestId: string): readonly Rendered[] {
  const { tool, arguments: args } = ask.action;
  const value = {
    request_id: requestId,
    reason_code: reasonOf(ask),
    input_kind: inputKind.toWire(ask.kind),
    question: ask.kind === 'approval' ? dialogText(ask).text : visibleText(ask.question),
    ...(ask.tool_call_id && { tool_call_id: ask.tool_call_id }),
    ...(typeof tool === 'string' && { tool_name: tool }),
    tollbridge: { ask_id: ask.id },
    ...(ask.kind === 'approval' && { tool_input_summary: summarize(args) }),
  };
  return [['run.awaiting_input', value]];
}

/** Why a question was closed, where its own event does not say it. */
export interface Closing {
  readonly requestId: string;
  /** A signal has rejected the run: the no that follows is that signal's. */
  readonly rejecting: boolean;
  /** A question that was not answered in time fails the run. */
  readonly failing: boolean;
}

export function toAnswered(
  { id, kind }: AskRecord,
  { state, reason }: JsonObject,
  { requestId, rejecting, failing }: Closing,
): readonly Rendered[] {
  if (state === 'canceled') return [];
  const action = Object.hasOwn(signalOf, asText(state)) ? signalOf[asText(state)] : undefined;
  const tollbridge = { ask_id: id };
  if (action === 'submit_input') return [['run.input_received', { request_id: requestId, action, tollbridge }]];
  if (action === 'approve' || (action === 'reject' && rejecting)) {
    return [['run.signal_applied', { request_id: requestId, action, tollbridge }]];
  }
  // Not answered in time: where that fails the run, its end says so; otherwise the agent has to replan without the act.
  if (state === 'expired') return failing ? [] : [toDecision(requestId, 'replan', `${kind}_timed_out`, 'planner')];
  // Denied at another door: only the act is denied, and the run continues.
  const judge_decision = { decision: asText(state), reason: typeof reason === 'string' ? reason : '' };
  return [toDecision(requestId, 'continue', `${kind}_denied`, 'judge', { judge_decision, tollbridge })];
}
