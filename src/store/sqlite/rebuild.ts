/**
 * Rebuilds the projections from the log alone. The last events and the exchange of rows are one transaction, so no reader sees
 * half of it.
 */
import type { Projector } from '../../ports/index.ts';
import type { Connection } from './connection.ts';
import { withFresh } from './fresh.ts';
import type { Log } from './log.ts';
import { columnsOf, filterInBody, ROW_TABLES } from './tables.ts';
import type { Writer } from './writing/writer.ts';

const EXCHANGE = ROW_TABLES.map((rowTable) => {
  const values = [...rowTable.key, 'created_at', ...rowTable.filters.map(filterInBody), 'body'];
  return `
    DELETE FROM ${rowTable.table};
    INSERT INTO ${rowTable.table} (${columnsOf(rowTable).join(', ')})
    SELECT ${values.join(', ')} FROM temp.fresh WHERE ${rowTable.holds} ORDER BY rowid;
  `;
}).join('');

export function createRebuild(connection: Connection, log: Log, projector: Projector, writer: Writer) {
  return async function rebuild(): Promise<void> {
    await withFresh({ connection, log, projector }, ({ advance }) =>
      writer.transact(() => {
        while (advance() > 0);
        connection.exec(EXCHANGE);
      }),
    );
  };
}
