/** Checks by category: each has a name that says what must hold, and a few lines that look. */
import type { Target } from './target.ts';

export interface HarnCheck {
  readonly name: string;
  run(at: Target): Promise<void>;
}
export interface Category {
  readonly name: string;
  readonly checks: readonly HarnCheck[];
}

type Run = (at: Target) => Promise<void>;

export function category(name: string, checks: Readonly<Record<string, Run>>): Category {
  return { name, checks: Object.entries(checks).map(([title, run]) => ({ name: title, run })) };
}

/** One check per row of a table. */
export function each<const Row>(
  rows: readonly Row[],
  name: (row: Row) => string,
  run: (row: Row, at: Target) => Promise<void>,
): Record<string, Run> {
  return Object.fromEntries(rows.map((row) => [name(row), (at: Target) => run(row, at)]));
}
