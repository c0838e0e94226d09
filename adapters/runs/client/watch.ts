/**
 * A remote run as a sequence of signs: its events, each once and in order, and silences after which the run should be read.
 * Streams where possible, polls otherwise, and resumes from its cursor after any failure.
 */
import { anySignal, Fault, isObject, type JsonObject } from '../../../src/index.ts';
import { parseJsonText } from '../../../src/transport/http/body.ts';
import { isPassing, Refusal, type Remote, segment } from '../../../src/transport/outbound/remote.ts';
import { readSse } from '../../../src/transport/sse/read.ts';
import { createSilenceDetector, within, withPauses } from '../../../src/transport/sse/silence.ts';
import type { Pause } from './submit.ts';

/** Only the type is certain. */
export interface RemoteEvent {
  readonly seq: number;
  readonly type: string;
  readonly value: JsonObject;
}

export type Sign =
  | { readonly kind: 'event'; readonly event: RemoteEvent }
  /** No event came for a while, or the stream ended: the run itself has to be read. */
  | { readonly kind: 'quiet' }
  /** It cannot be reached now; it is tried again. */
  | { readonly kind: 'unreachable'; readonly cause: unknown };

export interface WatchOptions {
  readonly remote: Remote;
  readonly runId: string;
  readonly pollMs: number;
  readonly idleMs: number;
  readonly pause: Pause;
}

export interface Watch {
  signs(signal: AbortSignal): AsyncIterable<Sign>;
  /** The events since the last sign, requested once. */
  rest(): AsyncIterable<RemoteEvent>;
  /** Events are missing that the remote could not deliver. */
  readonly missing: boolean;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** Refusals of the stream before polling replaces it. */
const STREAM_TRIES = 3;
/** More pages than any run has: an endless list is abandoned, and the log notes that events are missing. */
const MOST_PAGES = 1_000;

export function createWatch({ remote, runId, pollMs, idleMs, pause }: WatchOptions): Watch {
  const path = `/v1/runs/${segment(runId)}/events`;
  let cursor = 0;
  let wait = FIRST_WAIT_MS;
  let refusals = 0;
  let streaming = true;
  let delivered = false;
  let missing = false;

  /** In order, each once: known events are skipped, and missing ones are requested. */
  async function* inOrder(event: RemoteEvent, signal?: AbortSignal): AsyncGenerator<RemoteEvent> {
    if (event.seq <= cursor) return;
    if (event.seq > cursor + 1) {
      for await (const between of after(cursor, signal)) {
        if (between.seq >= event.seq) break;
        if (between.seq <= cursor) continue;
        if (between.seq > cursor + 1) missing = true;
        cursor = between.seq;
        yield between;
      }
      if (event.seq > cursor + 1) missing = true;
    }
    cursor = event.seq;
    yield event;
  }

  /** Page by page until one is empty or does not advance. */
  async function* after(from: number, signal?: AbortSignal): AsyncGenerator<RemoteEvent> {
    for (let at = from, pages = 0; pages < MOST_PAGES; pages += 1) {
      const page = await remote.call<JsonObject>('GET', `${path}?cursor=${at}&limit=200`, { signal });
      const events = (Array.isArray(page?.events) ? page.events : []).flatMap((event: unknown) => toEvent(event) ?? []);
      yield* events;
      const last = events.at(-1)?.seq ?? at;
      if (events.length === 0 || last <= at) return;
      at = last;
    }
    missing = true;
    throw new Fault('upstream_unavailable', 'the list of events of the remote does not end');
  }

  async function* streamed(signal: AbortSignal): AsyncGenerator<Sign> {
    const gone = new AbortController();
    const both = anySignal([signal, gone.signal]);
    try {
      const opening = remote.open(`${path}/stream?cursor=${cursor}`, { signal: both });
      // A server may delay its answer until it has an event to send.
      let response = await within(opening, pollMs);
      while (response === 'late') {
        yield { kind: 'quiet' };
        response = await within(opening, pollMs);
      }
      const type = response.headers.get('content-type') ?? '';
      if (!type.startsWith('text/event-stream')) {
        await response.body?.cancel();
        throw new Refusal('not_implemented', 'the remote has no event stream', response.status, '');
      }
      const line = createSilenceDetector();
      const messages = readSse(response.body as AsyncIterable<Uint8Array>, line.moved);
      for await (const message of withPauses(messages, pollMs, () => line.silentMs() > idleMs)) {
        if (message === 'quiet') {
          yield { kind: 'quiet' };
          continue;
        }
        const event = toEvent(parsed(message.data), message.id);
        if (!event) continue;
        delivered = true;
        refusals = 0;
        for await (const next of inOrder(event, both)) yield { kind: 'event', event: next };
      }
    } finally {
      gone.abort();
    }
  }

  async function* polled(signal: AbortSignal): AsyncGenerator<Sign> {
    for await (const event of after(cursor, signal)) {
      for await (const next of inOrder(event, signal)) yield { kind: 'event', event: next };
      delivered = true;
    }
  }

  async function* attempt(signal: AbortSignal): AsyncGenerator<Sign> {
    delivered = false;
    try {
      yield* streaming ? streamed(signal) : polled(signal);
      yield { kind: 'quiet' };
      wait = delivered ? FIRST_WAIT_MS : Math.min(wait * 2, pollMs);
      await pause(streaming ? wait : pollMs, signal);
    } catch (cause) {
      if (signal.aborted) return;
      if (streaming && cause instanceof Refusal && (!isPassing(cause) || ++refusals >= STREAM_TRIES)) {
        streaming = false;
        return;
      }
      yield { kind: 'unreachable', cause };
      wait = delivered ? FIRST_WAIT_MS : Math.min(wait * 2, LONGEST_WAIT_MS);
      await pause(wait, signal);
    }
  }

  return {
    get missing() {
      return missing;
    },
    async *signs(signal) {
      while (!signal.aborted) yield* attempt(signal);
    },
    async *rest() {
      for await (const event of after(cursor)) yield* inOrder(event);
    },
  };
}

/** Undefined when it is not an event. The number may also be the frame's id, and the value may be beside its envelope. */
export function toEvent(frame: unknown, id?: string): RemoteEvent | undefined {
  const { seq, type, payload } = (frame ?? {}) as { seq?: unknown; type?: unknown; payload?: unknown };
  const number = typeof seq === 'number' ? seq : Number(id ?? Number.NaN);
  if (typeof type !== 'string' || !Number.isSafeInteger(number) || number < 1) return undefined;
  const { value } = (payload ?? {}) as { value?: unknown };
  const content = isObject(value) ? value : isObject(payload) && !('redacted' in payload) ? payload : {};
  return { seq: number, type, value: content };
}

/** Undefined for text that is not JSON or is ambiguous. */
function parsed(text: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    return undefined;
  }
}
