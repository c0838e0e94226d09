/** How a client of ours ends the situations a recorded client was put in. */
import type { Check } from '../run.ts';

interface Outcome {
  readonly situation: string;
  readonly transport: string;
  readonly outcome: string;
}

export function* clientChecks(_outcomes: readonly Outcome[]): Generator<Check> {}
