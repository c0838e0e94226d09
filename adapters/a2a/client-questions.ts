/**
 * What a peer asks, put to our own people under our own policy, and their answer as the peer's next message. A question
 * with our data in it is asked as what it is; one in words only is asked for a value. Credentials are never asked for nor
 * passed on: where a peer wants some, a person says that it has been seen to elsewhere, or that it will not be.
 */
import type { Part } from '@a2a-js/sdk';
import { type Answer, EFFECTS, type Json, type JsonObject, type Question, type Sink } from '../../src/index.ts';
import { type Standing, wordsOf } from './client-reading.ts';
import { dataPart, textPart } from './translate.ts';

/** What to do next. `reply`: say this to the peer. `wait`: it goes on by itself. `stop`: it may not go on. */
export type Next =
  | { readonly do: 'reply'; readonly parts: Part[] }
  | { readonly do: 'wait' }
  | { readonly do: 'stop'; readonly reason: string };

interface Asked {
  readonly askId: string;
  readonly kind: string;
  readonly question?: string;
  readonly action?: JsonObject;
  readonly schema?: JsonObject;
}

export async function settle(standing: Standing, peer: string, sink: Pick<Sink, 'ask'>): Promise<Next> {
  const asked = structured(standing);
  if (asked?.kind === 'approval') {
    const answer = await sink.ask(approval(asked, standing, peer));
    return { do: 'reply', parts: [dataPart(toReply(asked.askId, answer))] };
  }
  const words = wordsOf(standing.message);
  if (standing.state === 'AUTH_REQUIRED' && !asked) {
    const answer = await sink.ask(clearance(standing, peer, words));
    return answer.kind === 'approved'
      ? { do: 'wait' }
      : { do: 'stop', reason: 'reason' in answer ? (answer.reason ?? 'not cleared') : 'not cleared' };
  }
  const question: Question = {
    kind: 'input',
    key: keyOf(standing),
    question: asked?.question ?? words ?? `${peer} waits for an input.`,
    ...(asked?.schema && { schema: asked.schema }),
    ext: { a2a: { peer, task_id: standing.taskId } },
  };
  const answer = await sink.ask(question);
  if (answer.kind !== 'value') {
    const why = `no answer: ${'reason' in answer ? (answer.reason ?? answer.kind) : answer.kind}`;
    return {
      do: 'reply',
      parts: [asked ? dataPart({ askId: asked.askId, approved: false, reason: why }) : textPart(why)],
    };
  }
  const value = answer.value as Json;
  if (asked) return { do: 'reply', parts: [dataPart({ askId: asked.askId, value })] };
  return { do: 'reply', parts: [typeof value === 'string' ? textPart(value) : dataPart(value)] };
}

function keyOf({ taskId, mark }: Standing): string {
  return `${taskId}:${mark}`;
}

/** A gateway like ours says what it asks as data. */
function structured({ message }: Standing): Asked | undefined {
  for (const { content } of message?.parts ?? []) {
    if (content?.$case !== 'data') continue;
    const value = content.value as Partial<Asked> | null;
    if (typeof value?.askId === 'string' && (value.kind === 'approval' || value.kind === 'input'))
      return value as Asked;
  }
  return undefined;
}

function approval({ askId, action = {}, question }: Asked, standing: Standing, peer: string): Question {
  const { tool, target, effect, arguments: args } = action;
  return {
    kind: 'approval',
    action: {
      kind: 'tool',
      tool_call_id: `${standing.taskId}.${askId}`,
      tool: typeof tool === 'string' && tool ? tool : 'unknown',
      server: peer,
      ...(typeof target === 'string' && target && { target }),
      arguments: (typeof args === 'object' && args !== null && !Array.isArray(args) ? args : {}) as JsonObject,
      effect: EFFECTS.find((word) => word === effect) ?? 'unknown',
      evidence: 'asked',
    },
    ...(question && { question }),
    ext: { a2a: { peer, task_id: standing.taskId, ask_id: askId } },
  };
}

function clearance(standing: Standing, peer: string, words: string | undefined): Question {
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
