/**
 * Work handed to a remote, as far as it is independent of the remote's protocol: the facts from acceptance to end,
 * cancellation, unknown states, and the timeouts of each.
 */
import type { End } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { JsonObject } from '../../model/schema.ts';
import { type Static, Type } from '../../model/type.ts';
import type { CallerReference, Logger, Sink } from '../../ports/index.ts';
import { type Carried, type Contents, statedContents } from './carried.ts';

/** For `not_reported`: an account of a remote's work is never complete. */
export const REPORTED_ONLY = 'work done by a remote: only its own report is known';

const Ms = Type.Optional(Type.Integer({ minimum: 1 }));

export const Timeouts = Type.Object(
  {
    /** One request and its response. */
    request_ms: Ms,
    /** Between two polls of work that reports nothing. */
    poll_ms: Ms,
    /** A stream without any bytes for this long is opened again. */
    idle_ms: Ms,
    /** How long the remote may be unreachable before the task fails. */
    silence_ms: Ms,
    /** How long the remote may take to stop after a cancel. */
    cancel_ms: Ms,
  },
  { additionalProperties: false },
);

export interface RemoteTimeouts {
  readonly requestMs: number;
  readonly pollMs: number;
  readonly idleMs: number;
  readonly silenceMs: number;
  readonly cancelMs: number;
}

export function timeoutsOf(timeouts: Static<typeof Timeouts> = {}): RemoteTimeouts {
  return {
    requestMs: timeouts.request_ms ?? 30_000,
    pollMs: timeouts.poll_ms ?? 1_000,
    idleMs: timeouts.idle_ms ?? 45_000,
    silenceMs: timeouts.silence_ms ?? 10 * 60_000,
    cancelMs: timeouts.cancel_ms ?? 5_000,
  };
}

export interface HandedOver {
  /** The remote's name here, the remote's id of the work, and the remote's host. */
  readonly name: string;
  readonly taskId: string;
  readonly host: string;
  readonly carried: Carried;
  readonly signal: AbortSignal;
  /** The reference to us that the remote was sent, and over which protocol. */
  readonly reference: CallerReference | undefined;
}

/** The remote's receipt, as far as it is known. */
export interface RemoteReceipt {
  readonly receipt_id: string;
  readonly receipt_hash?: string | undefined;
  readonly issuer?: string | undefined;
  readonly key_id?: string | undefined;
  readonly checked: 'valid' | 'invalid' | 'claimed';
  readonly reason?: string | undefined;
  /** How much of what it holds. */
  readonly holds?: Contents | undefined;
}

/** The link from our receipt to the remote's. Empty for a remote without receipts. */
export function proofOf(receipt: RemoteReceipt | undefined, reference: CallerReference | undefined): JsonObject {
  if (!receipt) return {};
  const { receipt_id, holds: _, ...about } = receipt;
  const { event_id, event_hash, protocol = 'unknown' } = reference ?? {};
  const said = Object.entries(about).filter(([, value]) => value !== undefined) as [string, string][];
  const announced = event_id && event_hash ? { announced: { event_id, event_hash } } : {};
  return { receipt_id, link: { ...Object.fromEntries(said), protocol, ...announced } };
}

/** A receipt the remote claims to have, not verified here. */
export function claimedReceipt(said: unknown): RemoteReceipt | undefined {
  const { receipt_id, receipt_hash, issuer, key_id, holds } = (said ?? {}) as Readonly<Record<string, unknown>>;
  const word = (value: unknown) =>
    typeof value === 'string' && value !== '' && value.length <= 200 ? value : undefined;
  const id = word(receipt_id);
  if (!id) return undefined;
  return {
    receipt_id: id,
    receipt_hash: word(receipt_hash),
    issuer: word(issuer),
    key_id: word(key_id),
    checked: 'claimed',
    holds: statedContents(holds),
  };
}

/**
 * Records that the remote has accepted the work, waits for its end, and records the outcome together with the remote's
 * receipt.
 */
export async function handOver(
  { name, taskId, host, carried, signal, reference }: HandedOver,
  finish: () => Promise<{ readonly end: End; readonly receipt?: RemoteReceipt | undefined }>,
): Promise<End> {
  const { sink } = carried;
  const handoff = (status: string, more: JsonObject = {}) =>
    sink.emit({ event: 'agent.handoff', payload: { target_agent: name, task_id: taskId, status, ...more } });
  try {
    await handoff('accepted');
    const payload = { type: 'network', destination: host, purpose: `work given to ${name}` };
    await sink.emit({ event: 'vendor.tollbridge.side_effect', payload });
    const { end, receipt } = await finish();
    await handoff(end.state === 'COMPLETED' ? 'completed' : 'failed', proofOf(receipt, reference));
    return { ...end, loss: [...carried.loss(receipt?.holds)] };
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
  /** Aborted when the remote is no longer followed. */
  readonly over: AbortController;
  readonly log: Logger;
  cancel(): Promise<unknown>;
}

/**
 * When our task is stopped, cancels the remote and waits up to `cancelMs` for it to stop. When our process restarts,
 * the remote keeps working.
 */
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
      // The remote had ended already, which the next poll will show.
      if (cause instanceof Fault && cause.kind === 'conflict') return;
      log.warn({ err: cause, remote: name }, 'a stop request could not be delivered to a remote');
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

/** The gateway is closing and will resume this task after its restart. */
function isLeaving({ reason }: AbortSignal): boolean {
  return reason instanceof Fault && reason.kind === 'unavailable';
}

/** An unknown state is not success. It is not failure either, until it has lasted too long. */
export function createWonder(sink: Sink, silenceMs: number) {
  let unknownState: { readonly status: string; readonly since: number } | undefined;
  return {
    /** The remote reports a known state. */
    rest(): void {
      unknownState = undefined;
    },
    async at(status: string): Promise<void> {
      if (unknownState?.status !== status) {
        unknownState = { status, since: performance.now() };
        const note = 'the remote says a state we do not know; it is taken to be still at work';
        await sink.emit({ event: 'vendor.tollbridge.note', payload: { note, status } });
      } else if (performance.now() - unknownState.since > silenceMs) {
        throw new Fault('upstream_unavailable', `the remote stayed in the unknown state ${status}`);
      }
    },
  };
}
