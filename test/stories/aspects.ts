/** What a gateway's account of a story says, aspect by aspect, so that two accounts can be laid side by side. Pure. */
import type { CoreEvent } from '../../src/model/events.ts';
import type { Receipt } from '../../src/model/receipt.ts';

export const ASPECTS = [
  'state',
  'failure',
  'said',
  'calls',
  'arguments',
  'results',
  'decisions',
  'approvals',
  'inputs',
  'files',
  'effects',
  'usage',
] as const;
export type Aspect = (typeof ASPECTS)[number];

type Call = Receipt['side_effects']['tool_calls'][number];
interface Details {
  readonly requested_input_hash?: string;
  readonly denied?: boolean;
  readonly rule_id?: string;
  readonly code?: string;
  readonly remote?: { readonly rule_id?: string };
}

/** `handoffs`: what stands in the receipt for giving the work away is not part of the story. */
export function aspectsOf(receipt: Receipt, log: readonly CoreEvent[]): Record<Aspect, unknown> {
  const { lifecycle, side_effects, approvals = [], metadata = {}, final_artifacts, cost } = receipt;
  const calls = side_effects.tool_calls;
  return {
    state: lifecycle.final_state,
    failure: (lifecycle.failure as { code?: string } | null)?.code ?? null,
    said: saidIn(log),
    calls: calls.map(({ tool, status }) => `${tool} ${status}`),
    arguments: calls.map((call) => [call.input_hash ?? null, detailsOf(call).requested_input_hash ?? null]),
    results: calls.map(({ output_hash }) => output_hash ?? null),
    decisions: calls.map((call) => {
      const { denied = false, rule_id, remote } = detailsOf(call);
      return [denied, remote?.rule_id ?? rule_id ?? null];
    }),
    approvals: approvals.map(({ action, decision }) => `${action} ${decision}`),
    inputs: metadata.inputs ?? {},
    files: final_artifacts.map(({ sha256 }) => sha256 ?? null).sort(),
    effects: side_effects.network_egress.flatMap(({ purpose }) => (/ to far$/.test(purpose) ? [] : [purpose])),
    usage: cost.provider_breakdown.map(({ provider, input_tokens, output_tokens }) => [
      provider,
      input_tokens,
      output_tokens,
    ]),
  };
}

/** The aspects in which two accounts differ. */
export function differences(a: Record<Aspect, unknown>, b: Record<Aspect, unknown>): Aspect[] {
  return ASPECTS.filter((aspect) => JSON.stringify(a[aspect]) !== JSON.stringify(b[aspect]));
}

function detailsOf({ metadata }: Call): Details {
  return (metadata ?? {}) as Details;
}

function saidIn(log: readonly CoreEvent[]): string[] {
  return log.flatMap(({ event, payload }) => {
    if (event !== 'agent.message') return [];
    const { parts } = payload.message as unknown as { parts: { text?: string }[] };
    return [parts.map(({ text = '' }) => text).join('')];
  });
}
