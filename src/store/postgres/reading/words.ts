/** The words that packed events and receipts refer to. */
import type { Database, StoredWord } from '../../engine/database.ts';
import type { Connections, ResultRows } from '../connection/connections.ts';
import { filledIn } from '../schema/migrations.ts';

export function createWords(connections: Connections, schema: string): Pick<Database, 'words' | 'recentWords'> {
  const RANGE = filledIn('SELECT id, position, text FROM $S.words WHERE id BETWEEN $1 AND $2', schema);
  const RECENT = filledIn(
    `(SELECT id, position, text FROM $S.words WHERE position = 0 ORDER BY id DESC LIMIT $2)
     UNION ALL SELECT id, position, text FROM (SELECT * FROM $S.words ORDER BY id DESC LIMIT $2) newest
     WHERE position > 0 AND position >= $1`,
    schema,
  );
  const wordsOf = (rows: ResultRows): StoredWord[] =>
    rows.map(([number, position, text]) => ({
      ...{ number: number as number, position: position as number },
      text: text as string,
    }));
  return {
    words: async (first, last) => wordsOf(await connections.query(RANGE, [first, last])),
    recentWords: async (position, most) => wordsOf(await connections.query(RECENT, [position, most])),
  };
}
