/** Part of the log put to other rules: how many decisions would differ, and a line for each that would. */
import { recordedDecisions } from '../../../core/events/recorded-decisions.ts';
import type { CompiledPolicies } from '../../../policy/cedar/compiled.ts';
import { type Comparison, compareDecisions } from '../../../policy/compare.ts';
import type { EventRange, Store } from '../../../ports/index.ts';
import { rulesToCompare } from '../../../runtime/compare-rules.ts';
import { brief, briefArguments, eventNumber, shortId } from '../../output/terminal-text.ts';

export type LogPart = Pick<EventRange, 'stream' | 'after' | 'upTo'>;

export interface Differences extends Record<Comparison['kind'], number> {
  /** A line for each decision that would change or is unknown. */
  readonly text: string;
}

const MARKS = { changed: '~', unknown: '?' } as const;

export function comparePart(
  store: Pick<Store, 'read' | 'get' | 'blob'>,
  policies: CompiledPolicies,
  json: boolean,
): (part: LogPart) => Promise<Differences> {
  const chain = rulesToCompare(policies);
  return async (part) => {
    const counts = { same: 0, changed: 0, unknown: 0 };
    let text = '';
    let event = '';
    const recorded = async function* () {
      for await (const one of recordedDecisions(store, part)) {
        event = one.event_id;
        yield one;
      }
    };
    for await (const one of compareDecisions(recorded(), chain)) {
      counts[one.kind] += 1;
      if (one.kind !== 'same') text += json ? asJson(event, one) : asLine(event, one, one.kind);
    }
    return { ...counts, text };
  };
}

function asLine(event: string, { action, why = '' }: Comparison, kind: keyof typeof MARKS): string {
  const args = briefArguments(action.arguments, 60);
  const what = `${brief(action.tool ?? action.kind)}${args ? ` (${args})` : ''}`;
  return `${MARKS[kind]} event ${eventNumber(event)}  ${shortId(action.task_id ?? '')}  ${what}  ${brief(inWords(why), 300)}\n`;
}

/** In the words rules are written in. */
function inWords(why: string): string {
  return why.replaceAll('escalate', 'ask');
}

function asJson(event_id: string, { action, before, after, kind, why }: Comparison): string {
  const { id, task_id, tool, kind: action_kind, effect, target } = action;
  const about = { id, task_id, kind: action_kind, tool, effect, target };
  return `${JSON.stringify({ object: 'difference', kind, event_id, action: about, before, after, why })}\n`;
}
