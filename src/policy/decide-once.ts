/**
 * Decides acts that no rule can tell apart only once: a record of a million decisions has far fewer different acts. Rules see neither
 * the ids of an act nor its cost, and few of them see the session. For acts of the past, which are judged on one state of the disk.
 */
import type { Action, Decision } from '../model/actions.ts';
import { Memo } from '../model/values/memo.ts';
import type { CompiledPolicies } from './cedar/compiled.ts';
import type { PolicyChain } from './chain.ts';
import type { NamedValue } from './context.ts';

/** Acts that are kept, and how long the text of one may be. */
const REMEMBERED = 20_000;
const LONGEST = 4_096;

interface Judged {
  readonly decision: Decision | undefined;
  inputs: readonly NamedValue[] | undefined;
}

export function decideOnce(chain: PolicyChain, { rules }: Pick<CompiledPolicies, 'rules'>): PolicyChain {
  const seesSession = rules.some(({ names }) => names.whole || names.members.has('session'));
  const known = new Memo<string, Judged>(REMEMBERED);
  let last: { readonly action: Action; readonly judged: Judged } | undefined;

  /** What rules can see of an act, as text. */
  function textOf({ id, task_id, tool_call_id, cost, session_id, ...seen }: Action): string {
    return JSON.stringify(seesSession ? [session_id, seen] : seen);
  }

  function judgedOf(action: Action): Judged {
    if (last?.action === action) return last.judged;
    const text = textOf(action);
    let judged = known.get(text);
    if (!judged) {
      judged = { decision: chain.judge(action), inputs: undefined };
      if (text.length <= LONGEST) known.set(text, judged);
    }
    last = { action, judged };
    return judged;
  }

  return {
    ...chain,
    judge: (action) => judgedOf(action).decision,
    inputs(action) {
      const judged = judgedOf(action);
      judged.inputs ??= chain.inputs(action);
      return judged.inputs;
    },
  };
}
