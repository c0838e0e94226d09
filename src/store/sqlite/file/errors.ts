/** Maps SQLite's errors to our faults. The message says what to do about it where something can be done. */
import { Fault } from '../../../model/faults.ts';

/** Errors of the disk or the file, not of the data: the request is not at fault, and trying later may help. */
const ENVIRONMENT = ['BUSY', 'LOCKED', 'FULL', 'IOERR', 'CANTOPEN', 'READONLY', 'PERM', 'NOMEM', 'PROTOCOL', 'NOLFS'];
const DAMAGE = ['CORRUPT', 'NOTADB'];

/** The SQLite result code behind an error, without its prefix; undefined when it is not SQLite's. */
export function sqliteCode(thrown: unknown): string | undefined {
  const code = (thrown as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code.slice('SQLITE_'.length) : undefined;
}

function isOneOf(code: string | undefined, words: readonly string[]): boolean {
  return code !== undefined && words.some((word) => code === word || code.startsWith(`${word}_`));
}

export function isBusy(thrown: unknown): boolean {
  return isOneOf(sqliteCode(thrown), ['BUSY', 'LOCKED']);
}

/** Returns a fault when the file or the disk is the problem; undefined when it is the data or the code. */
export function environmentFault(thrown: unknown, path: string): Fault | undefined {
  if (thrown instanceof Fault) return thrown.kind === 'unavailable' ? thrown : undefined;
  const code = sqliteCode(thrown);
  if (isOneOf(code, DAMAGE)) return damaged(path, thrown);
  if (code === 'FULL') {
    return new Fault('unavailable', `no room left to write ${path}: free some disk space`, { cause: thrown });
  }
  if (isOneOf(code, ['BUSY', 'LOCKED'])) {
    return new Fault('unavailable', `another process keeps ${path} locked`, { cause: thrown });
  }
  if (isOneOf(code, ENVIRONMENT)) {
    return new Fault('unavailable', `cannot write ${path} (${code}): check the disk and its permissions`, {
      cause: thrown,
    });
  }
  return undefined;
}

export function damaged(path: string, cause: unknown, what = 'is damaged or not a log'): Fault {
  return new Fault(
    'unavailable',
    `${path} ${what}. Nothing was changed. Keep a copy, then restore a backup or run: sqlite3 ${path} .recover`,
    { cause },
  );
}

/** For reads: an SQLite error becomes a fault, every other error passes unchanged. */
export function readFault(thrown: unknown, path: string): unknown {
  if (sqliteCode(thrown) === undefined) return thrown;
  return environmentFault(thrown, path) ?? new Fault('internal', `reading ${path} failed`, { cause: thrown });
}
