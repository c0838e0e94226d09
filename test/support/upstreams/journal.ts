/** What the steered server writes down, read by tests. */
import { readFileSync } from 'node:fs';

/** The process ids of all programs that were started. */
export function programsIn(journal: string): readonly number[] {
  return readFileSync(journal, 'utf8')
    .split('\n')
    .flatMap((line) => (line.includes('"started"') ? [JSON.parse(line).started as number] : []));
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
