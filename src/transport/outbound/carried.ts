/**
 * What was carried of a remote's work, beside what its receipt holds: the difference is lost on the way, whichever protocol lies
 * between. Both sides are counted. A remote that says nothing of its receipt's content is not judged.
 */

import type { Receipt } from '../../model/receipt.ts';
import type { Loss, LossAspect } from '../../model/values/loss.ts';
import type { Sink } from '../../ports/index.ts';

const COUNTED = ['usage', 'effects', 'files', 'decisions'] as const satisfies readonly LossAspect[];
/** By aspect: how many of its records a receipt has. */
export type Contents = Readonly<Partial<Record<(typeof COUNTED)[number], number>>>;

const NAMES: Readonly<Record<(typeof COUNTED)[number], string>> = {
  usage: 'records of tokens and money',
  effects: 'effects on files and hosts',
  files: 'files',
  decisions: 'decisions on calls',
};

export function contentsOf({ cost, side_effects, final_artifacts }: Receipt): Contents {
  const { network_egress, fs_writes, tool_calls } = side_effects;
  return {
    usage: cost.provider_breakdown.length,
    effects: network_egress.length + fs_writes.length,
    files: final_artifacts.length,
    decisions: tool_calls.filter(({ metadata }) => typeof metadata?.rule_id === 'string').length,
  };
}

/** Contents as a remote states them: what is not a count is not there. */
export function statedContents(said: unknown): Contents | undefined {
  if (typeof said !== 'object' || said === null) return undefined;
  const counts = COUNTED.map((aspect) => [aspect, (said as Readonly<Record<string, unknown>>)[aspect]] as const);
  return Object.fromEntries(counts.filter(([, count]) => Number.isSafeInteger(count) && (count as number) >= 0));
}

export interface Carried {
  /** Counts what passes; otherwise the sink that was given. */
  readonly sink: Sink;
  /** What the remote's receipt holds more of than was carried. */
  loss(holds: Contents | undefined): readonly Loss[];
}

export function createCarried(sink: Sink): Carried {
  const counts = { usage: 0, effects: 0, files: 0 };
  const decided = new Set<unknown>();
  return {
    sink: {
      ask: (question) => sink.ask(question),
      act: (action, effect, withdrawn) => sink.act(action, effect, withdrawn),
      async emit(fact) {
        const { event, payload } = fact;
        if (event === 'vendor.tollbridge.usage') counts.usage += 1;
        // Giving the work away is an effect of ours.
        if (event === 'vendor.tollbridge.side_effect' && payload.tool_call_id !== undefined) counts.effects += 1;
        if (event === 'vendor.tollbridge.remote_decided') decided.add(payload.tool_call_id);
        await sink.emit(fact);
      },
      async artifact(file) {
        counts.files += 1;
        return await sink.artifact(file);
      },
    },
    loss(holds = {}) {
      const carried = { ...counts, decisions: decided.size };
      return COUNTED.flatMap((aspect): Loss[] => {
        const there = holds[aspect] ?? 0;
        const here = carried[aspect];
        // Tokens are summed by provider there, and reported one by one here.
        const fewer = aspect === 'usage' ? there > 0 && here === 0 : here < there;
        if (!fewer) return [];
        return [
          { aspect, why: `the remote's receipt has ${there} ${NAMES[aspect]}; ${here} of them could be carried` },
        ];
      });
    },
  };
}
