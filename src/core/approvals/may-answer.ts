/** Which actors may answer a question: the proposer of an act may not approve it. Pure. */
import type { Actor } from '../../model/actions.ts';
import type { AskRecord } from '../../model/asks.ts';
import type { Task } from '../../model/resources.ts';
import { holds } from '../access.ts';

/** Whether an approval by this actor, or a value it gives, would count. For doors that offer an answer only where there can be one. */
export function mayAnswer(actor: Actor, ask: AskRecord, task: Pick<Task, 'created_by'>): boolean {
  return holds(actor, 'approvals:write') && whyNoAnswer(actor, ask, task, false) === undefined;
}

/**
 * Why this actor may not give this answer; undefined when it may. The one rule for every door:
 *
 * - an agent approves nothing, and a question that names its approvers is theirs alone;
 * - the proposer of an act does not approve it, nor gives the value it asked for;
 * - the principal that gave the work does not approve what an agent does in it, unless the question names it, or its credential
 *   holds `approvals:own`, which is not part of `*`;
 * - a person at an interactive surface may approve there what she proposed there.
 *
 * A denial needs none of this: a principal that may stop the work may also refuse a part of it.
 */
export function whyNoAnswer(actor: Actor, ask: AskRecord, task: Pick<Task, 'created_by'>, refuses: boolean): Why {
  const gave = task.created_by === actor.id;
  // The agent that gave the work may answer a question for a value; it may never approve.
  if (actor.kind === 'agent' && !(ask.kind === 'input' && gave)) {
    return { code: 'agent', message: 'an agent does not answer for a person' };
  }
  const named = ask.to.includes(actor.id);
  if (ask.to.length > 0 && !named && !ask.to.some((word) => actor.scopes.includes(word))) {
    return { code: 'not_addressed', message: 'it is put to others' };
  }
  if (refuses || (actor.kind === 'person' && actor.interactive)) return undefined;
  if (ask.action.actor === actor.id) return { code: 'proposer', message: 'the proposer of an act does not approve it' };
  if (ask.kind !== 'approval' || !gave) return undefined;
  if (named || actor.scopes.includes('approvals:own')) return undefined;
  return { code: 'own_work', message: 'it is about work this credential started; another one has to approve it' };
}

type Why = { readonly code: string; readonly message: string } | undefined;
