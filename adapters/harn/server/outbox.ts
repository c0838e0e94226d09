/**
 * Events on their way to one follower. Events of one tick are sent in one write, and followers of the same stream share the
 * bytes: thousands may follow one task, and each event is rendered once for all of them. Holds the events of one tick only.
 */
import type { CoreEvent } from '../../../src/index.ts';
import { type SseStream, sseFrame } from '../../../src/transport/sse/write.ts';
import { toWireEvent } from '../translate.ts';

interface Outbox {
  /** False when the follower has to catch up before there is more. */
  put(event: CoreEvent): boolean;
  /** Resolves true when there is room again, false when the connection has closed. */
  room(): Promise<boolean>;
  /** Sends the events that were put. */
  flush(): void;
}

/** The size at which events are sent before the tick ends. */
const MOST_BYTES = 64 * 1024;

export function createOutbox(sse: SseStream, sent: (events: readonly CoreEvent[]) => void): Outbox {
  let held: CoreEvent[] = [];
  let bytes = 0;
  let roomy = true;

  function flush(): void {
    if (held.length === 0) return;
    const events = held;
    held = [];
    bytes = 0;
    roomy = sse.write(bytesOf(events)) && roomy;
    sent(events);
  }

  return {
    put(event) {
      // Runs once all events that are ready now have been put.
      if (held.length === 0) process.nextTick(flush);
      held.push(event);
      bytes += frameOf(event).length;
      if (bytes >= MOST_BYTES) flush();
      return roomy;
    },
    async room() {
      flush();
      roomy = await sse.room();
      return roomy;
    },
    flush,
  };
}

/** A cache, collected with the event: all followers of an event send the same bytes. */
const frames = new WeakMap<CoreEvent, Buffer>();
/** The last write that began with an event: all followers that keep up send the same one. */
const writes = new WeakMap<CoreEvent, { readonly events: readonly CoreEvent[]; readonly bytes: Buffer }>();

function frameOf(event: CoreEvent): Buffer {
  const known = frames.get(event);
  if (known) return known;
  const text = sseFrame({ id: event.id, event: event.event, data: JSON.stringify(toWireEvent(event)) });
  const frame = Buffer.from(text);
  frames.set(event, frame);
  return frame;
}

function bytesOf(events: readonly CoreEvent[]): Buffer {
  const [first] = events as [CoreEvent];
  if (events.length === 1) return frameOf(first);
  const known = writes.get(first);
  if (known?.events.length === events.length && known.events.every((event, at) => event === events[at])) {
    return known.bytes;
  }
  const bytes = Buffer.concat(events.map(frameOf));
  writes.set(first, { events, bytes });
  return bytes;
}
