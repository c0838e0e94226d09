/**
 * The effect an act counts with. An agent's claims about its own act may raise it, and never lower it below what kind and arguments
 * show. Mounted tools are not handled here: their server's definition, which a person has seen, states the effect.
 */
import type { Action, ActionKind } from '../../model/actions.ts';
import type { Effect } from '../../model/words.ts';

/** The least effect of a kind of act. */
const BY_KIND: ReadonlyMap<ActionKind, Effect> = new Map<ActionKind, Effect>([
  ['fs.read', 'read'],
  ['fs.write', 'write'],
  ['terminal', 'execute'],
  ['memory.read', 'read'],
  ['memory.write', 'write'],
  ['handoff', 'unknown'],
]);

/**
 * From mild to strong. A command is the strongest: it can do everything the others do, so no milder claim counts. `unknown` is
 * stronger than a write, because it may be one.
 */
const ORDER: readonly Effect[] = ['none', 'read', 'write', 'delete', 'unknown', 'send', 'publish', 'pay', 'execute'];

export function atLeast(claimed: Effect, floor: Effect | undefined): Effect {
  return floor !== undefined && ORDER.indexOf(floor) > ORDER.indexOf(claimed) ? floor : claimed;
}

/** `shows`: the effect shown by its arguments, its tool's name and the agent's claims; claims can only raise it. */
export function effectOf(
  { kind, effect = 'unknown' }: Pick<Partial<Action>, 'effect'> & Pick<Action, 'kind'>,
  shows: Effect | undefined,
): Effect {
  return atLeast(atLeast(effect, BY_KIND.get(kind)), shows);
}
