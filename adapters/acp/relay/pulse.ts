/**
 * Whether anything moves in a turn: what the agent says, and what it waits for that is not its own doing. Counted in looks
 * and not in hours, so that a machine that slept was not an agent that hung.
 */
export interface Pulse {
  /** The agent gave a sign of life. */
  heard(): void;
  /** The agent waits for this, and so it may be silent. */
  during<T>(work: Promise<T>): Promise<T>;
  /** The same, by name: a question that is open, a call that runs elsewhere. */
  waits(name: string): void;
  waitsNoMore(name: string): void;
  /** By name: whom it waits for, as far as is known here. */
  waitingFor(): readonly string[];
  /** Looks: for how many looks in a row it was silent, this one included. */
  look(): number;
}

export function createPulse(): Pulse {
  const waiting = new Set<string>();
  let under = 0;
  let alive = true;
  let silent = 0;
  return {
    heard() {
      alive = true;
    },
    async during(work) {
      under += 1;
      try {
        return await work;
      } finally {
        under -= 1;
        alive = true;
      }
    },
    waits: (name) => {
      waiting.add(name);
    },
    waitsNoMore(name) {
      if (waiting.delete(name)) alive = true;
    },
    waitingFor: () => [...waiting],
    look() {
      silent = alive || under > 0 || waiting.size > 0 ? 0 : silent + 1;
      alive = false;
      return silent;
    },
  };
}
