/** Stored projections: single bodies, and lists by the members that are kept as columns. Knows nothing of what a row means. */
import { Fault } from '../../model/faults.ts';
import type { ListQuery, Row } from '../../ports/index.ts';
import { NARROW_FIRST } from '../engine/filters.ts';
import type { Connection, Value } from './file/connection.ts';
import { filterInBody, keyValues, rowTableOf } from './tables.ts';

export interface Rows {
  /** The JSON text of a row; null when it was dropped, undefined when there never was one. */
  body(object: string, id: string): string | null | undefined;
  list(query: ListQuery): Row[];
}

export function createRows(connection: Connection): Rows {
  /** A column of one row, dropped or not; undefined when there never was such a row. */
  function column(name: 'body' | 'created_at', object: string, id: string): string | null | undefined {
    const { table, key } = rowTableOf(object);
    const select = connection.prepare(`SELECT ${name} FROM ${table} WHERE ${key.join(' = ? AND ')} = ?`);
    return (select.get(keyValues(key, object, id)) as [string | null] | undefined)?.[0];
  }

  function ageOf(object: string, id: string): string {
    const age = column('created_at', object, id);
    if (age == null)
      throw new Fault('invalid_request', `there is no ${object} ${id} to go on after`, { param: 'after' });
    return age;
  }

  return {
    body: (object, id) => column('body', object, id),
    list({ object, where = {}, after, limit = 50, newestFirst = false }) {
      const { table, filters, key } = rowTableOf(object);
      const terms = ['body IS NOT NULL'];
      const params: Value[] = [];
      if (key.includes('object')) {
        terms.push('object = ?');
        params.push(object);
      }
      // The first filter that is a column with a single value leads; the plus keeps SQLite from choosing the index of a less
      // selective one.
      let led = false;
      for (const name of NARROW_FIRST) {
        const wanted = where[name];
        if (wanted === undefined) continue;
        // A list is bound as one JSON parameter, so that the number of different statements stays small.
        const one = typeof wanted === 'string' ? wanted : wanted.length === 1 ? wanted[0] : undefined;
        const value = filters.includes(name) ? `${led ? '+' : ''}${name}` : filterInBody(name);
        led ||= one !== undefined && filters.includes(name);
        terms.push(one === undefined ? `${value} IN (SELECT value FROM json_each(?))` : `${value} = ?`);
        params.push(one ?? JSON.stringify(wanted));
      }
      if (after !== undefined) {
        terms.push(`(created_at, id) ${newestFirst ? '<' : '>'} (?, ?)`);
        params.push(ageOf(object, after), after);
      }
      const direction = newestFirst ? 'DESC' : 'ASC';
      const sql = `SELECT body FROM ${table} WHERE ${terms.join(' AND ')} ORDER BY created_at ${direction}, id ${direction} LIMIT ?`;
      return (connection.prepare(sql).all([...params, limit]) as [string][]).map(([body]) => JSON.parse(body) as Row);
    },
  };
}
