/**
 * A remote task as a sequence of signs: its events, each once and in order, and silences after which the task should be read.
 * Streams where possible, polls otherwise, and resumes from its cursor after any failure.
 */
import { anySignal, Fault, type JsonObject } from '../../../src/index.ts';
import { parseJsonText } from '../../../src/transport/http/body.ts';
import { isPassing, Refusal, type Remote, segment } from '../../../src/transport/outbound/remote.ts';
import { readSse } from '../../../src/transport/sse/read.ts';
import { createSilenceDetector, within, withPauses } from '../../../src/transport/sse/silence.ts';

/** An event as a remote may send it: only the name is certain. */
export interface RemoteEvent {
  readonly id?: string;
  readonly event: string;
  readonly created_at?: string;
  readonly task_id?: string | null;
  readonly payload: JsonObject;
  readonly span_id?: string | null;
  readonly trace_id?: string | null;
  readonly replayed?: boolean;
}

export type Sign =
  | { readonly kind: 'event'; readonly event: RemoteEvent }
  /** No event came for a while, or the stream ended: the task itself has to be read. */
  | { readonly kind: 'quiet' }
  /** It cannot be reached now; it is tried again. */
  | { readonly kind: 'unreachable'; readonly cause: unknown }
  /** Some events are no longer to be had. */
  | { readonly kind: 'lost' };

export interface WatchOptions {
  readonly remote: Remote;
  readonly taskId: string;
  readonly pollMs: number;
  readonly idleMs: number;
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** Refusals of the stream before polling replaces it. */
const STREAM_TRIES = 3;

export interface Watch {
  signs(signal: AbortSignal): AsyncIterable<Sign>;
  /** The events since the last sign, requested once. */
  rest(): AsyncIterable<RemoteEvent>;
}

export function createWatch(options: WatchOptions): Watch {
  const { remote, taskId, pollMs, pause } = options;
  const seen = new Set<string>();
  let cursor: string | undefined;
  let wait = FIRST_WAIT_MS;
  let refusals = 0;
  let delivered = false;
  /** The documented path, and the one that some servers have instead. */
  const paths = [`/v1/tasks/${segment(taskId)}/stream`, `/v1/tasks/${segment(taskId)}/events/stream`];

  /** Undefined when it was seen before: a server may restart its stream from the beginning. */
  function fresh(value: unknown, id?: string): RemoteEvent | undefined {
    const event = toEvent(value, id);
    if (!event) return undefined;
    if (event.id) {
      if (seen.has(event.id)) return undefined;
      seen.add(event.id);
      cursor = event.id;
    }
    return event;
  }

  async function* streamed(signal: AbortSignal): AsyncGenerator<Sign> {
    const gone = new AbortController();
    const both = anySignal([signal, gone.signal]);
    try {
      const headers = cursor ? { 'last-event-id': cursor } : {};
      const opening = remote.open(paths[0]!, { headers, signal: both });
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
        throw new Refusal('upstream_unavailable', 'the remote has no event stream', response.status, '');
      }
      const line = createSilenceDetector();
      const messages = readSse(response.body as AsyncIterable<Uint8Array>, line.moved);
      for await (const message of withPauses(messages, pollMs, () => line.silentMs() > options.idleMs)) {
        if (message === 'quiet') {
          yield { kind: 'quiet' };
          continue;
        }
        delivered = true;
        refusals = 0;
        const value = parsed(message.data);
        if (value === undefined) yield { kind: 'lost' };
        if (message.event === 'error') {
          if (isExpired(value)) yield* lost();
          return;
        }
        const event = fresh(value, message.id);
        if (event) yield { kind: 'event', event };
      }
    } finally {
      gone.abort();
    }
  }

  function* lost(): Generator<Sign> {
    cursor = undefined;
    yield { kind: 'lost' };
  }

  async function* polled(signal?: AbortSignal): AsyncGenerator<Sign> {
    for await (const value of eventsAfter(remote, taskId, cursor, signal)) {
      const event = fresh(value);
      if (event) yield { kind: 'event', event };
    }
    delivered = true;
  }

  async function* signs(signal: AbortSignal): AsyncGenerator<Sign> {
    while (!signal.aborted) yield* attempt(signal);
  }

  async function* attempt(signal: AbortSignal): AsyncGenerator<Sign> {
    const polling = paths.length === 0;
    delivered = false;
    try {
      yield* polling ? polled(signal) : streamed(signal);
      yield { kind: 'quiet' };
      wait = delivered ? FIRST_WAIT_MS : Math.min(wait * 2, pollMs);
      await pause(polling ? pollMs : wait, signal);
    } catch (cause) {
      if (signal.aborted) return;
      if (cause instanceof Refusal && cause.kind === 'cursor_expired') {
        yield* lost();
      } else if (!polling && cause instanceof Refusal && (!isPassing(cause) || ++refusals >= STREAM_TRIES)) {
        paths.shift();
      } else {
        yield { kind: 'unreachable', cause };
        wait = delivered ? FIRST_WAIT_MS : Math.min(wait * 2, LONGEST_WAIT_MS);
        await pause(wait, signal);
      }
    }
  }

  return {
    signs,
    async *rest() {
      for await (const value of eventsAfter(remote, taskId, cursor)) {
        const event = fresh(value);
        if (event) yield event;
      }
    },
  };
}

/** More pages than any task has: an endless list is abandoned, and the log notes that events are missing. */
const MOST_PAGES = 1_000;

/** Events after a cursor, oldest first, page by page, with each of the query names that servers use for the cursor. */
async function* eventsAfter(
  remote: Remote,
  taskId: string,
  after: string | undefined,
  signal?: AbortSignal | undefined,
): AsyncGenerator<unknown> {
  let cursor = after;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const named = cursor ? encodeURIComponent(cursor) : '';
    const query = named ? `&after_event_id=${named}&after=${named}` : '';
    const page = await remote.call<unknown>('GET', `/v1/tasks/${segment(taskId)}/events?limit=200${query}`, { signal });
    const { data, more } = readList(page);
    yield* data;
    const last = (data.at(-1) as { id?: unknown } | undefined)?.id;
    if (!more || typeof last !== 'string' || last === cursor) return;
    cursor = last;
  }
  throw new Fault('upstream_unavailable', 'the list of events of the remote does not end');
}

/** A list in either shape: the page beside the data, or its members in the open. */
export function readList(body: unknown): { readonly data: readonly unknown[]; readonly more: boolean } {
  const { data, page, has_more } = (body ?? {}) as {
    data?: unknown;
    page?: { has_more?: unknown };
    has_more?: unknown;
  };
  if (!Array.isArray(data))
    throw new Fault('upstream_unavailable', 'the remote answered with something that is no list');
  return { data, more: (page?.has_more ?? has_more) === true };
}

function toEvent(value: unknown, id: string | undefined): RemoteEvent | undefined {
  const fields = (value ?? {}) as Partial<RemoteEvent>;
  if (typeof fields.event !== 'string') return undefined;
  const name = typeof fields.id === 'string' && fields.id !== '' ? fields.id : id;
  const payload = typeof fields.payload === 'object' && fields.payload !== null ? fields.payload : {};
  return { ...fields, event: fields.event, payload, ...(name && { id: name }) };
}

function isExpired(value: unknown): boolean {
  return (value as { error?: { code?: string } } | undefined)?.error?.code === 'cursor_expired';
}

/** Undefined for text that is not JSON or is ambiguous. */
function parsed(text: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    return undefined;
  }
}
