/**
 * Detects whether a turn makes progress: by messages of the agent, and by work it waits for. Silence is counted in checks and
 * not in time, so that a machine that slept does not look like a stalled agent.
 */
export interface Pulse {
  /** The agent sent something. */
  received(): void;
  /** The agent waits for this, and so may be silent. */
  during<T>(work: Promise<T>): Promise<T>;
  /** The same, by id: an open question, a call that runs elsewhere. */
  waits(name: string): void;
  waitsNoMore(name: string): void;
  /** The ids it waits for, as far as they are known here. */
  waitingFor(): readonly string[];
  /** Checks once; returns for how many checks in a row it was silent, this one included. */
  look(): number;
}

export function createPulse(): Pulse {
  const waiting = new Set<string>();
  let under = 0;
  let alive = true;
  let silent = 0;
  return {
    received() {
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
