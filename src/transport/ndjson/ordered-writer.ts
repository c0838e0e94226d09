/**
 * Bytes are written in the order in which they were queued, also those that have to wait for something first. Single
 * pieces are written at once; in a burst the rest of a millisecond is written together. Reports when its queue is full,
 * so that its source can pause. Knows no protocol.
 */
import type { Writable } from 'node:stream';

export interface OrderedWriter {
  /** Next in order; written at once when nothing is queued before it. */
  send(bytes: Buffer): void;
  /** Keeps its position in the queue until `ready` has resolved; when that rejects nothing is written for it. */
  sendAfter(ready: Promise<unknown>, bytes: () => Buffer): void;
  /** Resolves when everything queued so far was written, or never will be. */
  flushed(): Promise<void>;
  readonly full: boolean;
}

interface Slot {
  bytes: Buffer | undefined;
  waits: boolean;
}

/** This many entries may be queued before the source has to pause. */
const MOST_WAITING = 256;
/** This many pieces per millisecond are written singly; more than that is a burst, and is written together. */
const ALONE = 8;
const MOMENT_MS = 1;
const MOST_BATCHED = 64 * 1024;

export function createOrderedWriter(stream: Writable, room: () => void): OrderedWriter {
  const slots: Slot[] = [];
  let blocked = false;
  let gone = false;
  /** Called when nothing is queued any more, or nothing can be written. */
  let idle: (() => void)[] = [];

  let moment = 0;
  let alone = 0;
  let batch: Buffer[] = [];
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
    const [first] = batch;
    const bytes = batch.length === 1 && first ? first : Buffer.concat(batch, size);
    batch = [];
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
    batch.push(bytes);
    size += bytes.length;
    if (size >= MOST_BATCHED) leave();
    else timer ??= setTimeout(leave, MOMENT_MS);
  }
  stream.on('drain', () => {
    blocked = false;
    if (!isFull()) room();
  });
  const leaveOff = () => {
    gone = true;
    blocked = false;
    settle();
    room();
  };
  stream.once('close', leaveOff);
  stream.on('error', leaveOff);

  function settle(): void {
    const waiting = idle;
    idle = [];
    for (const resolve of waiting) resolve();
  }

  function advance(): void {
    const before = isFull();
    while (slots[0] && !slots[0].waits) {
      const { bytes } = slots.shift() as Slot;
      if (bytes) write(bytes);
    }
    if (slots.length === 0) settle();
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
      if (slots.length > 0 && !gone) await new Promise<void>((resolve) => idle.push(resolve));
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
