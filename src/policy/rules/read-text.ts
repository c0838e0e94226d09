/**
 * Reads a text file written by hand: a configuration or rules. Refuses a file that is too long for that, before reading it:
 * parsing it would block every door.
 */
import { open } from 'node:fs/promises';
import { Fault } from '../../model/faults.ts';

/** The slowest parser here takes well under 100 ms for this length. */
export const MAX_TEXT_CHARS = 256 * 1_024;

export async function readText(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const found = await file.stat();
    // A device or a pipe may never end.
    if (!found.isFile()) throw Object.assign(new Error(`${path} is not a file`), { code: 'EISDIR' });
    if (found.size > MAX_TEXT_CHARS) throw tooLong(path, found.size);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

function tooLong(path: string, size: number): Fault {
  return new Fault('invalid_request', `${path} has ${size} bytes; the limit is ${MAX_TEXT_CHARS}`);
}
