/** Work that goes on until somebody stops it with Ctrl-C; being stopped is how it is meant to end. */
export async function untilStopped(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const end = () => stop.abort();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, end);
  try {
    await work(stop.signal);
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown;
  } finally {
    process.off('SIGINT', end);
    process.off('SIGTERM', end);
  }
}
