/**
 * Bytes by their SHA-256. Stored in parts, so that a range read costs only the parts it covers and a big file does not hold the
 * write lock; a blob exists once its last part and its header are written, so an interrupted put leaves nothing that can be read.
 */
import { createHash, hash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { Fault } from '../../model/faults.ts';
import type { BlobRows } from './database.ts';
import { andThen, type Wait } from './wait.ts';
import type { Writer } from './writer.ts';

export interface Blobs {
  put(bytes: Uint8Array): Promise<string>;
  /** `end` is exclusive; a range past the end is cut short. */
  get(sha256: string, range?: { start: number; end: number }): Promise<Uint8Array | undefined>;
  has(sha256: string): Promise<boolean>;
}

const PART = 256 * 1024;
const PARTS_PER_TURN = 4;

export function createBlobs(rows: BlobRows, { transact }: Pick<Writer, 'transact'>): Blobs {
  async function partOf(sha256: string, part: number, expected: number): Promise<Uint8Array> {
    const found = await rows.part(sha256, part);
    if (!found || found.bytes.byteLength !== expected || hash('sha256', found.bytes) !== found.digest) {
      throw new Fault(
        'internal',
        `the stored bytes of ${sha256} are damaged in part ${part}: restore the log from a backup`,
      );
    }
    return found.bytes;
  }

  return {
    has: async (sha256) => (await rows.size(sha256)) !== undefined,
    async put(content) {
      // The caller may reuse its buffer while we are still writing.
      const bytes = content.byteLength > PART * PARTS_PER_TURN ? content.slice() : content;
      const sha256 = hash('sha256', bytes);
      const parts = Math.ceil(bytes.byteLength / PART);
      const write = (from: number, to: number): Wait<void> => {
        if (from >= to) return;
        const slice = bytes.subarray(from * PART, (from + 1) * PART);
        const written = rows.putPart(sha256, from, { digest: hash('sha256', slice), bytes: slice });
        return andThen(written, () => write(from + 1, to));
      };
      if ((await rows.size(sha256)) !== undefined) return sha256;
      let from = 0;
      for (; parts - from > PARTS_PER_TURN; from += PARTS_PER_TURN) {
        await transact(() => write(from, from + PARTS_PER_TURN));
        await turn();
      }
      await transact(() =>
        // Parts written so far belong to no blob yet, so upkeep may have removed them meanwhile.
        andThen(rows.parts(sha256), (there) =>
          andThen(write(there < from ? 0 : from, parts), () => rows.finish(sha256, bytes.byteLength)),
        ),
      );
      return sha256;
    },
    async get(sha256, range) {
      const size = await rows.size(sha256);
      if (size === undefined) return undefined;
      const start = range?.start ?? 0;
      const end = Math.min(size, range?.end ?? size);
      if (start < 0 || !Number.isInteger(start) || !Number.isInteger(end) || (range && range.end < start)) {
        throw new Fault('invalid_request', 'a range starts at 0 or later and ends after its start', { param: 'range' });
      }
      const out = new Uint8Array(Math.max(0, end - start));
      const whole = out.byteLength === size ? createHash('sha256') : undefined;
      for (let part = Math.floor(start / PART), read = 0; part * PART < end; part++) {
        const bytes = await partOf(sha256, part, Math.min(PART, size - part * PART));
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
  };
}
