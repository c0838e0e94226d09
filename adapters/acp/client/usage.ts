/** The usage of a turn, from the three places in which agents report it. Recorded as claimed; absent means not reported, never zero. */
import type { Json, JsonObject } from '../../../src/index.ts';
import { listOf, numberOf, objectOf, textOf, within } from '../shapes.ts';

/** The cost an agent reports for its session so far. It is cumulative, so a task's share is a difference. */
export interface Spent {
  readonly amount: number;
  readonly currency: string;
}
export const NOTHING_SPENT: Spent = { amount: 0, currency: 'USD' };

export interface Meter {
  update(update: JsonObject): void;
  chunk(update: JsonObject): void;
  total(result: Json): JsonObject | undefined;
  readonly spent: Spent;
}

export function createMeter(before: Spent): Meter {
  let spent = before;
  let reported = false;
  let chunks: { input: number; output: number } | undefined;

  return {
    get spent() {
      return spent;
    },
    update({ cost }) {
      const amount = numberOf(within(cost, 'amount'));
      if (amount === undefined || amount < 0) return;
      spent = { amount, currency: textOf(within(cost, 'currency')) ?? 'USD' };
      reported = true;
    },
    /** Some agents report usage on a chunk without text. */
    chunk(update) {
      const usage = objectOf(within(update, '_meta', 'usage')) ?? objectOf(within(update, 'content', '_meta', 'usage'));
      if (!usage) return;
      chunks = {
        input: (chunks?.input ?? 0) + (numberOf(usage.inputTokens) ?? 0),
        output: (chunks?.output ?? 0) + (numberOf(usage.outputTokens) ?? 0),
      };
    },
    total(result) {
      const said = objectOf(within(result, 'usage'));
      const quota = objectOf(within(result, '_meta', 'quota', 'token_count'));
      const model = textOf(within(listOf(within(result, '_meta', 'quota', 'model_usage'))[0], 'model'));
      const input = numberOf(said?.inputTokens) ?? numberOf(quota?.input_tokens) ?? chunks?.input;
      const output = numberOf(said?.outputTokens) ?? numberOf(quota?.output_tokens) ?? chunks?.output;
      const share = spent.currency === before.currency ? spent.amount - before.amount : 0;
      const dollars = reported && spent.currency === 'USD' && share >= 0 ? Math.round(share * 1_000_000) : undefined;
      if (input === undefined && output === undefined && dollars === undefined) return undefined;
      return {
        provider: 'acp',
        ...(model && { model }),
        ...(input !== undefined && { input_tokens: Math.round(input) }),
        ...(output !== undefined && { output_tokens: Math.round(output) }),
        ...(dollars !== undefined && { usd_micros: dollars }),
      };
    },
  };
}
