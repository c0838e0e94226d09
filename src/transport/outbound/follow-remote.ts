/**
 * Remote work as a sequence of signs: its events, and silences after which the work itself should be read. Streams where possible,
 * polls otherwise, and goes on after any failure. Knows no protocol: what a frame means, and which events are new, its user says.
 */
import { anySignal } from '../../model/values/signals.ts';
import { parseJsonText } from '../http/body.ts';
import { readSse, type SseMessage } from '../sse/read.ts';
import { createSilenceDetector, within, withPauses } from '../sse/silence.ts';
import { isPassing, pause, type Remote, RemoteRefusal } from './remote.ts';

export type Sign<E> =
  | { readonly kind: 'event'; readonly event: E }
  /** No event came for a while, or the stream ended: the work itself has to be read. */
  | { readonly kind: 'quiet' }
  /** It cannot be reached now; it is tried again. */
  | { readonly kind: 'unreachable'; readonly cause: unknown }
  /** Some events are no longer to be had. */
  | { readonly kind: 'lost' };

export interface FollowOptions {
  readonly remote: Remote;
  /** Between two polls, and until a silent stream counts as quiet. */
  readonly pollMs: number;
  /** A stream without any bytes for this long is opened again. */
  readonly idleMs: number;
}

export interface RemoteEvents<E> {
  /** Where the stream may be, from the newest cursor on: where a remote refuses one, the next is tried. Polling replaces the last. */
  readonly streams: readonly (() => { readonly path: string; readonly headers?: Readonly<Record<string, string>> })[];
  /** What a message of the stream says. `value` is undefined for text that is not JSON or is ambiguous. `end`: no more comes on this stream. */
  received(value: unknown, message: SseMessage, signal: AbortSignal): AsyncIterable<Sign<E> | 'end'>;
  /** The events since the last, requested once. */
  rest(signal?: AbortSignal): AsyncIterable<E>;
  /** The remote no longer has the events after the cursor. */
  expired?(): void;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** Refusals of the stream before the next one, or polling, replaces it. */
const STREAM_TRIES = 3;

export async function* followRemote<E>(
  { remote, pollMs, idleMs }: FollowOptions,
  { streams, received, rest, expired }: RemoteEvents<E>,
  signal: AbortSignal,
): AsyncGenerator<Sign<E>> {
  const left = [...streams];
  let wait = FIRST_WAIT_MS;
  let refusals = 0;
  let delivered = false;

  async function* streamed(stream: (typeof streams)[number]): AsyncGenerator<Sign<E>> {
    const gone = new AbortController();
    const both = anySignal([signal, gone.signal]);
    try {
      const { path, headers } = stream();
      const opening = remote.open(path, { signal: both, ...(headers && { headers }) });
      // A server may delay its answer until it has an event to send.
      let response = await within(opening, pollMs);
      while (response === 'late') {
        yield { kind: 'quiet' };
        response = await within(opening, pollMs);
      }
      const type = response.headers.get('content-type') ?? '';
      if (response.status === 204 || !type.startsWith('text/event-stream')) {
        await response.body?.cancel();
        if (response.status === 204) return;
        throw new RemoteRefusal('upstream_unavailable', 'the remote has no event stream', response.status, '');
      }
      const line = createSilenceDetector();
      const messages = readSse(response.body as AsyncIterable<Uint8Array>, line.moved);
      for await (const message of withPauses(messages, pollMs, () => line.silentMs() > idleMs)) {
        if (message === 'quiet') {
          yield { kind: 'quiet' };
          continue;
        }
        delivered = true;
        refusals = 0;
        for await (const sign of received(parsed(message.data), message, both)) {
          if (sign === 'end') return;
          yield sign;
        }
      }
    } finally {
      gone.abort();
    }
  }

  async function* polled(): AsyncGenerator<Sign<E>> {
    for await (const event of rest(signal)) yield { kind: 'event', event };
    delivered = true;
  }

  async function* attempt(): AsyncGenerator<Sign<E>> {
    const [stream] = left;
    delivered = false;
    try {
      yield* stream ? streamed(stream) : polled();
      yield { kind: 'quiet' };
      wait = delivered ? FIRST_WAIT_MS : Math.min(wait * 2, pollMs);
      await pause(stream ? wait : pollMs, signal);
    } catch (cause) {
      if (signal.aborted) return;
      if (expired && cause instanceof RemoteRefusal && cause.kind === 'cursor_expired') {
        expired();
        yield { kind: 'lost' };
      } else if (stream && cause instanceof RemoteRefusal && (!isPassing(cause) || ++refusals >= STREAM_TRIES)) {
        left.shift();
      } else {
        yield { kind: 'unreachable', cause };
        wait = delivered ? FIRST_WAIT_MS : Math.min(wait * 2, LONGEST_WAIT_MS);
        await pause(wait, signal);
      }
    }
  }

  while (!signal.aborted) yield* attempt();
}

function parsed(text: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    return undefined;
  }
}
