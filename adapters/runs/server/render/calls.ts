/** Renders the calls of a run and the decisions on them, from the view of its task. Pure. */

import type { DECISION_TYPES } from '../../../../mappings/runs.ts';
import { asText, type CallView, type CoreEvent, isObject, type JsonObject } from '../../../../src/index.ts';
import { ownWord } from '../../gateway-extension.ts';
import type { Rendered } from '../frames.ts';
import { summarize } from './summary.ts';

const TIMEOUT = /time_?out|timed_out|deadline/;

export function toProgress(kind: string, step: string, more: JsonObject, requestId: string): Rendered {
  return ['step.progress', { task_id: step, kind, ...more, request_id: requestId }];
}

export function toDecision(
  requestId: string,
  decision_type: (typeof DECISION_TYPES)[number],
  reason_code: string,
  role: 'planner' | 'worker' | 'judge',
  more: JsonObject = {},
): Rendered {
  return ['run.coordination.decision', { request_id: requestId, decision_type, reason_code, role, ...more }];
}

export function toRequested({ payload }: CoreEvent, requestId: string): readonly Rendered[] {
  const id = asText(payload.tool_call_id);
  const about = { tool_call_id: id, tool_name: asText(payload.name ?? 'unknown') };
  return [toProgress('tool_call_start', id, about, requestId)];
}

/** A call ends once on this wire, and only if it began there. */
export function toEnded(event: CoreEvent, call: CallView | undefined, requestId: string): readonly Rendered[] {
  if (!call || call.endedBy !== event.id || call.openedBy === event.id) return [];
  const { id, output, error, code, since } = call;
  const denied = event.event === 'tool.denied';
  const failed = TIMEOUT.test(code ?? '') ? 'timeout' : 'failed';
  const outcome = denied ? 'policy_denied' : event.event === 'tool.completed' ? 'succeeded' : failed;
  const about = { tool_call_id: id, tool_name: call.name || 'unknown' };
  const value = {
    ...about,
    tool_outcome: outcome,
    tool_input_summary: summarize(call.arguments),
    tool_output_summary: summarize(denied ? undefined : (output ?? error)),
    policy_reason_code: denied ? asText(code ?? event.payload.rule_id ?? 'policy_denied') : null,
    ...ownWord(call, {
      ended: outcome === 'failed' ? code : undefined,
      output: denied ? undefined : output,
    }),
    duration_ms: denied ? 0 : Math.max(0, Date.parse(event.created_at) - Date.parse(since)),
  };
  return [toProgress('tool_call_done', id, about, requestId), ['run.tool.invoked', value]];
}

export function toDecided({ action, decision }: JsonObject, requestId: string): readonly Rendered[] {
  if (!isObject(action) || !action.tool_call_id || !isObject(decision)) return [];
  const { verdict, code, rule_id, reason } = decision;
  if (verdict !== 'escalate' && verdict !== 'block') return [];
  const type = verdict === 'escalate' ? 'await_input' : 'continue';
  const judge_decision = { decision: verdict, reason };
  return [toDecision(requestId, type, asText(code ?? rule_id ?? verdict), 'judge', { judge_decision })];
}
