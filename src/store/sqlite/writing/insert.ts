/** Inserts many rows in few statements: a call into the driver costs more than a row does. */
import type { Connection, Statement, Value } from '../file/connection.ts';

const SIZES = [64, 8, 4, 2, 1] as const;

export interface InsertOptions {
  readonly verb?: string;
  /** SQL that each row ends with, after the values. */
  readonly more?: string;
  readonly onConflict?: string;
}

/** Returns a function that inserts a flat list of values, `width` per row. */
export function insertMany(
  connection: Connection,
  into: string,
  width: number,
  { verb = 'INSERT', more = '', onConflict }: InsertOptions = {},
): (values: readonly Value[]) => void {
  const row = `(${Array(width).fill('?').join(',')}${more})`;
  const ending = onConflict ? ` ON CONFLICT ${onConflict}` : '';
  // Prepared at first use: a program that writes one row should not wait for statements of 64.
  const statements: (Statement | undefined)[] = [];
  const statementOf = (index: number): Statement => {
    const rows = Array(SIZES[index]).fill(row).join(',');
    statements[index] ??= connection.prepare(`${verb} INTO ${into} VALUES ${rows}${ending}`);
    return statements[index];
  };
  return (values) => {
    let at = 0;
    for (let index = 0; at < values.length; index++) {
      const size = SIZES[index]! * width;
      for (; at + size <= values.length; at += size) {
        const statement = statements[index] ?? statementOf(index);
        statement.run(values.slice(at, at + size));
      }
    }
  };
}
