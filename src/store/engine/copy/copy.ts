/** Copies the rows of a log and reads them back: every table of the copy has to hold exactly what was read. */
import { createHash, type Hash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { Fault } from '../../../model/faults.ts';
import {
  type Cells,
  CONTENT,
  type Content,
  type ContentTable,
  keyOf,
  type NewContent,
  type TableName,
} from './content.ts';

interface CopyOptions {
  readonly from: Content;
  readonly to: NewContent;
  /** Called with the number of rows done; each is counted twice, as it is written and as it is read back. */
  readonly begun?: (rows: number) => void;
  readonly progress?: (rows: number) => void;
  /** Called when a table was written and read back. */
  readonly copied?: (table: TableName, rows: number) => void;
}

const PAGE = 1_000;

/** Resolves with the rows of each table. */
export async function copyContent(options: CopyOptions): Promise<ReadonlyMap<TableName, number>> {
  const { from, to, begun, progress, copied } = options;
  const counts = new Map<TableName, number>();
  let total = 0;
  for (const { name } of CONTENT) {
    counts.set(name, await from.count(name));
    total += counts.get(name)!;
  }
  begun?.(2 * total);
  let done = 0;
  const step = (rows: number): void => {
    done += rows;
    progress?.(done);
  };
  for (const table of CONTENT as readonly (ContentTable & { name: TableName })[]) {
    const written = await eachPage(from, table, step, (rows) => to.write(table.name, rows));
    const found = await eachPage(to, table, step);
    if (written.rows !== counts.get(table.name) || written.digest !== found.digest) {
      throw new Fault(
        'internal',
        `table ${table.name} was copied and does not read back as it was written (${found.rows} rows of ${written.rows})`,
      );
    }
    copied?.(table.name, written.rows);
  }
  await to.complete();
  return counts;
}

async function eachPage(
  content: Content,
  table: ContentTable & { name: TableName },
  step: (rows: number) => void,
  use?: (rows: readonly Cells[]) => unknown,
): Promise<{ rows: number; digest: string }> {
  const { page: most = PAGE } = table;
  const digest = createHash('sha256');
  let rows = 0;
  for (let after: Cells | undefined; ; ) {
    const page = await content.page(table.name, after, most);
    // A file answers at once: others get their turn, and the driver releases rows only between turns.
    await turn();
    for (const row of page) add(digest, row);
    await use?.(page);
    rows += page.length;
    step(page.length);
    const last = page.at(-1);
    if (!last || page.length < most) return { rows, digest: digest.digest('hex') };
    after = keyOf(table, last);
  }
}

/** Unambiguous: the kind and the length of each value come before it. */
function add(digest: Hash, row: Cells): void {
  for (const cell of row) {
    if (cell === null) digest.update('n;');
    else if (typeof cell === 'number') digest.update(`i${cell};`);
    else if (typeof cell === 'string') digest.update(`t${Buffer.byteLength(cell)};`).update(cell);
    else digest.update(`b${cell.byteLength};`).update(cell);
  }
}
