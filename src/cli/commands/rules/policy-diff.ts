/** `tollbridge policy diff <rules>`: recorded decisions, evaluated with other rules. Reads the log, writes nothing. */
import { recordedDecisions } from '../../../core/events/recorded-decisions.ts';
import { position, type Stream } from '../../../model/events.ts';
import { readOnSnapshot } from '../../../policy/acts/match.ts';
import { createCedarEngine } from '../../../policy/cedar/engine.ts';
import { createPolicyChain } from '../../../policy/chain.ts';
import { type Comparison, compareDecisions } from '../../../policy/compare.ts';
import { createPersonaEngine } from '../../../policy/persona.ts';
import { readAct } from '../../../runtime/read-act.ts';
import { type CommonOptions, lookInto } from '../../context.ts';
import { findTask } from '../../find.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { createProgress } from '../../output/progress.ts';
import { brief, briefArguments, counted, eventNumber, shortId } from '../../output/terminal-text.ts';
import { rulesFrom } from './policy.ts';

export interface PolicyDiffOptions extends CommonOptions {
  readonly task?: string;
  readonly json?: boolean;
}

const MARKS = { changed: '~', unknown: '?' } as const;

export async function policyDiff(file: string, options: PolicyDiffOptions): Promise<number> {
  const policies = await rulesFrom(file);
  const chain = createPolicyChain({
    engines: [createPersonaEngine(), createCedarEngine({ policies, read: readOnSnapshot(readAct) })],
  });
  return await lookInto(options, async ({ store }) => {
    const stream: Stream = options.task ? { of: 'task', id: (await findTask(store, options.task)).id } : { of: 'all' };
    const tip = await store.tip({ of: 'all' });
    const progress = createProgress('asking the rules', tip ? (position(tip) ?? 0) : 0);
    const counts = { same: 0, changed: 0, unknown: 0 };
    const seen = { event_id: '' };
    const recorded = async function* () {
      for await (const one of recordedDecisions(store, { stream })) {
        seen.event_id = one.event_id;
        progress.at(position(one.event_id) ?? 0);
        yield one;
      }
    };
    for await (const one of compareDecisions(recorded(), chain)) {
      counts[one.kind] += 1;
      if (one.kind === 'same') continue;
      progress.end();
      process.stdout.write(options.json ? asJson(seen.event_id, one) : asLine(seen.event_id, one, one.kind));
    }
    progress.end();
    const total = counts.same + counts.changed + counts.unknown;
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ object: 'summary', decisions: total, ...counts, version: policies.version })}\n`
        : `${counted(total, 'decision')} on record: ${counts.changed} would change, ${counts.unknown} unknown, ${counts.same} stay as they were\n`,
    );
    return counts.changed > 0 ? EXIT.no : EXIT.done;
  });
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
