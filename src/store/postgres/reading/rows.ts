/** Stored projections: single bodies, and lists by the members that are kept as columns. Knows nothing of what a row means. */
import { Fault } from '../../../model/faults.ts';
import type { ListQuery, Row } from '../../../ports/index.ts';
import { NARROW_FIRST } from '../../engine/filters.ts';
import type { Connections, Value } from '../connection/connections.ts';
import { filledIn } from '../schema/migrations.ts';

interface Rows {
  /** Null: it was dropped, or there never was one. Rows that are asked for in one turn share a query. */
  body(object: string, id: string): Promise<string | null>;
  list(query: ListQuery): Promise<Row[]>;
}

interface Asked {
  readonly object: string;
  readonly id: string;
  resolve(body: string | null): void;
  reject(reason: unknown): void;
}

export function createRows(connections: Connections, schema: string): Rows {
  const BODIES = filledIn(
    `SELECT q.n, r.body FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS q (object, id, n)
     JOIN $S.rows r ON r.object = q.object AND r.id = q.id`,
    schema,
  );
  const AGE = filledIn('SELECT created_at FROM $S.rows WHERE object = $1 AND id = $2', schema);
  let asked: Asked[] = [];

  function askAll(): void {
    const all = asked;
    asked = [];
    connections.query(BODIES, [all.map(({ object }) => object), all.map(({ id }) => id)]).then(
      (found) => {
        const bodies = new Map(found.map(([n, body]) => [n as number, body as string | null]));
        for (const [at, { resolve }] of all.entries()) resolve(bodies.get(at + 1) ?? null);
      },
      (thrown) => {
        for (const { reject } of all) reject(thrown);
      },
    );
  }

  async function ageOf(object: string, id: string): Promise<string> {
    const [found] = await connections.query(AGE, [object, id]);
    if (found) return found[0] as string;
    throw new Fault('invalid_request', `there is no ${object} ${id} to go on after`, { param: 'after' });
  }

  return {
    body: (object, id) =>
      new Promise((resolve, reject) => {
        if (asked.push({ object, id, resolve, reject }) === 1) process.nextTick(askAll);
      }),
    async list({ object, where = {}, after, limit = 50, newestFirst = false }) {
      const values: Value[] = [object];
      const bind = (value: Value): string => `$${values.push(value)}`;
      const terms = ['object = $1', 'body IS NOT NULL'];
      // Always in this order, so that the statement of a query is always the same.
      for (const name of NARROW_FIRST) {
        const wanted = where[name];
        if (wanted === undefined) continue;
        terms.push(
          typeof wanted === 'string' ? `${name} = ${bind(wanted)}` : `${name} = ANY (${bind(wanted)}::text[])`,
        );
      }
      if (after !== undefined) {
        terms.push(`(created_at, id) ${newestFirst ? '<' : '>'} (${bind(await ageOf(object, after))}, ${bind(after)})`);
      }
      const direction = newestFirst ? 'DESC' : 'ASC';
      const found = await connections.query(
        filledIn(
          `SELECT body FROM $S.rows WHERE ${terms.join(' AND ')} ORDER BY created_at ${direction}, id ${direction} LIMIT ${bind(
            Math.min(limit, Number.MAX_SAFE_INTEGER),
          )}`,
          schema,
        ),
        values,
      );
      return found.map(([body]) => JSON.parse(body as string) as Row);
    },
  };
}
