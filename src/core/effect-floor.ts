/**
 * The effect an act counts with. What an agent says of its own act may raise it, and never lowers it below what kind and arguments show.
 * A mounted tool is not asked here: its server's definition, which a person has seen, says what it does.
 */
import type { Action, ActionKind } from '../model/actions.ts';
import type { Effect } from '../model/words.ts';

/** What a kind of act does at least, whatever else is known of it. */
const BY_KIND: ReadonlyMap<ActionKind, Effect> = new Map<ActionKind, Effect>([
  ['fs.read', 'read'],
  ['fs.write', 'write'],
  ['terminal', 'execute'],
  ['memory.read', 'read'],
  ['memory.write', 'write'],
  ['handoff', 'unknown'],
]);

/**
 * From mild to strong. A command is the strongest: it can do everything the others do, so no other word for it is believed. `unknown`
 * is more than a write, because it may be one.
 */
const ORDER: readonly Effect[] = ['none', 'read', 'write', 'delete', 'unknown', 'send', 'publish', 'pay', 'execute'];

export function atLeast(claimed: Effect, floor: Effect | undefined): Effect {
  return floor !== undefined && ORDER.indexOf(floor) > ORDER.indexOf(claimed) ? floor : claimed;
}

/** `shows`: what its arguments, its tool's name and the agent's own words show; the words can only add. */
export function effectOf(
  { kind, effect = 'unknown' }: Pick<Partial<Action>, 'effect'> & Pick<Action, 'kind'>,
  shows: Effect | undefined,
): Effect {
  return atLeast(atLeast(effect, BY_KIND.get(kind)), shows);
}
