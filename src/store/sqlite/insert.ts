/** Many rows in few statements: crossing into the driver costs more than the row does. */
import type { Connection, Statement, Value } from './connection.ts';

const SIZES = [64, 8, 4, 2, 1] as const;

/** A function that inserts a flat list of values, `width` per row. */
export function insertMany(
  connection: Connection,
  into: string,
  width: number,
  verb = 'INSERT',
): (values: readonly Value[]) => void {
  const row = `(${Array(width).fill('?').join(',')})`;
  const statements = SIZES.map((size): [number, Statement] => [
    size * width,
    connection.prepare(`${verb} INTO ${into} VALUES ${Array(size).fill(row).join(',')}`),
  ]);
  return (values) => {
    let at = 0;
    for (const [size, statement] of statements) {
      for (; at + size <= values.length; at += size) statement.run(values.slice(at, at + size));
    }
  };
}
