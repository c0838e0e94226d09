/**
 * Limits the size of a result. A larger result is not recorded, shown or passed on: redacting and encoding it would block every
 * other request. It is measured only up to the limit.
 */
import type { ToolResult } from '../../../model/actions.ts';

export interface ResultLimits {
  /** Characters of all strings and member names together. */
  readonly size: number;
  /** Objects, arrays and their members. */
  readonly values: number;
}
export const RESULT_LIMITS: ResultLimits = { size: 4 * 1024 * 1024, values: 200_000 };

/** The result, or an error in its place. The call has run either way, and the error says so. */
export function boundedResult(result: ToolResult, limits: ResultLimits): ToolResult {
  const over = excess(result.output, limits) ?? excess(result.ext, limits);
  if (!over) return result;
  const { output: _, ext: _ext, error: _error, ...rest } = result;
  const error = `the call ran, and its result was not passed on: it holds ${over}`;
  return { ...rest, status: 'error', output: null, error, code: 'result_too_large' };
}

/** Describes the limit that is exceeded; undefined when the value fits. */
export function excess(value: unknown, { size, values }: ResultLimits): string | undefined {
  let room = size;
  let left = values;
  const tooMany = `more than ${values} values`;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const it = pending.pop();
    left -= 1;
    if (typeof it === 'string') room -= it.length;
    else if (Array.isArray(it)) {
      if (it.length > left) return tooMany;
      for (const item of it) pending.push(item);
    } else if (typeof it === 'object' && it !== null) {
      for (const name in it) {
        room -= name.length;
        if (pending.push((it as Record<string, unknown>)[name]) > left) return tooMany;
      }
    }
    if (room < 0) return `more than ${size} characters`;
    if (left < 0) return tooMany;
  }
  return undefined;
}
