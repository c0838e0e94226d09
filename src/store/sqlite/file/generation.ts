/**
 * How many transactions the file has seen and how long its write-ahead log is, from the numbers SQLite keeps for its connections
 * in the first bytes of the `-shm` file (https://sqlite.org/walformat.html: iChange, mxFrame). Asking SQLite costs a read
 * transaction; this is one small read.
 */
import { closeSync, openSync, readSync, type Stats, statSync } from 'node:fs';

/** Offsets of the two numbers, and the length of each. */
const CHANGES = 8;
const FRAMES = 16;
const BYTES = 4;

export interface Generation {
  /** For another thread of this process. */
  readonly fd: number;
  /** Grows by one with every transaction that changed something, from any connection. Restarts when the file is recovered. */
  look(): number;
  /** Pages in the write-ahead log, including those already copied into the file. */
  frames(): number;
  /** Called when the connection is closed. */
  release(): void;
}

interface Held {
  readonly fd: number;
  readonly file: Stats;
}

/**
 * One descriptor per file for the whole process, kept open while the file exists: closing any descriptor of a file drops the
 * locks that all connections of this process hold on it.
 */
const held = new Map<string, Held>();

/** For a file in WAL mode that a connection has open. */
export function openGeneration(path: string): Generation {
  const beside = `${path}-shm`;
  const { fd } = hold(beside);
  return {
    ...generationAt(fd),
    release() {
      const known = held.get(beside);
      if (known && !isSame(known.file, statSync(beside, { throwIfNoEntry: false }))) letGo(beside, known);
    },
  };
}

/** Reads through a descriptor that another thread keeps open. */
export function generationAt(fd: number): Generation {
  const number = new Uint32Array(1);
  const bytes = new Uint8Array(number.buffer);
  const read = (offset: number): number => {
    readSync(fd, bytes, 0, BYTES, offset);
    return number[0]!;
  };
  return {
    fd,
    look: () => read(CHANGES),
    frames: () => read(FRAMES),
    release() {},
  };
}

function hold(path: string): Held {
  const known = held.get(path);
  const file = statSync(path);
  if (known && isSame(known.file, file)) return known;
  // The file behind the old descriptor has been removed, and all locks on it with it.
  if (known) letGo(path, known);
  const fresh = { fd: openSync(path, 'r'), file };
  held.set(path, fresh);
  return fresh;
}

function letGo(path: string, { fd }: Held): void {
  held.delete(path);
  closeSync(fd);
}

function isSame(a: Stats, b: Stats | undefined): boolean {
  return a.ino === b?.ino && a.dev === b.dev;
}
