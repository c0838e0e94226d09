/** Events as older versions stored them, as JSON: for tests that edit the text of an event as a person with the file would. */
import { existsSync } from 'node:fs';
import Database from 'libsql';
import type { StoredWord } from '../../../src/store/engine/database.ts';
import { createWordReader } from '../../../src/store/engine/packing/word-reader.ts';

export function spellOut(path: string): void {
  if (!existsSync(path)) throw new Error(`there is no ${path}`);
  const db = new Database(path);
  try {
    const words = db.prepare('SELECT id AS number, position, text FROM words WHERE id BETWEEN ? AND ?');
    const { unpack } = createWordReader((first, last) => words.all(first, last) as StoredWord[]);
    const update = db.prepare('UPDATE events SET body = ? WHERE position = ?');
    const stored = db.prepare('SELECT position, body FROM events').raw().all() as [number, string][];
    for (const [position, body] of stored) update.run(unpack(body), position);
  } finally {
    db.close();
  }
}
