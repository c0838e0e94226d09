/**
 * Bytes by their SHA-256. Stored in parts, so that a range read costs only the parts it covers and a big file does not hold the
 * write lock; a blob exists once its last part and its header are written, so an interrupted put leaves nothing that can be read.
 */
import { createHash, hash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { Fault } from '../../model/faults.ts';
import type { Connection } from './connection.ts';

export interface Blobs {
  put(bytes: Uint8Array): Promise<string>;
  /** `end` is exclusive; a range past the end is cut short. */
  get(sha256: string, range?: { start: number; end: number }): Promise<Uint8Array | undefined>;
  has(sha256: string): boolean;
  /** Removes parts that never became a blob. */
  sweep(): void;
}

const PART = 256 * 1024;
const PARTS_PER_TURN = 4;

export function createBlobs(connection: Connection, transact: (work: () => void) => Promise<void>): Blobs {
  const selectSize = connection.prepare('SELECT size FROM blobs WHERE sha256 = ?');
  const selectPart = connection.prepare('SELECT digest, bytes FROM blob_parts WHERE sha256 = ? AND part = ?');
  const insertPart = connection.prepare(
    'INSERT OR REPLACE INTO blob_parts (sha256, part, digest, bytes) VALUES (?, ?, ?, ?)',
  );
  const insertBlob = connection.prepare('INSERT OR IGNORE INTO blobs (sha256, size) VALUES (?, ?)');
  const countParts = connection.prepare('SELECT count(*) FROM blob_parts WHERE sha256 = ?');
  const orphans = connection.prepare('DELETE FROM blob_parts WHERE sha256 NOT IN (SELECT sha256 FROM blobs)');

  const sizeOf = (sha256: string): number | undefined => (selectSize.get([sha256]) as [number] | undefined)?.[0];

  function partOf(sha256: string, part: number, expected: number): Buffer {
    const found = selectPart.get([sha256, part]) as [string, Buffer] | undefined;
    if (!found || found[1].byteLength !== expected || hash('sha256', found[1]) !== found[0]) {
      throw new Fault(
        'internal',
        `the stored bytes of ${sha256} are damaged in part ${part}: restore the log from a backup`,
      );
    }
    return found[1];
  }

  return {
    has: (sha256) => sizeOf(sha256) !== undefined,
    async put(content) {
      // The caller may reuse its buffer while we are still writing.
      const bytes = content.byteLength > PART * PARTS_PER_TURN ? content.slice() : content;
      const sha256 = hash('sha256', bytes);
      const parts = Math.ceil(bytes.byteLength / PART);
      const write = (from: number, to: number): void => {
        for (let part = from; part < to; part++) {
          const slice = bytes.subarray(part * PART, (part + 1) * PART);
          insertPart.run([sha256, part, hash('sha256', slice), slice]);
        }
      };
      if (sizeOf(sha256) !== undefined) return sha256;
      let from = 0;
      for (; parts - from > PARTS_PER_TURN; from += PARTS_PER_TURN) {
        await transact(() => write(from, from + PARTS_PER_TURN));
      }
      await transact(() => {
        // Parts written so far belong to no blob yet, so a sweep may have removed them meanwhile.
        if ((countParts.get([sha256]) as [number])[0] < from) write(0, from);
        write(from, parts);
        insertBlob.run([sha256, bytes.byteLength]);
      });
      return sha256;
    },
    async get(sha256, range) {
      const size = sizeOf(sha256);
      if (size === undefined) return undefined;
      const start = range?.start ?? 0;
      const end = Math.min(size, range?.end ?? size);
      if (start < 0 || !Number.isInteger(start) || !Number.isInteger(end) || (range && range.end < start)) {
        throw new Fault('invalid_request', 'a range starts at 0 or later and ends after its start', { param: 'range' });
      }
      const out = new Uint8Array(Math.max(0, end - start));
      const whole = out.byteLength === size ? createHash('sha256') : undefined;
      for (let part = Math.floor(start / PART), read = 0; part * PART < end; part++) {
        const bytes = partOf(sha256, part, Math.min(PART, size - part * PART));
        whole?.update(bytes);
        const from = Math.max(start, part * PART);
        out.set(bytes.subarray(from - part * PART, end - part * PART), from - start);
        if (++read % PARTS_PER_TURN === 0) await turn();
      }
      if (whole && whole.digest('hex') !== sha256) {
        throw new Fault('internal', `the stored bytes of ${sha256} are not those bytes: restore the log from a backup`);
      }
      return out;
    },
    sweep() {
      orphans.run();
    },
  };
}
