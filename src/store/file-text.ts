/**
 * Reads files as they are now, so that an approver sees what a write would change. Reads below one directory only, and only short
 * text.
 */
import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import type { ReadFileText } from '../ports/index.ts';

const LONGEST = 1024 * 1024;
/** Opening a pipe that has no writer would block for ever. Some systems have no such flag. */
const NOT_WAITING = constants.O_NONBLOCK ?? 0;

/** Null: there is no such file. Undefined: the file is outside the directory, is not text, or is too long. */
export const readFileText: ReadFileText = async (path, within) => {
  const root = await realpath(within);
  const wanted = resolve(within, path);
  const real = await realpath(wanted).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return null;
    throw cause;
  });
  // The target of a link decides, not the name of the link.
  if (real === null) return below(resolve(within), wanted) ? null : undefined;
  if (!below(root, real)) return undefined;
  const file = await open(real, constants.O_RDONLY | NOT_WAITING);
  try {
    const found = await file.stat();
    if (!found.isFile() || found.size > LONGEST) return undefined;
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.readFile());
  } finally {
    await file.close();
  }
};

function below(root: string, path: string): boolean {
  return path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}
