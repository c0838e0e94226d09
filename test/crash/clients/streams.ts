/** Streams one client follows: each goes on from its last event after every restart, until it has said all there is to say. */
import { Broken } from '../broken.ts';
import { type Door, type Frame, Gone } from './door.ts';
import type { Heard, Ledger } from './ledger.ts';

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
  const streams: Heard[] = [];
  let following: Promise<void>[] = [];
  let hangUp = new AbortController();

  function follow(door: Door, heard: Heard): void {
    const over = untilGone(door, heard, hangUp.signal);
    over.catch(() => {}); // looked at when the client stops
    following.push(over);
  }

  return {
    begin(door, wanted) {
      const heard = ledger.listen(wanted);
      streams.push(heard);
      follow(door, heard);
    },
    goOn(door) {
      hangUp = new AbortController();
      following = [];
      for (const heard of streams) if (!heard.done) follow(door, heard);
    },
    count: () => streams.filter(({ done }) => !done).length,
    async over() {
      const late = setTimeout(() => hangUp.abort(), LATE_MS);
      await Promise.all(following).finally(() => clearTimeout(late));
    },
  };
}

/** Until the gateway dies. A stream that ends by itself has said all there is to say. */
async function untilGone(door: Door, heard: Heard, signal: AbortSignal): Promise<void> {
  try {
    await door.follow(heard.path, heard.frames.at(-1)?.id, (frame) => hear(heard, frame), signal);
    if (!signal.aborted) heard.done = true;
  } catch (cause) {
    if (!(cause instanceof Gone)) throw cause;
  }
}

function hear(heard: Heard, frame: Frame): void {
  if (frame.event === 'error') throw new Broken('a stream goes on', `${heard.path} was broken off`, frame);
  heard.frames.push(frame);
}
