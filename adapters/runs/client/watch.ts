/** A remote run as a sequence of signs: its events, each once and in order, and silences after which the run should be read. */
import { Fault, isObject, type JsonObject } from '../../../src/index.ts';
import { type FollowOptions, followRemote, type Sign } from '../../../src/transport/outbound/follow-remote.ts';
import { segment } from '../../../src/transport/outbound/remote.ts';
import type { SseMessage } from '../../../src/transport/sse/read.ts';

/** Only the type is certain. */
export interface RemoteEvent {
  readonly seq: number;
  readonly type: string;
  readonly value: JsonObject;
}

interface WatchOptions extends FollowOptions {
  readonly runId: string;
}

interface Watch {
  signs(signal: AbortSignal): AsyncIterable<Sign<RemoteEvent>>;
  /** The events since the last sign, requested once. */
  rest(): AsyncIterable<RemoteEvent>;
  /** Events are missing that the remote could not deliver. */
  readonly missing: boolean;
}

/** More pages than any run has: an endless list is abandoned, and the log notes that events are missing. */
const MOST_PAGES = 1_000;

export function createWatch(options: WatchOptions): Watch {
  const { remote, runId } = options;
  const path = `/v1/runs/${segment(runId)}/events`;
  let cursor = 0;
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

  async function* rest(signal?: AbortSignal): AsyncGenerator<RemoteEvent> {
    for await (const event of after(cursor, signal)) yield* inOrder(event, signal);
  }

  async function* received(value: unknown, { id }: SseMessage, signal: AbortSignal): AsyncGenerator<Sign<RemoteEvent>> {
    const event = toEvent(value, id);
    if (!event) return;
    for await (const next of inOrder(event, signal)) yield { kind: 'event', event: next };
  }

  const streams = [() => ({ path: `${path}/stream?cursor=${cursor}` })];
  return {
    get missing() {
      return missing;
    },
    signs: (signal) => followRemote(options, { streams, received, rest }, signal),
    rest,
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
