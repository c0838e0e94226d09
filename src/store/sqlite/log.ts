/** The log itself: its end, its floor since pruning, and single events. */
import type { Connection } from './connection.ts';

/** The index of workspaces has a granularity of this many positions. */
export const SPAN = 256;

/** The index of resources has a granularity of 4096 positions; the index on events uses the same expression. */
export const stretchOf = (position: number): number => Math.floor(position / 4096);
export const lastOfStretch = (stretch: number): number => stretch * 4096 + 4095;

export interface Tip {
  readonly position: number;
  /** Time of the last event; empty when there never was one. */
  readonly at: string;
}
export interface Log {
  tip(): Tip;
  /** Last position; cheaper than `tip`. */
  last(): number;
  /** Last position that was pruned; 0 when none was. */
  floor(): number;
  text(position: number): string | undefined;
}

export function createLog(connection: Connection): Log {
  const last = connection.prepare('SELECT max(position) FROM events');
  const meta = connection.prepare('SELECT value FROM meta WHERE name = ?');
  const select = connection.prepare('SELECT body FROM events WHERE position = ?');

  const floor = (): number => Number((meta.get(['floor']) as [string] | undefined)?.[0] ?? 0);
  const lastPosition = (): number => (last.get() as [number | null])[0] ?? floor();
  const text = (position: number): string | undefined => (select.get([position]) as [string] | undefined)?.[0];

  return {
    floor,
    text,
    last: lastPosition,
    tip() {
      const position = lastPosition();
      const body = text(position);
      const at = body ? (JSON.parse(body) as { created_at: string }).created_at : meta.get(['floor_at'])?.[0];
      return { position, at: (at as string | undefined) ?? '' };
    },
  };
}
