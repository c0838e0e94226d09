/** How a handoff comes to its end: by the peer's own word, or because we are told to stop. */
import { REJECTED, REJECTED_CODE } from '../../mappings/a2a.ts';
import { type End, Fault, isTerminal } from '../../src/index.ts';
import { failureCode, type Reading, type Standing, wordsOf } from './client-reading.ts';
import type { RunDeps } from './client-run.ts';

export function isOver(standing: Standing | undefined): boolean {
  return standing?.state !== undefined && isTerminal(standing.state);
}

export function isWaiting(standing: Standing | undefined): boolean {
  return standing?.state === 'INPUT_REQUIRED' || standing?.state === 'AUTH_REQUIRED';
}

export function endOf({ standing, bare }: Reading): End {
  const words = wordsOf(bare ?? standing?.message);
  const summary = words ? { summary: words.slice(0, 2_000) } : {};
  if (bare || standing?.state === 'COMPLETED') return { state: 'COMPLETED', ...summary };
  if (standing?.state === 'CANCELED') return { state: 'CANCELED', ...summary };
  const rejected = standing?.wire === REJECTED;
  const message = words ?? (rejected ? 'the peer refused the task' : 'the peer failed');
  const code = failureCode(standing?.message);
  return {
    state: 'FAILED',
    failure: {
      code: rejected ? REJECTED_CODE : 'peer_failed',
      message,
      details: { state: standing?.wire ?? null, ...(code && { code }) },
    },
  };
}

/** A stop of ours stops the peer, and waits a little for it to say so. A restart of ours leaves it at work. */
export function whenStopped(run: RunDeps, reading: Pick<Reading, 'standing'>, over: AbortController) {
  const { connection, settings, signal, deps } = run;
  const stop = async () => {
    const { standing } = reading;
    const leaving = signal.reason instanceof Fault && signal.reason.kind === 'unavailable';
    try {
      if (!leaving && standing && !isOver(standing)) {
        const limit = { signal: AbortSignal.timeout(settings.cancelMs) };
        await connection.client.cancelTask({ id: standing.taskId, tenant: '', metadata: undefined }, limit);
      }
    } catch (cause) {
      deps.log.warn({ err: cause, peer: settings.name }, 'a peer could not be told to stop');
    } finally {
      over.abort();
    }
  };
  const stopped = () => void stop();
  if (signal.aborted) stopped();
  else signal.addEventListener('abort', stopped, { once: true });
  return { close: () => signal.removeEventListener('abort', stopped) };
}
