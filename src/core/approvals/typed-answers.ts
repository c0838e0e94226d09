/**
 * Values that people typed for an agent, unredacted. The log holds them without anything that looks like a secret, and the agent
 * that asked needs the exact value. Kept in memory until delivered, and only where one process takes the answer and runs the task;
 * elsewhere the agent gets the redacted value.
 */

import type { Json } from '../../model/schema.ts';
import { LruMap } from '../../model/values/lru-map.ts';

export interface TypedAnswers {
  /** Called before the answer is written, because the waiting asker may be notified at once. */
  keep(askId: string, value: Json): void;
  /** The unredacted value of this logged answer, once; or the logged value. */
  handOver(askId: string, logged: unknown): unknown;
}

/** Answers that were never collected; a person types few of them. */
const MOST_KEPT = 64;

export function createTypedAnswers(clean: (value: Json) => Json): TypedAnswers {
  /** By question: of several concurrent answers the commit accepts one, and the log says which. */
  const kept = new LruMap<string, { readonly value: Json; readonly shown: string }[]>(MOST_KEPT);
  return {
    keep(askId, value) {
      const shown = JSON.stringify(clean(value));
      if (shown === JSON.stringify(value)) return;
      kept.set(askId, [...(kept.get(askId) ?? []), { value, shown }]);
    },
    handOver(askId, logged) {
      const match = kept.get(askId);
      if (!match) return logged;
      kept.delete(askId);
      const shown = JSON.stringify(logged);
      const mine = match.find((each) => each.shown === shown);
      return mine ? mine.value : logged;
    },
  };
}
