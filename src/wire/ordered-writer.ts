/**
 * Bytes leave in the order in which they were given their place, also those that have to wait for something before they
 * may leave. Tells when there is no more room, so that whoever feeds it can stop. Knows no protocol.
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

export function createOrderedWriter(stream: Writable, room: () => void): OrderedWriter {
  const slots: Slot[] = [];
  let blocked = false;
  let gone = false;

  const isFull = () => blocked || slots.length >= MOST_WAITING;
  const write = (bytes: Buffer) => {
    if (gone || stream.writableEnded) return;
    if (!stream.write(bytes)) blocked = true;
  };
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
