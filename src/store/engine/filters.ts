/** The members that lists are filtered by, as every database keeps them. */
import type { FilterName, Row } from '../../ports/index.ts';

/** The value a list is filtered by; values that are not text count as null. */
export function filterOf(row: Row, name: FilterName): string | null {
  const members = row as unknown as Record<string, unknown>;
  const value = name === 'state' ? (members.status ?? members.state) : members[name];
  return typeof value === 'string' ? value : null;
}
