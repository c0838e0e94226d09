/** Filters of the activity list, read from the address. A filtered list is extended as rows come and never computed twice. Pure. */
import type { Feed } from './feed.ts';
import type { EventRow } from './rows.ts';

export const FILTERS = [
  'group',
  'agent',
  'door',
  'tool',
  'verdict',
  'effect',
  'session',
  'person',
  'rule',
  'task',
  'event',
] as const;
export type FilterName = (typeof FILTERS)[number];

export type Wanted = (row: EventRow) => boolean;

export function wantedBy(query: URLSearchParams): Wanted {
  const fixed = FILTERS.flatMap((name) => {
    const value = query.get(name);
    return value ? [[name, value] as const] : [];
  });
  const text = (query.get('text') ?? '').toLowerCase();
  const since = Number(query.get('since') ?? 0);
  return (row) =>
    fixed.every(([name, value]) => row[name] === value) &&
    (since === 0 || row.at >= since) &&
    (text === '' ||
      `${row.text} ${row.word} ${row.tool} ${row.person} ${row.agent} ${row.rule}`.toLowerCase().includes(text));
}

export interface Filtered {
  readonly key: string;
  readonly epoch: number;
  read: number;
  readonly rows: EventRow[];
}

/** Reads on from where it stopped, unless the filter or the beginning of the feed changed. */
export function extend(before: Filtered | undefined, feed: Feed, key: string, wanted: Wanted): Filtered {
  const same = before && before.key === key && before.epoch === feed.epoch;
  const kept: Filtered = same ? before : { key, epoch: feed.epoch, read: 0, rows: [] };
  for (; kept.read < feed.rows.length; kept.read += 1) {
    const row = feed.rows[kept.read] as EventRow;
    if (wanted(row)) kept.rows.push(row);
  }
  return kept;
}
