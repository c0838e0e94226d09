/**
 * Projections: resources as last written, with the members they are listed by kept as columns. Knows nothing
 * of what a row means; the one thing it reads from a body is the filters.
 */
import { Fault } from '../../model/faults.ts';
import type { FilterName, ListQuery, Row } from '../../ports.ts';
import type { Connection, Value } from './connection.ts';
import { createRecent } from './recent.ts';
import type { Sheet } from './sheet.ts';
import { filterInBody, filterOf, type Shelf, shelfOf } from './shelves.ts';

export interface Rows {
  /** As the transaction sees it. The same object may be handed out again: do not change it. */
  peek(object: string, id: string): Row | undefined;
  /** As the disk has it, frozen: everyone gets the same one. Only while what is remembered is known to hold. */
  get(object: string, id: string): Row | undefined;
  list(query: ListQuery): Row[];
  /** Puts a row down as it will be, where `before` is now. `born` places one that is new in the order; one that is known keeps the place it had. */
  fill(sheet: Sheet, row: Row, born: string, before: Row | undefined): Spelled;
  /** From now on the disk has it so; undefined: it was dropped. */
  learn(object: string, id: string, row: Spelled | undefined): void;
  forget(): void;
  age(): void;
}

/** Filters by how little they leave. A state before a workspace: what is asked for by state is mostly what is still open. */
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

/** A row and its text. */
export interface Spelled {
  readonly body: string;
  readonly row: Row;
}
/** With the copy that is handed out, made when somebody first asks for it. */
interface Known extends Spelled {
  shown: Row | undefined;
}

export function createRows(connection: Connection): Rows {
  const known = createRecent<Known | typeof ABSENT>(REMEMBERED);

  /** Of one row, dropped or not; undefined when there never was one. */
  function column(name: 'body' | 'created_at', object: string, id: string): string | null | undefined {
    const { table, key } = shelfOf(object);
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
    fill(sheet, row, born, before) {
      const { object, id } = row;
      const body = JSON.stringify(row);
      const { table, filters, key } = shelfOf(object);
      const changed = before && filters.filter((name) => filterOf(before, name) !== filterOf(row, name));
      if (changed?.length === 0) {
        sheet.bodies.push(object, id, body);
      } else if (changed?.length === 1 && changed[0] === 'state') {
        sheet.states.push(object, id, filterOf(row, 'state'), body);
      } else {
        const list = sheet[table];
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
      const { table, filters, key } = shelfOf(object);
      const terms = ['body IS NOT NULL'];
      const params: Value[] = [];
      if (key.includes('object')) {
        terms.push('object = ?');
        params.push(object);
      }
      // The first that is one value and a column leads; without the plus SQLite may take a wider one.
      let led = false;
      for (const name of NARROW_FIRST) {
        const wanted = where[name];
        if (wanted === undefined) continue;
        // A list travels as one value, so that there are only so many different statements.
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
      const way = newestFirst ? 'DESC' : 'ASC';
      const sql = `SELECT body FROM ${table} WHERE ${terms.join(' AND ')} ORDER BY created_at ${way}, id ${way} LIMIT ?`;
      return (connection.prepare(sql).all([...params, limit]) as [string][]).map(([body]) => JSON.parse(body) as Row);
    },
    forget: known.clear,
    age: known.age,
  };
}

function keyValues(key: Shelf['key'], object: string, id: string): string[] {
  return key.length === 1 ? [id] : [object, id];
}

/** All the way down, so that nobody can change what others are looking at. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const name in value) frozen(value[name]);
  return Object.freeze(value);
}
