/** What one look gave. `warn` is worth knowing and stops nothing; `bad` is what the exit code speaks of. */
export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'bad';
  readonly says: string;
  readonly fix?: string;
}

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says });
export const warn = (check: string, says: string, fix: string): Finding => ({ check, state: 'warn', says, fix });
export const bad = (check: string, says: string, fix: string): Finding => ({ check, state: 'bad', says, fix });
