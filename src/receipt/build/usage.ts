/** Money, tokens and models as a receipt states them. Absent means not reported; zero is written only when zero was reported. */
import type { Receipt } from '../../model/receipt.ts';
import { listed } from './append-list.ts';
import type { TaskEvidence, UsageSum } from './evidence.ts';
import { sum } from './read-members.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Budget = Receipt['autonomy_budget']['consumed'];
type ModelRef = Receipt['model_route']['chosen_model'];
type ProviderCost = Receipt['cost']['provider_breakdown'][number];

export interface Totals {
  readonly usd_micros: number | undefined;
  readonly input_tokens: number | undefined;
  readonly output_tokens: number | undefined;
}

export function totals(usage: ReadonlyMap<string, UsageSum>): Totals {
  let [usd_micros, input_tokens, output_tokens]: (number | undefined)[] = [];
  for (const each of usage.values()) {
    usd_micros = sum(usd_micros, each.usd_micros);
    input_tokens = sum(input_tokens, each.input_tokens);
    output_tokens = sum(output_tokens, each.output_tokens);
  }
  return { usd_micros, input_tokens, output_tokens };
}

export function consumed(total: Totals, tool_calls: number, wall_time_ms: number): Budget {
  const reported: Writable<Budget> = {};
  if (total.input_tokens !== undefined) reported.input_tokens = total.input_tokens;
  if (total.output_tokens !== undefined) reported.output_tokens = total.output_tokens;
  reported.tool_calls = tool_calls;
  if (total.usd_micros !== undefined) reported.usd = dollars(total.usd_micros);
  reported.wall_time_ms = wall_time_ms;
  return reported;
}

export function cost(usage: ReadonlyMap<string, UsageSum>, total: Totals): Receipt['cost'] {
  const provider_breakdown: ProviderCost[] = [];
  for (const each of usage.values()) provider_breakdown.push(providerCost(each));
  return { currency: 'USD', provider_breakdown, total: dollars(total.usd_micros ?? 0) };
}

function providerCost(usage: UsageSum): ProviderCost {
  const reported: Writable<Partial<ProviderCost>> = { amount: dollars(usage.usd_micros ?? 0) };
  if (usage.input_tokens !== undefined) reported.input_tokens = usage.input_tokens;
  if (usage.usd_micros === undefined) reported.metadata = { amount_not_reported: true };
  if (usage.model) reported.model = usage.model;
  if (usage.output_tokens !== undefined) reported.output_tokens = usage.output_tokens;
  reported.provider = usage.provider;
  return reported as ProviderCost;
}

/** One division of an integer: every implementation gets the same double. */
function dollars(micros: number): number {
  return micros / 1_000_000;
}

/** The model the work used first, and the others it used. The gateway does not route models; it repeats reports. */
export function modelRoute(evidence: TaskEvidence, replayed = false): Receipt['model_route'] {
  const seen = new Map<string, ModelRef>();
  for (const call of listed(evidence.models)) note(seen, call);
  // Usage without a model name identifies no model.
  for (const each of evidence.usage.values()) if (each.model) note(seen, each);
  const [chosen, ...others] = seen.values();
  if (!chosen) {
    return {
      alternatives_considered: [],
      chosen_model: { model: 'none', provider: 'none' },
      route_policy_reason: replayed ? 'no model call was recorded' : 'no model call was reported',
    };
  }
  return {
    alternatives_considered: others.map((each) => ({
      model: each.model,
      provider: each.provider,
      reason: 'also used',
      ...(each.version && { version: each.version }),
    })),
    chosen_model: chosen,
    route_policy_reason: replayed
      ? 'replayed from recorded provider response'
      : 'chosen by the agent and reported by it',
  };
}

function note(
  seen: Map<string, ModelRef>,
  { provider, model, version }: { readonly provider?: string; readonly model?: string; readonly version?: string },
): void {
  if (!provider && !model) return;
  const key = `${provider}\n${model}`;
  if (seen.has(key)) return;
  const ref: ModelRef = { model: model ?? 'unknown', provider: provider ?? 'unknown' };
  if (version) ref.version = version;
  seen.set(key, ref);
}

/** Amounts that a reader might take for zero but that were never reported. */
export function usageGaps(evidence: TaskEvidence, total: Totals, route: Receipt['model_route']): readonly string[] {
  const gaps: string[] = [];
  if (evidence.usage.size === 0) gaps.push('usage');
  else {
    if (total.usd_micros === undefined) gaps.push('cost');
    if (total.input_tokens === undefined && total.output_tokens === undefined) gaps.push('tokens');
  }
  if (route.chosen_model.provider === 'none') gaps.push('model');
  return gaps;
}
