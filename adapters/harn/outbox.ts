/**
 * Events on their way to one reader. Those that come in one breath leave in one write, and readers of the same stream share
 * the bytes: thousands may follow one task, and each event is rendered once for all of them. Holds a breath, no more.
 */
import type { CoreEvent } from '../../src/index.ts';
import { type SseStream, sseFrame } from '../../src/wire/sse.ts';
import { toWireEvent } from './translate.ts';

export interface Outbox {
  /** False when the reader has to be waited for before there is more. */
  put(event: CoreEvent): boolean;
  /** Resolves true when there is room again, false when there never will be. */
  room(): Promise<boolean>;
  /** What was put leaves now. */
  flush(): void;
}

/** What may gather before it leaves without waiting for the breath to end. */
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
      // Runs once everything that is ready now has been taken.
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

const frames = new WeakMap<CoreEvent, Buffer>();
/** The last breath that began with an event: everyone who keeps up has the same ones. */
const breaths = new WeakMap<CoreEvent, { readonly events: readonly CoreEvent[]; readonly bytes: Buffer }>();

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
  const known = breaths.get(first);
  if (known?.events.length === events.length && known.events.every((event, at) => event === events[at])) {
    return known.bytes;
  }
  const bytes = Buffer.concat(events.map(frameOf));
  breaths.set(first, { events, bytes });
  return bytes;
}
