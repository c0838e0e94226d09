/** What every projection is made of: the rows an event reads, and the changes it makes. */
import type { CoreEvent } from '../../../model/events.ts';
import type { Pointer } from '../../../model/resources.ts';
import type { Change, Row } from '../../../ports/index.ts';
import type { RunRow } from '../rows.ts';

export type Get = <T extends Row>(object: string, id: string) => T | undefined;

export interface Projection<Draft, Written> {
  /** Rows that `apply` reads. */
  touches?(event: Draft): readonly Pointer[];
  apply(event: Written, get: Get): readonly Change[];
}

export const NOTHING: readonly Pointer[] = [];
export const NO_CHANGE: readonly Change[] = [];
export const NO_NAMES: readonly string[] = [];

export function one(object: string, id: string | null | undefined): readonly Pointer[] {
  return id ? [{ object, id }] : NOTHING;
}

export function fresh<const O extends string>(object: O, id: string, at: string) {
  return { id, object, created_at: at, updated_at: at };
}

export function put<T extends Row>(row: T): Change {
  return { put: row };
}

export function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** The row of the task's run; nothing changes when it is gone. */
export function changeRun(event: CoreEvent, get: Get, change: (run: RunRow) => RunRow): Change[] {
  const run = event.task_id ? get<RunRow>('run', event.task_id) : undefined;
  return run ? [put({ ...change(run), updated_at: event.created_at })] : [];
}
