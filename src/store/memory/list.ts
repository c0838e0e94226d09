/** Lists of rows in memory. */
import { Fault } from '../../model/faults.ts';
import type { FilterName, ListQuery, Row } from '../../ports/index.ts';
import { filterOf } from '../engine/filters.ts';
import type { MemoryLog } from './log.ts';

export function listRows({ rows }: MemoryLog, query: ListQuery): Row[] {
  const { object, where = {}, after, limit = 50, newestFirst = false } = query;
  const ofKind = rows.get(object);
  const filters = Object.entries(where) as [FilterName, string | readonly string[] | undefined][];
  const direction = newestFirst ? -1 : 1;
  const cursor = after === undefined ? undefined : ([ageOf(query, ofKind?.get(after)?.created_at), after] as const);
  return [...(ofKind ?? [])]
    .filter(([, { row }]) => row && filters.every(([name, wanted]) => fits(filterOf(row, name), wanted)))
    .map(([id, { created_at, body }]) => ({ key: [created_at, id] as const, body }))
    .filter(({ key }) => !cursor || compare(key, cursor) * direction > 0)
    .toSorted((a, b) => compare(a.key, b.key) * direction)
    .slice(0, limit)
    .map(({ body }) => JSON.parse(body!) as Row);
}

function fits(value: string | null, wanted: string | readonly string[] | undefined): boolean {
  if (wanted === undefined) return true;
  return value !== null && (typeof wanted === 'string' ? value === wanted : wanted.includes(value));
}

function ageOf({ object, after }: ListQuery, age: string | undefined): string {
  if (age !== undefined) return age;
  throw new Fault('invalid_request', `there is no ${object} ${after} to go on after`, { param: 'after' });
}

function compare(a: readonly [string, string], b: readonly [string, string]): number {
  if (a[0] !== b[0]) return a[0] < b[0] ? -1 : 1;
  return a[1] === b[1] ? 0 : a[1] < b[1] ? -1 : 1;
}
