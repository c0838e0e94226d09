/**
 * Projections: resources as last written, with the members a list may be filtered by kept as columns. Knows nothing
 * of what a row means; the one thing it reads from a body is the filters.
 */
import { Fault } from '../../model/faults.ts';
import type { FilterName, ListQuery, Row } from '../../ports.ts';
import type { Connection, Value } from './connection.ts';
import { createRecent } from './recent.ts';
import type { Sheet } from './sheet.ts';

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

/** Members that are columns too, in the order of the columns. */
export const FILTERS = ['workspace_id', 'session_id', 'task_id', 'parent_task_id', 'state', 'owner_id'] as const;
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

/** The value a list is filtered by; only text counts. */
function filterOf(row: Row, name: FilterName): string | null {
  const members = row as unknown as Record<string, unknown>;
  const value = name === 'state' ? (members.status ?? members.state) : members[name];
  return typeof value === 'string' ? value : null;
}

export function createRows(connection: Connection): Rows {
  const select = connection.prepare('SELECT body FROM rows WHERE object = ? AND id = ? AND body IS NOT NULL');
  const selectAge = connection.prepare('SELECT created_at FROM rows WHERE object = ? AND id = ?');
  const known = createRecent<Known | typeof ABSENT>(REMEMBERED);

  function find(object: string, id: string): Known | undefined {
    const hit = known.get(object, id);
    if (hit !== undefined) return hit === ABSENT ? undefined : hit;
    const found = select.get([object, id]) as [string] | undefined;
    const row = found && { body: found[0], row: JSON.parse(found[0]) as Row, shown: undefined };
    known.set(object, id, row ?? ABSENT);
    return row;
  }

  function ageOf(object: string, id: string): string {
    const found = selectAge.get([object, id]) as [string] | undefined;
    if (!found) throw new Fault('invalid_request', `there is no ${object} ${id} to go on after`, { param: 'after' });
    return found[0];
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
      if (before && FILTERS.every((name) => filterOf(before, name) === filterOf(row, name))) {
        sheet.bodies.push(body, object, id);
      } else {
        sheet.rows.push(object, id, born);
        for (const name of FILTERS) sheet.rows.push(filterOf(row, name));
        sheet.rows.push(body);
      }
      return { body, row };
    },
    learn(object, id, row) {
      known.set(object, id, row ? { body: row.body, row: row.row, shown: undefined } : ABSENT);
    },
    list({ object, where = {}, after, limit = 50, newestFirst = false }) {
      const terms = ['object = ?', 'body IS NOT NULL'];
      const params: Value[] = [object];
      for (const name of FILTERS) {
        const wanted = where[name];
        if (wanted === undefined) continue;
        // A list travels as one value, so that there are only so many different statements.
        const one = typeof wanted === 'string' ? wanted : wanted.length === 1 ? wanted[0] : undefined;
        terms.push(one === undefined ? `${name} IN (SELECT value FROM json_each(?))` : `${name} = ?`);
        params.push(one ?? JSON.stringify(wanted));
      }
      if (after !== undefined) {
        terms.push(`(created_at, id) ${newestFirst ? '<' : '>'} (?, ?)`);
        params.push(ageOf(object, after), after);
      }
      const way = newestFirst ? 'DESC' : 'ASC';
      const sql = `SELECT body FROM rows WHERE ${terms.join(' AND ')} ORDER BY created_at ${way}, id ${way} LIMIT ?`;
      return (connection.prepare(sql).all([...params, limit]) as [string][]).map(([body]) => JSON.parse(body) as Row);
    },
    forget: known.clear,
    age: known.age,
  };
}

/** All the way down, so that nobody can change what others are looking at. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const name in value) frozen(value[name]);
  return Object.freeze(value);
}
