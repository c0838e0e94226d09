/**
 * Projections: resources as last written, with the members they are listed by kept as columns. Knows nothing of what a row means;
 * the filters are the only members it reads from a body.
 */
import { Fault } from '../../model/faults.ts';
import type { FilterName, ListQuery, Row } from '../../ports/index.ts';
import { createRecent } from '../engine/recent.ts';
import type { Connection, Value } from './connection.ts';
import { filterInBody, filterOf, type RowTable, rowTableOf } from './tables.ts';
import type { WriteSet } from './writing/write-set.ts';

export interface Rows {
  /** The row as the transaction sees it. The object is shared: do not change it. */
  peek(object: string, id: string): Row | undefined;
  /** The row as it is on disk, frozen because all callers share it. Valid only after `check`. */
  get(object: string, id: string): Row | undefined;
  list(query: ListQuery): Row[];
  /**
   * Adds a row to the write set; `before` is its current state. `born` is the sort key of a new row; a known row keeps the one it
   * has.
   */
  fill(writeSet: WriteSet, row: Row, born: string, before: Row | undefined): RowText;
  /** Updates the cache to what is now on disk; undefined: the row was dropped. */
  learn(object: string, id: string, row: RowText | undefined): void;
  forget(): void;
  age(): void;
}

/** Filters, the most selective first. State comes before workspace: lists by state mostly ask for what is still open. */
const NARROW_FIRST: readonly FilterName[] = [
  'task_id',
  'session_id',
  'parent_task_id',
  'owner_id',
  'state',
  'workspace_id',
];
const REMEMBERED = 5_000;
const ABSENT = Symbol('absent');

/** A row and its JSON text. */
export interface RowText {
  readonly body: string;
  readonly row: Row;
}
/** Adds the frozen copy that callers receive, made at the first request. */
interface Known extends RowText {
  shown: Row | undefined;
}

export function createRows(connection: Connection): Rows {
  const known = createRecent<Known | typeof ABSENT>(REMEMBERED);

  /** A column of one row, dropped or not; undefined when there never was such a row. */
  function column(name: 'body' | 'created_at', object: string, id: string): string | null | undefined {
    const { table, key } = rowTableOf(object);
    const select = connection.prepare(`SELECT ${name} FROM ${table} WHERE ${key.join(' = ? AND ')} = ?`);
    return (select.get(keyValues(key, object, id)) as [string | null] | undefined)?.[0];
  }

  function find(object: string, id: string): Known | undefined {
    const hit = known.get(object, id);
    if (hit !== undefined) return hit === ABSENT ? undefined : hit;
    const body = column('body', object, id);
    const row = body == null ? undefined : { body, row: JSON.parse(body) as Row, shown: undefined };
    known.set(object, id, row ?? ABSENT);
    return row;
  }

  function ageOf(object: string, id: string): string {
    const age = column('created_at', object, id);
    if (age == null)
      throw new Fault('invalid_request', `there is no ${object} ${id} to go on after`, { param: 'after' });
    return age;
  }

  return {
    peek: (object, id) => find(object, id)?.row,
    get(object, id) {
      const found = find(object, id);
      known.age();
      if (!found) return undefined;
      found.shown ??= frozen(JSON.parse(found.body) as Row);
      return found.shown;
    },
    fill(writeSet, row, born, before) {
      const { object, id } = row;
      const body = JSON.stringify(row);
      const { table, filters, key } = rowTableOf(object);
      const changed = before && filters.filter((name) => filterOf(before, name) !== filterOf(row, name));
      if (changed?.length === 0) {
        writeSet.bodies.push(object, id, body);
      } else if (changed?.length === 1 && changed[0] === 'state') {
        writeSet.states.push(object, id, filterOf(row, 'state'), body);
      } else {
        const list = writeSet[table];
        list.push(...keyValues(key, object, id), born);
        for (const name of filters) list.push(filterOf(row, name));
        list.push(body);
      }
      return { body, row };
    },
    learn(object, id, row) {
      known.set(object, id, row ? { body: row.body, row: row.row, shown: undefined } : ABSENT);
    },
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
    forget: known.clear,
    age: known.age,
  };
}

function keyValues(key: RowTable['key'], object: string, id: string): string[] {
  return key.length === 1 ? [id] : [object, id];
}

/** Freezes deeply, so that no caller can change a row that others share. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const name in value) frozen(value[name]);
  return Object.freeze(value);
}
