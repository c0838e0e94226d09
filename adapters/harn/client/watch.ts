/** A remote task as a sequence of signs: its events, each once and in order, and silences after which the task should be read. */
import { Fault, type JsonObject } from '../../../src/index.ts';
import { type FollowOptions, followRemote, type Sign } from '../../../src/transport/outbound/follow-remote.ts';
import { type Remote, segment } from '../../../src/transport/outbound/remote.ts';
import type { SseMessage } from '../../../src/transport/sse/read.ts';

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

interface WatchOptions extends FollowOptions {
  readonly taskId: string;
}

interface Watch {
  signs(signal: AbortSignal): AsyncIterable<Sign<RemoteEvent>>;
  /** The events since the last sign, requested once. */
  rest(): AsyncIterable<RemoteEvent>;
}

export function createWatch(options: WatchOptions): Watch {
  const { remote, taskId } = options;
  const seen = new Set<string>();
  let cursor: string | undefined;

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

  async function* rest(signal?: AbortSignal): AsyncGenerator<RemoteEvent> {
    for await (const value of eventsAfter(remote, taskId, cursor, signal)) {
      const event = fresh(value);
      if (event) yield event;
    }
  }

  async function* received(value: unknown, message: SseMessage): AsyncGenerator<Sign<RemoteEvent> | 'end'> {
    if (value === undefined) yield { kind: 'lost' };
    if (message.event === 'error') {
      if (isExpired(value)) {
        expired();
        yield { kind: 'lost' };
      }
      yield 'end';
      return;
    }
    const event = fresh(value, message.id);
    if (event) yield { kind: 'event', event };
  }

  function expired(): void {
    cursor = undefined;
  }

  const streamAt = (path: string) => () => ({ path, headers: cursor ? { 'last-event-id': cursor } : {} });
  /** The documented path, and the one that some servers have instead. */
  const streams = ['stream', 'events/stream'].map((end) => streamAt(`/v1/tasks/${segment(taskId)}/${end}`));
  return { signs: (signal) => followRemote(options, { streams, received, rest, expired }, signal), rest };
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
