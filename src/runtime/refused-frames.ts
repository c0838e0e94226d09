/**
 * Refused frames that belong to no call, as events. A peer that sends thousands of them fills neither the log nor the
 * memory: the first few of a minute get an event each, later ones are counted and share one event per peer.
 */
import type { EventDraft } from '../model/events.ts';
import type { Closable, RefusedFrame } from '../ports/index.ts';

export interface RefusedFramesOptions {
  now(): number;
  write(event: EventDraft): void;
}

interface RefusedFrames extends Closable {
  note(frame: RefusedFrame): void;
}

const ALONE_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
const MOST_PEERS = 256;
const LONGEST = 200;

interface Unsaid {
  readonly last: RefusedFrame;
  readonly count: number;
}

export function createRefusedFrames({ now, write }: RefusedFramesOptions): RefusedFrames {
  const unsaid = new Map<string, Unsaid>();
  let since = now();
  let written = 0;
  let timer: NodeJS.Timeout | undefined;

  function say({ protocol, from, method, reason }: RefusedFrame, count: number): void {
    const payload = { protocol, method: method.slice(0, LONGEST), reason: reason.slice(0, LONGEST), count };
    write({ event: 'vendor.tollbridge.frame_refused', resource: { object: 'connector', id: from }, payload });
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const { last, count } of unsaid.values()) say(last, count);
    unsaid.clear();
  }

  return {
    note(frame) {
      if (now() - since > MINUTE_MS) {
        since = now();
        written = 0;
      }
      written += 1;
      if (written <= ALONE_PER_MINUTE) return say(frame, 1);
      const key = `${frame.protocol} ${frame.from}`;
      const known = unsaid.get(key);
      if (known || unsaid.size < MOST_PEERS) unsaid.set(key, { last: frame, count: (known?.count ?? 0) + 1 });
      timer ??= setTimeout(flush, MINUTE_MS).unref();
    },
    async close() {
      flush();
    },
  };
}
