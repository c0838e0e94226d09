/** Durations as people write them in rules: `500ms`, `30s`, `10m`, `2h`, `1d`. */
import { own } from './own.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function durationMs(text: string): number | undefined {
  const [, amount, unit] = /^(\d{1,9})\s*(ms|s|m|h|d)$/.exec(text.trim()) ?? [];
  const size = own(UNITS, unit ?? '');
  const value = size === undefined ? 0 : Number(amount) * size;
  return value > 0 ? value : undefined;
}
