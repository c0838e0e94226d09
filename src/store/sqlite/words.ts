/** The words that packed events and receipts refer to. */
import { eraOf, firstOfEra } from '../engine/commit/write-set.ts';
import type { Database, StoredWord } from '../engine/database.ts';
import type { Connection } from './file/connection.ts';

export interface WordRows extends Pick<Database, 'words' | 'recentWords'> {
  words(first: number, last: number): StoredWord[];
  recentWords(position: number, most: number): StoredWord[];
  /** Removes the words of eras that ended before this position. */
  prune(position: number): void;
}

type Columns = [number: number, position: number, text: string];

export function createWordRows(connection: Connection): WordRows {
  const select = connection.prepare('SELECT id, position, text FROM words WHERE id BETWEEN ? AND ?');
  const ofReceipts = connection.prepare(
    'SELECT id, position, text FROM words WHERE position = 0 ORDER BY id DESC LIMIT ?',
  );
  const newest = connection.prepare('SELECT id, position, text FROM words ORDER BY id DESC LIMIT ?');
  // Up to the first word that is still in use. The last one stays: numbers go on behind it, and none may be given twice.
  const remove = connection.prepare(
    `DELETE FROM words WHERE position > 0 AND id < coalesce(
       (SELECT id FROM words WHERE position >= ? ORDER BY id LIMIT 1), (SELECT max(id) FROM words))`,
  );
  const wordOf = ([number, position, text]: Columns): StoredWord => ({ number, position, text });
  return {
    words: (first, last) => (select.all([first, last]) as Columns[]).map(wordOf),
    recentWords(from, most) {
      const ofEvents = (newest.all([most]) as Columns[]).filter(([, position]) => position > 0 && position >= from);
      return [...(ofReceipts.all([most]) as Columns[]), ...ofEvents].map(wordOf);
    },
    prune: (position) => remove.run([firstOfEra(eraOf(position))]),
  };
}
