/**
 * What a person typed for an agent, as it was typed. The log holds it without what looks like a secret, and the agent that
 * asked for it wants the thing itself. Kept in memory until it is handed over, and only where giving it and taking it
 * happen in one process; elsewhere the agent gets what the log has.
 */
import type { Json } from '../model/schema.ts';

export interface TypedAnswers {
  /** Before it is written down: whoever waits may hear of it at once. */
  keep(askId: string, value: Json): void;
  /** The value the log has this for, once; or what the log has. */
  handOver(askId: string, logged: unknown): unknown;
}

/** Answers nobody came for; a person types few of them. */
const MOST_KEPT = 64;

export function createTypedAnswers(clean: (value: Json) => Json): TypedAnswers {
  /** By question: of several who answer at once one is heard, and the log says which. */
  const kept = new Map<string, { readonly value: Json; readonly shown: string }[]>();
  return {
    keep(askId, value) {
      const shown = JSON.stringify(clean(value));
      if (shown === JSON.stringify(value)) return;
      kept.set(askId, [...(kept.get(askId) ?? []), { value, shown }]);
      const [oldest] = kept.keys();
      if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
    },
    handOver(askId, logged) {
      const given = kept.get(askId);
      if (!given) return logged;
      kept.delete(askId);
      const shown = JSON.stringify(logged);
      const mine = given.find((each) => each.shown === shown);
      return mine ? mine.value : logged;
    },
  };
}
