/**
 * The reasoning of an agent. Watchers over this protocol receive it as it arrived; other doors learn only that there was a
 * thought, because reasoning is no part of what an agent has done. The text is stored in the event's extension and read nowhere
 * else.
 */

import type { CoreEvent, Fact, JsonObject } from '../../../src/index.ts';
import { asText, vendorEvent } from '../../../src/index.ts';
import { cameAs } from '../client/facts.ts';
import { compact, objectOf, textOf, within } from '../shapes.ts';

/** `show`: to editors that watch. `summary`: also published as a summary of the reasoning. `drop`: not stored. */
export const THOUGHTS = ['show', 'summary', 'drop'] as const;
export type Thoughts = (typeof THOUGHTS)[number];

export const THOUGHT = vendorEvent('vendor.acp.thought');

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

export interface ThoughtRenderer {
  /** A thought as received; in a replay, once it is whole. */
  thought(event: CoreEvent, replay: boolean): JsonObject[];
  /** A summary of reasoning that may have been shown already. */
  summary(event: CoreEvent): JsonObject[];
  /** The buffered text that was not rendered, now that another event follows. */
  gathered(): JsonObject[];
}

export function createThoughtRenderer(): ThoughtRenderer {
  const shown = new Set<string>();
  let whole: { readonly id: string; readonly wire: string | undefined; text: string } | undefined;

  function gathered(): JsonObject[] {
    const rendered = whole ? [plainThought(whole.text, whole.wire)] : [];
    whole = undefined;
    return rendered;
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
