/**
 * Detects an agent that is silent in the middle of a turn, while no question is open and no act is in progress for it. The
 * agent receives a cancel, the turn fails with that reason, and the editor gets the error. The process belongs to the editor
 * and is not ended.
 */

import type { Wires } from '../frames/pending.ts';
import type { Turn } from './turns.ts';

export interface StallDeps {
  readonly wires: Pick<Wires, 'editor'>;
  /** The agent's name in the log. */
  readonly name: string;
  /** Undefined: it may be silent indefinitely. */
  readonly stallMs: number | undefined;
  /** Ends the turn with this reason. */
  readonly stalled: (turn: Turn, why: string) => void;
}

/** The longest delay of a timer. */
const LONGEST_WAIT = 2 ** 31 - 1;
/** The number of checks before the time is up. */
const LOOKS = 4;

export function createStall({ wires, name, stallMs, stalled }: StallDeps): (turn: Turn) => void {
  if (stallMs === undefined) return () => {};
  const why = `the agent ${name} has not said a word for ${inWords(stallMs)}`;
  return (turn) => {
    const timer = setInterval(
      () => {
        // An agent cannot send while the editor does not read, and after a cancel it has a separate time limit.
        if (wires.editor.full || turn.canceled) turn.pulse.received();
        if (turn.pulse.look() < LOOKS) return void dropExited(turn);
        clearInterval(timer);
        stalled(turn, why);
      },
      Math.min(stallMs / LOOKS, LONGEST_WAIT),
    );
    timer.unref();
    void turn.over.then(() => clearInterval(timer));
  };
}

/** A call of a process that has exited has no end in the log, so the agent no longer waits for it. */
async function dropExited({ pulse, live }: Turn): Promise<void> {
  const names = pulse.waitingFor();
  // A log that cannot be read is no reason to stop waiting.
  if (names.length === 0 || (await live?.awaiting().catch(() => true))) return;
  for (const name of names) pulse.waitsNoMore(name);
}

function inWords(ms: number): string {
  const [amount, unit] = ms >= 60_000 ? [ms / 60_000, 'minute'] : [ms / 1000, 'second'];
  const rounded = Math.round(amount * 10) / 10;
  return `${rounded} ${unit}${rounded === 1 ? '' : 's'}`;
}
