/**
 * A remote run as a sequence of signs: its events, each once and in order, and the moments when nothing came and someone
 * should look. Streams when it can, polls when it must, and goes on from its cursor whatever breaks.
 */
import type { JsonObject } from '../../src/index.ts';
import { createLine, within, withPauses } from '../../src/wire/quiet.ts';
import { isPassing, Refusal, type Remote } from '../../src/wire/remote.ts';
import { readSse } from '../../src/wire/sse-read.ts';
import type { Pause } from './client-give.ts';

/** Only the type is certain. */
export interface RemoteEvent {
  readonly seq: number;
  readonly type: string;
  readonly value: JsonObject;
}

export type Sign =
  | { readonly kind: 'event'; readonly event: RemoteEvent }
  /** Nothing came for a while, or the stream ended: look at the run itself. */
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
  /** What came since the last sign, asked for once. */
  rest(): Promise<readonly RemoteEvent[]>;
  /** Numbers that were left out and could not be had. */
  readonly missing: boolean;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** Refusals of the stream before it is given up for polling. */
const STREAM_TRIES = 3;

export function createWatch({ remote, runId, pollMs, idleMs, pause }: WatchOptions): Watch {
  const path = `/v1/runs/${encodeURIComponent(runId)}/events`;
  let cursor = 0;
  let wait = FIRST_WAIT_MS;
  let refusals = 0;
  let streaming = true;
  let delivered = false;
  let missing = false;

  /** In order, each once: what is old is passed over, what is missing in between is asked for. */
  async function* inOrder(event: RemoteEvent, signal?: AbortSignal): AsyncGenerator<RemoteEvent> {
    if (event.seq <= cursor) return;
    if (event.seq > cursor + 1) {
      for (const between of await after(cursor, signal)) {
        if (between.seq <= cursor || between.seq >= event.seq) continue;
        if (between.seq > cursor + 1) missing = true;
        cursor = between.seq;
        yield between;
      }
      if (event.seq > cursor + 1) missing = true;
    }
    cursor = event.seq;
    yield event;
  }

  /** Page by page until one is empty or does not lead on. */
  async function after(from: number, signal?: AbortSignal): Promise<readonly RemoteEvent[]> {
    const all: RemoteEvent[] = [];
    for (let at = from; ; ) {
      const page = await remote.call<JsonObject>('GET', `${path}?cursor=${at}&limit=200`, { signal });
      const events = (Array.isArray(page?.events) ? page.events : []).flatMap((event: unknown) => toEvent(event) ?? []);
      all.push(...events);
      const last = events.at(-1)?.seq ?? at;
      if (events.length === 0 || last <= at) return all;
      at = last;
    }
  }

  async function* streamed(signal: AbortSignal): AsyncGenerator<Sign> {
    const gone = new AbortController();
    const both = AbortSignal.any([signal, gone.signal]);
    try {
      const opening = remote.open(`${path}/stream?cursor=${cursor}`, { signal: both });
      // A server may keep its answer back until it has something to say.
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
      const line = createLine();
      const messages = readSse(response.body as unknown as AsyncIterable<Uint8Array>, line.moved);
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
    for (const event of await after(cursor, signal)) {
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
    async rest() {
      const all: RemoteEvent[] = [];
      for (const event of await after(cursor)) for await (const next of inOrder(event)) all.push(next);
      return all;
    },
  };
}

/** Undefined for what is no event. A number may also stand in the frame's id, a value beside its envelope. */
export function toEvent(given: unknown, id?: string): RemoteEvent | undefined {
  const { seq, type, payload } = (given ?? {}) as { seq?: unknown; type?: unknown; payload?: unknown };
  const number = typeof seq === 'number' ? seq : Number(id ?? Number.NaN);
  if (typeof type !== 'string' || !Number.isSafeInteger(number) || number < 1) return undefined;
  const { value } = (payload ?? {}) as { value?: unknown };
  const told = isMembers(value) ? value : isMembers(payload) && !('redacted' in payload) ? payload : {};
  return { seq: number, type, value: told };
}

function isMembers(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
