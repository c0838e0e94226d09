/**
 * What an agent thinks aloud. Whoever watches over this protocol is shown it as it came; to everyone else it is only said
 * that there was a thought, because reasoning is no part of what an agent has done. The words ride along and are read nowhere else.
 */

import type { CoreEvent, Fact, JsonObject } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { compact, objectOf, textOf, within } from './shapes.ts';
import { cameAs } from './step.ts';

/** `show`: to editors that watch. `summary`: besides, published as a summary of the reasoning. `drop`: not kept. */
export const THOUGHTS = ['show', 'summary', 'drop'] as const;
export type Thoughts = (typeof THOUGHTS)[number];

export const THOUGHT = 'vendor.acp.thought';

export function thoughtFact(messageId: string, update: JsonObject): Fact {
  const text = wordsOf(update);
  return { event: THOUGHT, payload: { message_id: messageId, characters: text.length }, ext: { acp: { update } } };
}

export function wordsOf(update: JsonObject): string {
  return textOf(within(update.content, 'text')) ?? '';
}

export function plainThought(text: string, messageId?: string): JsonObject {
  return compact({ sessionUpdate: 'agent_thought_chunk', messageId, content: { type: 'text', text } });
}

export interface ThoughtTelling {
  /** A thought as it came; when it is told again, once it is whole. */
  thought(event: CoreEvent, replay: boolean): JsonObject[];
  /** A summary of what may have been shown already. */
  summary(event: CoreEvent): JsonObject[];
  /** What was gathered and not told, now that something else comes. */
  gathered(): JsonObject[];
}

export function createThoughtTelling(): ThoughtTelling {
  const shown = new Set<string>();
  let whole: { readonly id: string; readonly wire: string | undefined; text: string } | undefined;

  function gathered(): JsonObject[] {
    const told = whole ? [plainThought(whole.text, whole.wire)] : [];
    whole = undefined;
    return told;
  }

  return {
    gathered,
    thought(event, replay) {
      const update = cameAs(event);
      const id = asText(event.payload.message_id);
      if (!update) return [];
      shown.add(id);
      if (!replay || objectOf(update.content)?.type !== 'text') return [...gathered(), update];
      const before = whole?.id === id ? [] : gathered();
      whole ??= { id, wire: textOf(update.messageId), text: '' };
      whole.text += wordsOf(update);
      return before;
    },
    summary({ payload }) {
      const text = textOf(payload.text) ?? textOf(payload.summary);
      return text && !shown.delete(asText(payload.message_id)) ? [plainThought(text)] : [];
    },
  };
}
