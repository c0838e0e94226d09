/** Cached projections: resources as last written. Knows nothing of what a row means. */
import type { Row } from '../../ports/index.ts';
import type { RowChange } from './commit/write-set.ts';
import type { Database } from './database.ts';
import { createRecent } from './recent.ts';
import { andThen, type Wait } from './wait.ts';

export interface CachedRows {
  /** The row as the transaction sees it. The object is shared: do not change it. */
  peek(object: string, id: string): Row | undefined;
  /** The row as it is on disk, frozen because all callers share it. Valid only after the version of the database was checked. */
  get(object: string, id: string): Wait<Row | undefined>;
  /** Updates the cache to what is now on disk. */
  learn(change: RowChange): void;
  forget(): void;
  age(): void;
}

const REMEMBERED = 5_000;
const ABSENT = Symbol('absent');

interface Known {
  readonly body: string;
  readonly row: Row;
  /** The frozen copy that callers receive, made at the first request. */
  shown: Row | undefined;
}

export function createRows({ lookups, row: read }: Pick<Database, 'lookups' | 'row'>): CachedRows {
  const known = createRecent<Known | typeof ABSENT>(REMEMBERED);

  function remember(object: string, id: string, body: string | null | undefined): Known | typeof ABSENT {
    const found = body == null ? ABSENT : { body, row: JSON.parse(body) as Row, shown: undefined };
    known.set(object, id, found);
    return found;
  }

  function shown(found: Known | typeof ABSENT): Row | undefined {
    if (found === ABSENT) return undefined;
    found.shown ??= frozen(JSON.parse(found.body) as Row);
    return found.shown;
  }

  return {
    peek(object, id) {
      const found = known.get(object, id) ?? remember(object, id, lookups.row(object, id));
      return found === ABSENT ? undefined : found.row;
    },
    get(object, id) {
      // Over a network nobody can say at once whether another writer has changed it.
      if (lookups.remote) {
        return andThen(read(object, id), (body) => (body == null ? undefined : frozen(JSON.parse(body) as Row)));
      }
      const hit = known.get(object, id);
      known.age();
      return shown(hit ?? remember(object, id, lookups.row(object, id)));
    },
    learn({ object, id, row, body }) {
      known.set(object, id, row && body !== null ? { body, row, shown: undefined } : ABSENT);
    },
    forget: known.clear,
    age: known.age,
  };
}

/** Freezes deeply, so that no caller can change a row that others share. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const name in value) frozen(value[name]);
  return Object.freeze(value);
}
