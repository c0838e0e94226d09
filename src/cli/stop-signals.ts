/** Requests to stop: Ctrl-C, a signal, a closed terminal, or the end of standard input. */
import type { Readable } from 'node:stream';

/** Runs work that continues until Ctrl-C; being stopped is its normal end. */
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
 * Calls `stop` on a stop signal, and keeps the process alive until then: following a log does not. A closed terminal
 * (SIGHUP) counts too; without a terminal the process may have been started by nohup to ignore it, and a listener would undo that.
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

/** The same as a promise; created before any output, so that an early stop is not missed. */
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
 * Serves the peer on standard input until its input ends or a signal arrives: work in progress is ended and recorded. The signal also
 * ends what goes on after the end of the input.
 */
export async function untilInputEnds(input: Readable, serve: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const letGo = onStop(() => {
    stop.abort();
    input.destroy();
  });
  try {
    await serve(stop.signal);
  } finally {
    letGo();
  }
}
