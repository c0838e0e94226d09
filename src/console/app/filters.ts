/** Filters of the activity list, read from the address. A filtered list and the choices of a filter are extended as rows come: each row is read once. Pure. */
import type { EventRow, GrowingRows } from './rows.ts';

export const FILTERS = [
  'group',
  'agent',
  'door',
  'tool',
  'server',
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
    // Tools of the gateway and of agents have no server, and share their names with those that have one.
    if (value === null || (value === '' && name !== 'server')) return [];
    // Ids of tasks have no comma; names of tools and people may.
    return [[name, name === 'task' ? value.split(',') : [value]] as const];
  });
  const text = (query.get('text') ?? '').toLowerCase();
  const since = Number(query.get('since') ?? 0);
  const until = Number(query.get('until') ?? 0);
  const caller = query.get('caller') ?? '';
  return (row) =>
    fixed.every(([name, value]) => value.includes(row[name])) &&
    (since === 0 || row.at >= since) &&
    (until === 0 || row.at < until) &&
    (caller === '' || (row.agent || row.person) === caller) &&
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
export function extend(before: Filtered | undefined, feed: GrowingRows, key: string, wanted: Wanted): Filtered {
  const same = before && before.key === key && before.epoch === feed.epoch;
  const kept: Filtered = same ? before : { key, epoch: feed.epoch, read: 0, rows: [] };
  for (; kept.read < feed.rows.length; kept.read += 1) {
    const row = feed.rows[kept.read] as EventRow;
    if (wanted(row)) kept.rows.push(row);
  }
  return kept;
}

/** How many rows, oldest first, are not newer than this event. */
export function countUpTo(rows: readonly EventRow[], id: string): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((rows[middle] as EventRow).id <= id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The values that rows have for each filter, read from the rows themselves. */
export interface Choices {
  readonly epoch: number;
  read: number;
  readonly found: ReadonlyMap<FilterName, Set<string>>;
}

/** More choices than these are typed as text. */
const MOST_CHOICES = 200;

export function extendChoices(before: Choices | undefined, feed: GrowingRows, names: readonly FilterName[]): Choices {
  const kept: Choices =
    before && before.epoch === feed.epoch
      ? before
      : { epoch: feed.epoch, read: 0, found: new Map(names.map((name) => [name, new Set<string>()])) };
  for (; kept.read < feed.rows.length; kept.read += 1) {
    const row = feed.rows[kept.read] as EventRow;
    for (const [name, values] of kept.found) if (row[name] && values.size < MOST_CHOICES) values.add(row[name]);
  }
  return kept;
}
