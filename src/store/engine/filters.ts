/** The members that lists are filtered by, as every database keeps them. */
import { own } from '../../model/values/own.ts';
import type { FilterName, Row } from '../../ports/index.ts';

/** The value a list is filtered by; values that are not text count as null. */
export function filterOf(row: Row, name: FilterName): string | null {
  const members: Readonly<Record<string, unknown>> = row;
  const value = name === 'state' ? (own(members, 'status') ?? own(members, 'state')) : own(members, name);
  return typeof value === 'string' ? value : null;
}
