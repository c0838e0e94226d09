/**
 * Reads a text file that a person wrote: a configuration or rules. Refuses one that is longer than any person's file, before it
 * is read: parsing it would hold up every door.
 */
import { open } from 'node:fs/promises';
import { Fault } from '../model/faults.ts';

/** What the slowest parser here takes well under 100 ms for. */
export const MAX_TEXT_CHARS = 256 * 1_024;

export async function readText(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const found = await file.stat();
    // A device or a pipe has no end that could be waited for.
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
