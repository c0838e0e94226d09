/**
 * A name that a process holds for as long as it lives, so that others can tell that it does. A store over a network may end the lease of a
 * process that stood still or was cut off; then the name is taken again as soon as nobody else holds it.
 */

interface Holding {
  /** Absent: it cannot be lost. */
  readonly lost?: AbortSignal;
  close(): Promise<void>;
}

export interface HeldName<L extends Holding> {
  /** Undefined while it is lost: others take this process for gone. */
  current(): L | undefined;
  /** False while it is lost, and shortly after: whatever took it from this process may have taken theirs from others that live. */
  judgesOthers(): boolean;
  close(): Promise<void>;
}

/** Others that lost theirs with us have them again by then. */
const SETTLES_MS = 2_000;
/** Between attempts to take it again. */
const AGAIN_MS = 100;

/** The process may end meanwhile. */
const pause = () => new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());

/** `take` resolves with undefined while another process holds the name. Its first failure is the caller's. */
export async function holdName<L extends Holding>(take: () => Promise<L | undefined>): Promise<HeldName<L>> {
  let held: L | undefined;
  let closed = false;
  let againAt = Number.NEGATIVE_INFINITY;

  async function hold(): Promise<boolean> {
    const lease = await take();
    if (!lease) return false;
    if (closed) {
      await lease.close();
      return true;
    }
    if (lease.lost?.aborted) return false;
    held = lease;
    lease.lost?.addEventListener('abort', () => void again(), { once: true });
    return true;
  }

  async function again(): Promise<void> {
    held = undefined;
    while (!closed && !(await hold().catch(() => false))) await pause();
    againAt = performance.now();
  }

  await hold();
  return {
    current: () => held,
    judgesOthers: () => held !== undefined && performance.now() - againAt > SETTLES_MS,
    async close() {
      closed = true;
      await held?.close();
    },
  };
}
