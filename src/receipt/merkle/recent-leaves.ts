/**
 * Leaves of events that this process has just committed. A task's account hashes each of its events for the receipt; the tree
 * over the log takes the hash from here, so that the event is neither read back nor hashed again. Kept outside the heap: tracing
 * ten thousand short strings would cost the garbage collector more than they save.
 */
import { type CoreEvent, position } from '../../model/events.ts';

export interface RecentLeaves {
  /** Only for events that are on disk: a position that was never written goes to another event later. */
  note(event: CoreEvent, leaf: string): void;
  /** 32 bytes in a binary string; undefined when the event has to be read. */
  at(position: number): string | undefined;
  /** The first position from here on whose leaf is known. */
  nextFrom(position: number): number | undefined;
  /** Leaves before this position are no longer needed. */
  forgetBefore(position: number): void;
}

const BYTES = 32;
/** Leaves are allocated and freed in chunks of this many. */
const CHUNK = 1_024;
/** 4 MiB. Events beyond that are read from the log instead. */
const MOST_CHUNKS = 128;

interface Chunk {
  readonly leaves: Buffer;
  readonly known: Uint8Array;
}

export function createRecentLeaves(): RecentLeaves {
  const chunks = new Map<number, Chunk>();
  let first = 0;

  function chunkOf(number: number): Chunk {
    let chunk = chunks.get(number);
    if (!chunk) {
      chunk = { leaves: Buffer.alloc(CHUNK * BYTES), known: new Uint8Array(CHUNK) };
      chunks.set(number, chunk);
      if (chunks.size > MOST_CHUNKS) chunks.delete(chunks.keys().next().value as number);
    }
    return chunk;
  }

  return {
    note(event, leaf) {
      const at = position(event.id);
      if (at === undefined || at < first) return;
      const { leaves, known } = chunkOf(Math.floor(at / CHUNK));
      leaves.write(leaf, (at % CHUNK) * BYTES, BYTES, 'latin1');
      known[at % CHUNK] = 1;
    },
    at(position) {
      const chunk = chunks.get(Math.floor(position / CHUNK));
      const start = (position % CHUNK) * BYTES;
      return chunk?.known[position % CHUNK] ? chunk.leaves.toString('latin1', start, start + BYTES) : undefined;
    },
    nextFrom(position) {
      const later = [...chunks.keys()].filter((number) => (number + 1) * CHUNK > position).sort((a, b) => a - b);
      for (const number of later) {
        const begin = Math.max(0, position - number * CHUNK);
        const found = chunks.get(number)!.known.indexOf(1, begin);
        if (found >= 0) return number * CHUNK + found;
      }
      return undefined;
    },
    forgetBefore(position) {
      first = position;
      for (const number of chunks.keys()) if ((number + 1) * CHUNK <= position) chunks.delete(number);
    },
  };
}
