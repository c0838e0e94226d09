/** Streams one client follows: each goes on from its last event after every restart, until it has said all there is to say. */
import { Broken } from '../broken.ts';
import { type Door, type Frame, Gone } from './door.ts';
import type { Ledger, Received } from './ledger.ts';

export interface Listening {
  /** A stream nobody follows yet. */
  begin(door: Door, wanted: Parameters<Ledger['listen']>[0]): void;
  /** Those that are not over, at a new door. */
  goOn(door: Door): void;
  /** Streams that are not over. */
  count(): number;
  /** After a kill: what the gateway had sent before it died is on its way and counts. */
  over(): Promise<void>;
}

const LATE_MS = 2_000;

export function createListening(ledger: Ledger): Listening {
  const streams: Received[] = [];
  let following: Promise<void>[] = [];
  let hangUp = new AbortController();

  function follow(door: Door, received: Received): void {
    const over = untilGone(door, received, hangUp.signal);
    over.catch(() => {}); // looked at when the client stops
    following.push(over);
  }

  return {
    begin(door, wanted) {
      const received = ledger.listen(wanted);
      streams.push(received);
      follow(door, received);
    },
    goOn(door) {
      hangUp = new AbortController();
      following = [];
      for (const received of streams) if (!received.done) follow(door, received);
    },
    count: () => streams.filter(({ done }) => !done).length,
    async over() {
      const late = setTimeout(() => hangUp.abort(), LATE_MS);
      await Promise.all(following).finally(() => clearTimeout(late));
    },
  };
}

/** Until the gateway dies. A stream that ends by itself has said all there is to say. */
async function untilGone(door: Door, received: Received, signal: AbortSignal): Promise<void> {
  try {
    await door.follow(received.path, received.frames.at(-1)?.id, (frame) => hear(received, frame), signal);
    if (!signal.aborted) received.done = true;
  } catch (cause) {
    if (!(cause instanceof Gone)) throw cause;
  }
}

function hear(received: Received, frame: Frame): void {
  if (frame.event === 'error') throw new Broken('a stream goes on', `${received.path} was broken off`, frame);
  received.frames.push(frame);
}
