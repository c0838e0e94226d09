/** The result of one check, and the line it is printed as. */
import { terminalText } from '../output/terminal-text.ts';

/** `warn` is worth knowing and stops nothing; `bad` makes the exit code 1. */
export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'bad';
  readonly says: string;
  readonly fix?: string;
}

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says });
export const warn = (check: string, says: string, fix: string): Finding => ({ check, state: 'warn', says, fix });
export const bad = (check: string, says: string, fix: string): Finding => ({ check, state: 'bad', says, fix });

const MARKS = { ok: 'ok  ', warn: 'note', bad: 'BAD ' } as const;

export function findingLine({ check, state, says, fix }: Finding): string {
  return `${MARKS[state]}  ${check.padEnd(9)}  ${terminalText(says)}\n${fix ? `${' '.repeat(17)}fix: ${terminalText(fix)}\n` : ''}`;
}
