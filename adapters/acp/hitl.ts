/** Questions of Harn agents, as questions of ours, and the answers in the profile's words. Pure. */
import { raised } from '../../mappings/acp-acts.ts';
import { HITL_KINDS } from '../../mappings/acp-harn.ts';
import { type Answer, asText, EFFECTS, type Fact, type Json, type JsonObject } from '../../src/index.ts';
import { compact, lookup, objectOf, textOf } from './shapes.ts';
import { shownEffect } from './shown-act.ts';
import type { AskingAgent } from './translate.ts';

export const hitlKey = (requestId: string): string => `hitl-${requestId}`;

/** A question of the first revision, in the words of the update that later ones send. */
export function olderHitl({ request_id, kind, payload }: JsonObject): JsonObject {
  return compact({ requestId: request_id, kind, payload });
}

/** A value, or a yes or no about an act. */
export function toHitlAsk(reported: JsonObject, { agent, cwd }: AskingAgent, withdrawn: AbortSignal) {
  const key = hitlKey(asText(reported.requestId));
  const payload = objectOf(reported.payload) ?? {};
  const question =
    textOf(payload.question) ?? textOf(payload.prompt) ?? textOf(payload.message) ?? textOf(payload.action);
  const ext = { acp: { hitl: reported } };
  if ((lookup(HITL_KINDS, reported.kind) ?? 'approval') === 'input')
    return { kind: 'input', key, question: question ?? 'The agent asks for a value.', ext, withdrawn } as const;
  const request = objectOf(payload.approvalRequest ?? payload.approval_request) ?? payload;
  const args = objectOf(request.args ?? request.detail) ?? {};
  const claimed = EFFECTS.find((word) => word === request.effect) ?? 'unknown';
  return {
    kind: 'approval',
    action: {
      kind: 'tool',
      tool_call_id: key,
      tool: textOf(request.action) ?? asText(reported.kind),
      arguments: args,
      effect: raised(claimed, shownEffect({ rawInput: args })),
      evidence: 'asked',
      claims: { agent, ...(question && { title: question }) },
      cwd,
    },
    ...(question && { question }),
    ext,
    withdrawn,
  } as const;
}

/** The parameters of the call that answers it. */
export function toHitlResponse(reported: JsonObject, answer: Answer): JsonObject {
  const yes = answer.kind === 'approved';
  const verdict =
    lookup(HITL_KINDS, reported.kind) === 'input'
      ? { answer: answer.kind === 'value' ? (answer.value as Json) : null }
      : reported.kind === 'escalation'
        ? { accepted: yes }
        : { approved: yes };
  return {
    request_id: asText(reported.requestId),
    ...verdict,
    ...('by' in answer && { reviewer: answer.by }),
    ...('reason' in answer && answer.reason && { reason: answer.reason }),
  };
}

/** The body of an answer, from the call of a client. */
export function toCoreAnswer(params: JsonObject) {
  const yes = params.approved ?? params.accepted;
  const reason = textOf(params.reason);
  return {
    ...(typeof yes === 'boolean' && { approved: yes }),
    ...(params.answer !== undefined && { value: params.answer }),
    ...(reason && { reason }),
  };
}

/** The agent was told the yes it asked for, and reports no end of its own for it. */
export function hitlEnded(reported: JsonObject, ask: ReturnType<typeof toHitlAsk>, answer: Answer): Fact[] {
  if (ask.kind !== 'approval' || answer.kind !== 'approved') return [];
  const { tool_call_id, tool: name } = ask.action;
  const output = { request_id: asText(reported.requestId), approved: true };
  return [{ event: 'tool.completed', payload: { tool_call_id, name, status: 'ok', output } }];
}
