/**
 * The decision on a call without effects, while it waits to be written together with the result. It is written at once when the door
 * says that something else about the call is to be written or asked, and when the call takes long.
 */

export interface UnwrittenDecision {
  /** Resolves when the decision is durable. */
  readonly write: () => Promise<void>;
  /** The result of the running call. Rejects when the decision could not be written meanwhile: nothing is answered then. */
  during<T>(running: Promise<T>): Promise<T>;
  /** Waits for a write that has begun. False: nothing was written. */
  written(): Promise<boolean>;
}

/** A call that takes longer is on record while it runs. */
const LONG_MS = 250;

export function createUnwrittenDecision(commit: () => Promise<unknown>, longMs = LONG_MS): UnwrittenDecision {
  let writing: Promise<void> | undefined;
  let over = false;
  let fail: (cause: unknown) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {});

  function write(): Promise<void> {
    // The result is being written, with the decision.
    if (over && !writing) return Promise.resolve();
    writing ??= commit().then(() => {});
    writing.catch(fail);
    return writing;
  }

  return {
    write,
    async during(running) {
      const timer = setTimeout(() => write().catch(() => {}), longMs);
      try {
        return await Promise.race([running, failed]);
      } finally {
        clearTimeout(timer);
      }
    },
    async written() {
      over = true;
      await writing;
      return writing !== undefined;
    },
  };
}
