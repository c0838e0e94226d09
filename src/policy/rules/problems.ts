/** Errors in a policy source, worded so that its author can correct them without help. */
import { Fault } from '../../model/faults.ts';

export type Problem = {
  readonly file: string;
  readonly rule?: string;
  /** Both from 1. */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
};

/** How many are listed in the message; the details hold all of them. */
const SHOWN = 20;

export function problemLine({ file, rule, line, column, message }: Problem): string {
  const at = line === undefined ? file : `${file}:${line}${column === undefined ? '' : `:${column}`}`;
  const name = rule === undefined || /^[\w .:/-]+$/.test(rule) ? rule : JSON.stringify(rule);
  return `${at}: ${name === undefined ? '' : `rule ${name}: `}${message}`;
}

export function problemsFault(problems: readonly Problem[]): Fault {
  const lines = problems.slice(0, SHOWN).map(problemLine);
  const more = problems.length > SHOWN ? [`and ${problems.length - SHOWN} more`] : [];
  return new Fault('invalid_request', [...lines, ...more].join('\n'), {
    param: 'policy',
    details: { problems: problems.map((problem) => ({ ...problem })) },
  });
}

/** The known word nearest to a mistyped one, if any is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const close = known
    .map((candidate) => ({ candidate, far: distance(word, candidate) }))
    .filter(({ candidate, far }) => far <= (Math.min(candidate.length, word.length) <= 4 ? 1 : 2))
    .toSorted((a, b) => a.far - b.far);
  return close[0]?.candidate;
}

/** Edit distance of two short words; a transposition of two letters counts as one. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const other = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const crossed = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = crossed ? (before[j - 2] ?? 0) + 1 : other;
      next.push(Math.min(other, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 3;
}
