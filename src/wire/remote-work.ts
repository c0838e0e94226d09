/**
 * Work given to a remote, as far as it is the same whatever the remote speaks: what is said of it from its being taken to
 * its end, how it is stopped, what becomes of words nobody has met, and how long each of that may take.
 */
import type { End } from '../model/commands.ts';
import { Fault } from '../model/faults.ts';
import type { JsonObject } from '../model/schema.ts';
import { type Static, Type } from '../model/type.ts';
import type { Logger, Sink } from '../ports.ts';

/** For `not_reported`: no account of a remote is complete. */
export const TOLD_ONLY = 'work done by a remote: only what it told is known';

const Ms = Type.Optional(Type.Integer({ minimum: 1 }));

export const Timeouts = Type.Object(
  {
    /** One exchange. */
    request_ms: Ms,
    /** Between two looks at work that says nothing. */
    poll_ms: Ms,
    /** A stream on which nothing moves for so long is opened again. */
    idle_ms: Ms,
    /** How long it may be out of reach before the task has failed. */
    silence_ms: Ms,
    /** How long it may take to stop after it was told to. */
    cancel_ms: Ms,
  },
  { additionalProperties: false },
);

export interface Patience {
  readonly requestMs: number;
  readonly pollMs: number;
  readonly idleMs: number;
  readonly silenceMs: number;
  readonly cancelMs: number;
}

export function patienceOf(timeouts: Static<typeof Timeouts> = {}): Patience {
  return {
    requestMs: timeouts.request_ms ?? 30_000,
    pollMs: timeouts.poll_ms ?? 1_000,
    idleMs: timeouts.idle_ms ?? 45_000,
    silenceMs: timeouts.silence_ms ?? 10 * 60_000,
    cancelMs: timeouts.cancel_ms ?? 5_000,
  };
}

export interface HandedOver {
  /** What the remote is called here, what it calls the work, and where it is. */
  readonly name: string;
  readonly taskId: string;
  readonly host: string;
  readonly sink: Sink;
  readonly signal: AbortSignal;
}

/** Says that the work is with someone else, sees it through, and says what came of it. `proof` goes with the last word. */
export async function handOver(
  { name, taskId, host, sink, signal }: HandedOver,
  finish: () => Promise<{ readonly end: End; readonly proof?: JsonObject }>,
): Promise<End> {
  const handoff = (status: string, more: JsonObject = {}) =>
    sink.emit({ event: 'agent.handoff', payload: { target_agent: name, task_id: taskId, status, ...more } });
  try {
    await handoff('accepted');
    const payload = { type: 'network', destination: host, purpose: `work given to ${name}` };
    await sink.emit({ event: 'vendor.tollbridge.side_effect', payload });
    const { end, proof } = await finish();
    await handoff(end.state === 'COMPLETED' ? 'completed' : 'failed', proof);
    return end;
  } catch (cause) {
    if (!signal.aborted) {
      await handoff('failed');
      throw cause;
    }
    return { state: 'CANCELED', summary: 'stopped while the remote was at work' };
  }
}

export interface Stopping {
  readonly name: string;
  readonly cancelMs: number;
  readonly signal: AbortSignal;
  /** Fired when nobody follows the remote any longer. */
  readonly over: AbortController;
  readonly log: Logger;
  cancel(): Promise<unknown>;
}

/** A stop of ours stops the remote, and waits a little for it to say so. A restart of ours leaves it at work. */
export function whenStopped({ name, cancelMs, signal, over, log, cancel }: Stopping): { close(): void } {
  let late: NodeJS.Timeout | undefined;
  const stop = async () => {
    if (isLeaving(signal)) {
      over.abort();
      return;
    }
    late = setTimeout(() => over.abort(), cancelMs);
    try {
      await cancel();
    } catch (cause) {
      // That it had ended already is for the next look at it to tell.
      if (cause instanceof Fault && cause.kind === 'conflict') return;
      log.warn({ err: cause, remote: name }, 'a remote could not be told to stop');
    }
  };
  const stopped = () => void stop();
  if (signal.aborted) stopped();
  else signal.addEventListener('abort', stopped, { once: true });
  return {
    close() {
      clearTimeout(late);
      signal.removeEventListener('abort', stopped);
    },
  };
}

/** The house is closing and will come back for this task. */
function isLeaving({ reason }: AbortSignal): boolean {
  return reason instanceof Fault && reason.kind === 'unavailable';
}

/** A word we have never met is not success. It is not failure either, until it has stood for too long. */
export function createWonder(sink: Sink, silenceMs: number) {
  let stranger: { readonly status: string; readonly since: number } | undefined;
  return {
    /** The remote says something we know. */
    rest(): void {
      stranger = undefined;
    },
    async at(status: string): Promise<void> {
      if (stranger?.status !== status) {
        stranger = { status, since: performance.now() };
        const note = 'the remote says a state we do not know; it is taken to be still at work';
        await sink.emit({ event: 'vendor.tollbridge.note', payload: { note, status } });
      } else if (performance.now() - stranger.since > silenceMs) {
        throw new Fault('upstream_unavailable', `the remote stayed in the unknown state ${status}`);
      }
    },
  };
}
