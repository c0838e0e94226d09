import type { Task } from './resources.ts';

/** Whether a task is a replay, by the mark that only core writes. Callers choose the rest of the metadata. */
export function isReplay({ metadata }: Pick<Task, 'metadata'>): boolean {
  const { replay } = (metadata.tollbridge ?? {}) as { readonly replay?: unknown };
  return replay !== undefined;
}
