/**
 * A peer's questions, put to our own approvers under our own policy; the answer is the peer's next message. A question that
 * carries our data format keeps its kind; one that is only text asks for a value. Credentials are never requested or passed on:
 * where a peer needs some, a person confirms that this was done elsewhere, or declines.
 */
import type { Part } from '@a2a-js/sdk';
import {
  type Answer,
  beginning,
  EFFECTS,
  isObject,
  type Json,
  type JsonObject,
  type Question,
  type Sink,
} from '../../../../src/index.ts';
import { dataPart, textPart } from '../../translate.ts';
import { type Standing, wordsOf } from '../read-updates.ts';
import { confirmedCall, functionCallIn, responsePart } from './function-calls.ts';

/** The next step. `reply`: send this to the peer. `wait`: the peer continues by itself. `stop`: the peer must not continue. */
export type Next =
  | { readonly do: 'reply'; readonly parts: Part[]; readonly askId?: string; readonly approved?: ApprovedCall }
  /** `say`: what to tell a peer that has not moved by itself. */
  | { readonly do: 'wait'; readonly say?: string; readonly approved?: ApprovedCall }
  | { readonly do: 'stop'; readonly reason: string };

/** A call that was approved here and runs there. */
export interface ApprovedCall {
  readonly id: string;
  readonly name: string;
}

interface Asked {
  readonly askId: string;
  readonly toolCallId?: string;
  readonly kind: string;
  readonly question?: string;
  readonly action?: JsonObject;
  readonly schema?: JsonObject;
  /** The peer takes no answer from us: it is given on its own side. */
  readonly answerable?: boolean;
}

export interface Settling {
  readonly peer: string;
  readonly sink: Pick<Sink, 'ask'>;
  /** Fires when the peer was answered on its own side: our question is withdrawn. */
  readonly withdrawn: AbortSignal;
  /** Called with the call that is about to be asked about. */
  askedAbout(callId: string): void;
}

export async function settle(standing: Standing, { peer, sink, withdrawn, askedAbout }: Settling): Promise<Next> {
  const asked = structured(standing);
  if (asked?.answerable === false) return { do: 'wait' };
  if (asked?.kind === 'approval') {
    const question = approval(asked, standing, peer);
    askedAbout(question.action.tool_call_id ?? '');
    const answer = await sink.ask({ ...question, withdrawn });
    const parts = [dataPart(toReply(asked.askId, answer))];
    return { do: 'reply', parts, askId: asked.askId, ...approvedIn(question, answer) };
  }
  const words = wordsOf(standing.message);
  const call = functionCallIn(standing.message);
  const confirmed = call && confirmedCall(call);
  if (call && confirmed) {
    const { id, name: tool, args, hint } = confirmed;
    const shown = { askId: call.id, toolCallId: id, kind: 'approval', action: { tool, arguments: args } };
    const question = approval(
      { ...shown, ...((hint ?? words) && { question: hint ?? words }) } as Asked,
      standing,
      peer,
    );
    const answer = await sink.ask({ ...question, withdrawn });
    const parts = [responsePart(call, { confirmed: answer.kind === 'approved' })];
    return { do: 'reply', parts, ...approvedIn(question, answer) };
  }
  if (standing.state === 'AUTH_REQUIRED' && !asked) {
    const question = clearance(standing, peer, words);
    const answer = await sink.ask({ ...question, withdrawn });
    return answer.kind === 'approved'
      ? {
          do: 'wait',
          say: 'The authorization you asked for was given. Please continue.',
          ...approvedIn(question, answer),
        }
      : { do: 'stop', reason: 'reason' in answer ? (answer.reason ?? 'not cleared') : 'not cleared' };
  }
  const question: Question = {
    kind: 'input',
    key: keyOf(standing),
    question: asked?.question ?? withData(words ?? `${peer} waits for an input.`, standing),
    ...(asked?.schema && { schema: asked.schema }),
    ext: { a2a: { peer, task_id: standing.taskId } },
  };
  const answer = await sink.ask({ ...question, withdrawn });
  if (answer.kind !== 'value') {
    const why = `no answer: ${'reason' in answer ? (answer.reason ?? answer.kind) : answer.kind}`;
    return {
      do: 'reply',
      parts: [asked ? dataPart({ askId: asked.askId, approved: false, reason: why }) : textPart(why)],
    };
  }
  const value = answer.value as Json;
  if (call) return { do: 'reply', parts: [responsePart(call, isObject(value) ? value : { result: value })] };
  if (asked) return { do: 'reply', parts: [dataPart({ askId: asked.askId, value })] };
  return { do: 'reply', parts: [typeof value === 'string' ? textPart(value) : dataPart(value)] };
}

function approvedIn({ action }: ApprovalQuestion, { kind }: Answer): { approved?: ApprovedCall } {
  const { tool_call_id: id, tool: name } = action;
  return kind === 'approved' && id && name ? { approved: { id, name } } : {};
}

const LONGEST_DATA = 4_000;

/** The peer's words, and below them the data it sent with them, without which they may ask about nothing. */
function withData(words: string, { message }: Standing): string {
  const data = message?.parts.flatMap(({ content }) =>
    content?.$case === 'data' ? [JSON.stringify(content.value)] : [],
  );
  return data?.length ? `${words}\n${beginning(data.join('\n'), LONGEST_DATA)}` : words;
}

function keyOf({ taskId, mark }: Standing): string {
  return `${taskId}:${mark}`;
}

/** Another Tollbridge gateway sends its question as data. */
function structured({ message }: Standing): Asked | undefined {
  for (const { content } of message?.parts ?? []) {
    if (content?.$case !== 'data') continue;
    const value = content.value as Partial<Asked> | null;
    if (typeof value?.askId === 'string' && (value.kind === 'approval' || value.kind === 'input'))
      return value as Asked;
  }
  return undefined;
}

type ApprovalQuestion = Extract<Question, { kind: 'approval' }>;

function approval(
  { askId, toolCallId, action = {}, question }: Asked,
  standing: Standing,
  peer: string,
): ApprovalQuestion {
  const { tool, target, effect, arguments: args } = action;
  return {
    kind: 'approval',
    action: {
      kind: 'tool',
      tool_call_id: typeof toolCallId === 'string' && toolCallId ? toolCallId : `${standing.taskId}.${askId}`,
      tool: typeof tool === 'string' && tool ? tool : 'unknown',
      server: peer,
      ...(typeof target === 'string' && target && { target }),
      arguments: (isObject(args) ? args : {}) as JsonObject,
      effect: EFFECTS.find((word) => word === effect) ?? 'unknown',
      evidence: 'asked',
    },
    ...(question && { question }),
    ext: { a2a: { peer, task_id: standing.taskId, ask_id: askId } },
  };
}

function clearance(standing: Standing, peer: string, words: string | undefined): ApprovalQuestion {
  return {
    kind: 'approval',
    action: {
      kind: 'handoff',
      tool_call_id: keyOf(standing),
      tool: peer,
      target: peer,
      effect: 'unknown',
      evidence: 'asked',
    },
    question: `${peer} needs to be authorised: ${words ?? 'it does not say for what'}. Has that been seen to?`,
    ext: { a2a: { peer, task_id: standing.taskId } },
  };
}

function toReply(askId: string, answer: Answer): JsonObject {
  const reason = 'reason' in answer && answer.reason ? { reason: answer.reason } : {};
  return { askId, approved: answer.kind === 'approved', ...reason };
}
