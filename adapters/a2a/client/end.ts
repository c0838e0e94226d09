/** The end of a handoff: reported by the peer, or caused by a cancel here. */
import { REJECTED, REJECTED_CODE } from '../../../mappings/a2a.ts';
import { beginning, type End, Fault, isTerminal } from '../../../src/index.ts';
import { failureCode, type Standing, type UpdateReader, wordsOf } from './read-updates.ts';
import type { RunDeps } from './run.ts';

export function isOver(standing: Standing | undefined): boolean {
  return standing?.state !== undefined && isTerminal(standing.state);
}

export function isWaiting(standing: Standing | undefined): boolean {
  return standing?.state === 'INPUT_REQUIRED' || standing?.state === 'AUTH_REQUIRED';
}

export function endOf({ standing, bare }: UpdateReader): End {
  const words = wordsOf(bare ?? standing?.message);
  const summary = words ? { summary: beginning(words, 2_000) } : {};
  if (bare || standing?.state === 'COMPLETED') return { state: 'COMPLETED', ...summary };
  if (standing?.state === 'CANCELED') return { state: 'CANCELED', ...summary };
  const rejected = standing?.wire === REJECTED;
  const message = words ?? (rejected ? 'the peer refused the task' : 'the peer failed');
  const code = failureCode(standing?.message);
  return {
    state: 'FAILED',
    failure: {
      // Another Tollbridge gateway names the failure code it has for it.
      code: rejected ? REJECTED_CODE : (code ?? 'peer_failed'),
      message,
      details: { state: standing?.wire ?? null, ...(code && { code }) },
    },
  };
}

/** The gateway is shutting down and will resume this task. */
export function isLeaving({ reason }: AbortSignal): boolean {
  return reason instanceof Fault && reason.kind === 'unavailable';
}

/** A cancel here cancels the peer's task and waits briefly for confirmation. A restart of this gateway leaves the peer at work. */
export function whenStopped(run: RunDeps, reader: Pick<UpdateReader, 'standing'>, over: AbortController) {
  const { connection, settings, signal, deps } = run;
  const stop = async () => {
    const { standing } = reader;
    const leaving = isLeaving(signal);
    try {
      if (!leaving && standing && !isOver(standing)) {
        const limit = { signal: AbortSignal.timeout(settings.cancelMs) };
        await connection.client.cancelTask({ id: standing.taskId, tenant: '', metadata: undefined }, limit);
      }
    } catch (cause) {
      deps.log.warn({ err: cause, peer: settings.name }, 'a stop request could not be delivered to a peer');
    } finally {
      over.abort();
    }
  };
  const stopped = () => void stop();
  if (signal.aborted) stopped();
  else signal.addEventListener('abort', stopped, { once: true });
  return { close: () => signal.removeEventListener('abort', stopped) };
}
