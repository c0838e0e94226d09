/**
 * An agent that says nothing in the middle of a turn, while nobody is asked and nothing is done for it, hangs. It is told to
 * stop, the turn fails with that reason, and the editor hears so. The agent is the editor's and is left to live.
 */
import type { Turn } from './turns.ts';
import type { Wires } from './wires.ts';

export interface StallDeps {
  readonly wires: Pick<Wires, 'editor'>;
  /** The agent, as the log calls it. */
  readonly name: string;
  /** Undefined: it may be silent for as long as it likes. */
  readonly stallMs: number | undefined;
  /** The turn is over, for this reason. */
  readonly stalled: (turn: Turn, why: string) => void;
}

/** What a timer can count to. */
const LONGEST_WAIT = 2 ** 31 - 1;
/** So often it is looked at before its time is up. */
const LOOKS = 4;

export function createStall({ wires, name, stallMs, stalled }: StallDeps): (turn: Turn) => void {
  if (stallMs === undefined) return () => {};
  const why = `the agent ${name} has not said a word for ${inWords(stallMs)}`;
  return (turn) => {
    const timer = setInterval(
      () => {
        // What nobody reads cannot be said, and one that was told to stop has its own time to.
        if (wires.editor.full || turn.canceled) turn.pulse.heard();
        if (turn.pulse.look() < LOOKS) return void leaveTheDead(turn);
        clearInterval(timer);
        stalled(turn, why);
      },
      Math.min(stallMs / LOOKS, LONGEST_WAIT),
    );
    timer.unref();
    void turn.over.then(() => clearInterval(timer));
  };
}

/** A call that ran in a process which is gone now has no end in the log, and nobody is left to wait for. */
async function leaveTheDead({ pulse, live }: Turn): Promise<void> {
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
