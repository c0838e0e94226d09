/** A bar for long work: on standard error, only where somebody sees it, and gone when the work is done. */
export interface Progress {
  at(done: number): void;
  end(): void;
}

const WIDTH = 30;
const EVERY_MS = 100;

export interface Screen {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export function createProgress(label: string, total: number, screen: Screen = process.stderr): Progress {
  if (!screen.isTTY || total <= 0) return { at() {}, end() {} };
  let last = Number.NEGATIVE_INFINITY;
  let drawn = false;
  return {
    at(done) {
      const now = performance.now();
      if (now - last < EVERY_MS) return;
      last = now;
      drawn = true;
      const part = Math.min(1, Math.max(0, done / total));
      const full = Math.round(part * WIDTH);
      const bar = `${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}`;
      screen.write(`\r${label} [${bar}] ${Math.floor(part * 100)}%`);
    },
    end() {
      if (drawn) screen.write(`\r${' '.repeat(label.length + WIDTH + 8)}\r`);
    },
  };
}
