/**
 * Bytes leave in the order in which they were given their place, also those that have to wait for something before they
 * may leave. Those that come one by one leave at once; of a flood the rest of a moment leaves together. Tells when there is
 * no more room, so that whoever feeds it can stop. Knows no protocol.
 */
import type { Writable } from 'node:stream';

export interface OrderedWriter {
  /** Next in order; at once when nothing waits before it. */
  send(bytes: Buffer): void;
  /** Keeps this place until `ready` has resolved; when it is rejected nothing leaves from here. */
  sendAfter(ready: Promise<unknown>, bytes: () => Buffer): void;
  /** Resolves when everything given so far has left, or never will. */
  flushed(): Promise<void>;
  readonly full: boolean;
}

interface Slot {
  bytes: Buffer | undefined;
  waits: boolean;
}

/** So many places may wait before whoever feeds us is held back. */
const MOST_WAITING = 256;
/** So many pieces leave by themselves within so many milliseconds; what comes beyond that is a flood, and goes together. */
const ALONE = 8;
const MOMENT_MS = 1;
const MOST_TOGETHER = 64 * 1024;

export function createOrderedWriter(stream: Writable, room: () => void): OrderedWriter {
  const slots: Slot[] = [];
  let blocked = false;
  let gone = false;

  let moment = 0;
  let alone = 0;
  let together: Buffer[] = [];
  let size = 0;
  let timer: NodeJS.Timeout | undefined;

  const isFull = () => blocked || slots.length >= MOST_WAITING;
  const put = (bytes: Buffer) => {
    if (gone || stream.writableEnded) return;
    if (!stream.write(bytes)) blocked = true;
  };

  function leave(): void {
    clearTimeout(timer);
    timer = undefined;
    if (size === 0) return;
    const [first] = together;
    const bytes = together.length === 1 && first ? first : Buffer.concat(together, size);
    together = [];
    size = 0;
    put(bytes);
  }

  function write(bytes: Buffer): void {
    const now = performance.now();
    if (now - moment > MOMENT_MS) {
      moment = now;
      alone = 0;
    }
    alone += 1;
    if (alone <= ALONE && size === 0) {
      put(bytes);
      return;
    }
    together.push(bytes);
    size += bytes.length;
    if (size >= MOST_TOGETHER) leave();
    else timer ??= setTimeout(leave, MOMENT_MS);
  }
  stream.on('drain', () => {
    blocked = false;
    if (!isFull()) room();
  });
  stream.once('close', () => {
    gone = true;
    blocked = false;
    room();
  });
  stream.on('error', () => {
    gone = true;
    blocked = false;
    room();
  });

  function advance(): void {
    const before = isFull();
    while (slots[0] && !slots[0].waits) {
      const { bytes } = slots.shift() as Slot;
      if (bytes) write(bytes);
    }
    if (before && !isFull()) room();
  }

  return {
    send(bytes) {
      if (slots.length === 0) write(bytes);
      else slots.push({ bytes, waits: false });
    },
    sendAfter(ready, bytes) {
      const slot: Slot = { bytes: undefined, waits: true };
      slots.push(slot);
      const settle = (left: Buffer | undefined) => {
        slot.bytes = left;
        slot.waits = false;
        advance();
      };
      ready.then(
        () => settle(bytes()),
        () => settle(undefined),
      );
    },
    async flushed() {
      while (slots.length > 0 && !gone) await new Promise((resolve) => setTimeout(resolve, 2));
      leave();
      if (gone || stream.writableEnded) return;
      await new Promise<void>((resolve) => {
        stream.write('', () => resolve());
        stream.once('close', () => resolve());
      });
    },
    get full() {
      return isFull();
    },
  };
}
