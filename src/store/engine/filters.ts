/** The members that lists are filtered by, as every database keeps them. */
import { own } from '../../model/values/own.ts';
import type { FilterName, Row } from '../../ports/index.ts';

/** In the order in which databases have them as columns. */
export const FILTERS: readonly FilterName[] = [
  'workspace_id',
  'session_id',
  'task_id',
  'parent_task_id',
  'state',
  'owner_id',
];

/** The same, the most selective first. State comes before workspace: lists by state mostly ask for what is still open. */
export const NARROW_FIRST: readonly FilterName[] = [
  'task_id',
  'session_id',
  'parent_task_id',
  'owner_id',
  'state',
  'workspace_id',
];

/** The value a list is filtered by; values that are not text count as null. */
export function filterOf(row: Row, name: FilterName): string | null {
  const members: Readonly<Record<string, unknown>> = row;
  const value = name === 'state' ? (own(members, 'status') ?? own(members, 'state')) : own(members, name);
  return typeof value === 'string' ? value : null;
}
