/** Agents that do exactly what a test says. */
import type { End } from '../../../src/model/commands.ts';
import type { AgentBackend, Sink, Work } from '../../../src/ports/index.ts';

export type Script = (sink: Sink, work: Work, signal: AbortSignal) => Promise<End | undefined>;

/** Completes when the script returns nothing, fails when it throws. */
export function scriptedAgent(
  script: Script,
  { name = 'agent', resume = false }: { readonly name?: string; readonly resume?: boolean } = {},
): AgentBackend {
  return {
    name,
    abilities: { resume, evidence: 'held' },
    start: async (work, sink, signal) => ({
      done: script(sink, work, signal).then((end) => end ?? { state: 'COMPLETED' }),
    }),
  };
}

/** A promise and its two ends, for scripts that wait for the test. */
export function latch<T = void>(): { promise: Promise<T>; open(value: T): void } {
  let open: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** Ends when the task is asked to stop. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Done as soon as it has begun. */
export const quick = (): AgentBackend => scriptedAgent(async () => undefined);

/** At work until it is asked to stop. */
export const patient = (): AgentBackend =>
  scriptedAgent(async (_sink, _work, signal) => {
    await untilAborted(signal);
    return { state: 'CANCELED' };
  });
