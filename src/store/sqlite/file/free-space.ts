/**
 * How much can still be written: the smaller of the disk's free space and the rest of the log's permitted size. Measured every 50
 * ms at most, because it is asked before every act.
 */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Connection } from './connection.ts';

const LOOK_MS = 50;

export function createFreeRoom(connection: Connection, maxBytes: number | undefined): () => number {
  const folder = dirname(connection.path);
  let known = Number.POSITIVE_INFINITY;
  let looked = Number.NEGATIVE_INFINITY;

  function onDisk(): number {
    try {
      const { bavail, bsize } = statfsSync(folder);
      return bavail * bsize;
    } catch {
      // A disk that does not report its free space is not known to be full; a write that fails is refused by itself.
      return Number.POSITIVE_INFINITY;
    }
  }

  function inFile(): number {
    if (maxBytes === undefined) return Number.POSITIVE_INFINITY;
    const [pages, free, size] = ['page_count', 'freelist_count', 'page_size'].map((name) =>
      Number(connection.pragma(name)),
    ) as [number, number, number];
    return Math.max(0, maxBytes - (pages - free) * size);
  }

  return () => {
    const now = performance.now();
    if (now - looked < LOOK_MS) return known;
    looked = now;
    known = Math.min(onDisk(), inFile());
    return known;
  };
}
