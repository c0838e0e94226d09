/** Being told to end: by Ctrl-C, by a signal, by a terminal that is closed, or by the end of standard input. */
import type { Readable } from 'node:stream';

/** Work that goes on until somebody stops it with Ctrl-C; being stopped is how it is meant to end. */
export async function untilStopped(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const letGo = onStop(() => stop.abort());
  try {
    await work(stop.signal);
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown;
  } finally {
    letGo();
  }
}

/**
 * Listens for whoever wants us to end, and keeps the process until then: following a log does not. A terminal that is closed is one of
 * them; without a terminal it may have been told with nohup not to care, and listening would undo that.
 */
export function onStop(stop: () => void, atTerminal = process.stdout.isTTY === true): () => void {
  const held = setInterval(() => {}, 2 ** 30);
  const names = ['SIGINT', 'SIGTERM', ...(atTerminal ? (['SIGHUP'] as const) : [])] as const;
  for (const name of names) process.once(name, stop);
  return () => {
    clearInterval(held);
    for (const name of names) process.off(name, stop);
  };
}

/** The same as something to wait for; asked for before anything is said, so that it can be answered at once. */
export function stopRequested(): { readonly requested: Promise<void>; letGo(): void } {
  let letGo = () => {};
  const requested = new Promise<void>((resolve) => {
    letGo = onStop(() => {
      letGo();
      resolve();
    });
  });
  return { requested, letGo: () => letGo() };
}

/**
 * Serves whoever is at the other end of standard input until they are gone or somebody stops us, which is to them as if we had heard the
 * end of what they say: what is under way is brought to an end, and written down.
 */
export async function untilInputEnds(input: Readable, serve: () => Promise<void>): Promise<void> {
  const letGo = onStop(() => input.destroy());
  try {
    await serve();
  } finally {
    letGo();
  }
}
