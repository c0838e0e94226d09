/**
 * Refuses acts whose result might not fit into the log. While the store has less free space than one result may take, acts with
 * side effects are refused; reads, answers and ends continue as long as there is any space.
 */
import { AGENT_ACTS } from '../../model/actions.ts';
import { isSideEffect } from '../../model/words.ts';
import type { Store } from '../../ports/index.ts';
import type { ResultLimits } from './calls/result-size.ts';
import { blocked, type Gate } from './gate.ts';

/** A result at its longest encoding in the log and its journal, the decision before it, the end and the receipt after it. */
const SPELLING = 3;
const AROUND = 2 * 1024 * 1024;

export function requireRoom(gate: Gate, store: Pick<Store, 'room'>, { size }: ResultLimits): Gate {
  const needed = SPELLING * size + AROUND;
  return (action, withinMs, tool) => {
    if (!AGENT_ACTS.includes(action.kind) || !isSideEffect(action.effect)) return gate(action, withinMs, tool);
    const room = store.room();
    if (room >= needed) return gate(action, withinMs, tool);
    return blocked(
      'no_room',
      `the log has room for ${room} more bytes; ${needed} are kept free for results, so nothing was run`,
    );
  };
}
