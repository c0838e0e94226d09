/**
 * Taking turns, where several processes commit to one log. What a process has in memory is void as soon as another one commits, and a
 * batch that was decided meanwhile is decided again: in turns of a few batches each, most batches find everything as it was left. A turn
 * saves work and promises nothing: every commit is checked as if there were none, so a process that waits too long goes on without one.
 */
import type { WriterTurns } from '../database.ts';

export interface TurnTaker {
  /** False: it is another's turn, and `begin` is called when ours has come. */
  ours(): boolean;
  /** Whether another batch may be begun in this turn. */
  lasts(): boolean;
  /** Ours, as far as anybody knows. */
  readonly held: boolean;
  /** From now on, and for a while, turns are taken. */
  sawAnotherWriter(): void;
  /** Nothing waits to be written. The turn ends, unless the callers that were just answered have more at once. */
  rest(): void;
  close(): void;
}

/** A longer one makes others wait longer; a shorter one is spent on reading what they wrote. */
const TURN_MS = 25;
/** So long after another writer was last seen. */
const CROWDED_MS = 1_000;
/** A process that stands still keeps its turn until its connection or itself is gone. */
const LONGEST_WAIT_MS = 500;

export function createTurnTaker(turns: WriterTurns | undefined, begin: () => void, isIdle: () => boolean): TurnTaker {
  let crowdedUntil = 0;
  let taking = false;
  let resting = false;
  let turn: { readonly until: number; release(): void } | undefined;

  function end(): void {
    turn?.release();
    turn = undefined;
  }

  async function take(from: WriterTurns): Promise<void> {
    taking = true;
    const attempt = from.take(LONGEST_WAIT_MS).catch(() => undefined);
    let timer: NodeJS.Timeout | undefined;
    // What keeps the turns may not answer at all.
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), 2 * LONGEST_WAIT_MS);
    });
    const came = await Promise.race([attempt, late]);
    clearTimeout(timer);
    if (came === 'late') void attempt.then((turn) => turn?.release());
    const taken = came === 'late' ? undefined : came;
    taking = false;
    const now = performance.now();
    if (taken) {
      if (taken.othersWrote) crowdedUntil = now + CROWDED_MS;
      turn = { until: now + TURN_MS, release: taken.release };
    } else turn = { until: now + CROWDED_MS, release() {} };
    begin();
  }

  return {
    get held() {
      return turn !== undefined;
    },
    ours() {
      if (!turns) return true;
      const now = performance.now();
      if (turn && now < turn.until) return true;
      end();
      if (now > crowdedUntil) return true;
      if (!taking) void take(turns);
      return false;
    },
    lasts: () => turn === undefined || performance.now() < turn.until,
    sawAnotherWriter() {
      crowdedUntil = performance.now() + CROWDED_MS;
    },
    close: end,
    rest() {
      if (!turn || resting) return;
      resting = true;
      setImmediate(() => {
        resting = false;
        if (isIdle()) end();
      });
    },
  };
}
