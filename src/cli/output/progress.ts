/** A progress bar: on standard error, only in a terminal, and removed when the work is done. */
export interface Progress {
  at(done: number): void;
  end(): void;
}

const WIDEST = 30;
const EVERY_MS = 100;

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export function createProgress(label: string, total: number, screen: Screen = process.stderr): Progress {
  if (!screen.isTTY || total <= 0) return { at() {}, end() {} };
  let last = Number.NEGATIVE_INFINITY;
  let drawn = false;
  // A line that does not fit would wrap, and could not be erased.
  const width = Math.max(0, Math.min(WIDEST, (screen.columns ?? 80) - label.length - ' [] 100%'.length - 1));
  return {
    at(done) {
      const now = performance.now();
      if (now - last < EVERY_MS) return;
      last = now;
      drawn = true;
      const part = Math.min(1, Math.max(0, done / total));
      const full = Math.round(part * width);
      const bar = `${'#'.repeat(full)}${'.'.repeat(width - full)}`;
      screen.write(`\r${label} [${bar}] ${Math.floor(part * 100)}%`);
    },
    end() {
      if (drawn) screen.write(`\r${' '.repeat(label.length + width + 8)}\r`);
    },
  };
}
