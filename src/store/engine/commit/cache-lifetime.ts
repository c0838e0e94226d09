/**
 * How long cached contents of the database stay valid: until another writer commits, and at most to the end of that turn of the event
 * loop.
 */
import type { Database, LogEnd } from '../database.ts';
import { andThen, type Wait } from '../wait.ts';
import type { Tip } from './batch.ts';

export interface CacheLifetime {
  /** Looks at the database and drops caches that are out of date. Returns the end of the log. */
  refresh(): Wait<Tip>;
  /** The version of the database that the caches reflect. */
  version(): number | undefined;
  /** Call before using cached rows outside a commit: drops them when another process has written. */
  check(): void;
  /** The database was checked just now; do not check again in this turn. */
  holdsForThisTurn(): void;
  /** We have committed: the log now ends there. */
  grew(tip: Tip): void;
  forget(): void;
}
export interface CacheLifetimeDeps {
  readonly database: Pick<Database, 'version' | 'end'>;
  /** Called to drop every other cache too. */
  forget(): void;
  /** Called with the end of the log after the caches were dropped. */
  restart(end: LogEnd): Wait<void>;
  /** The time of the last event. */
  timeAt(end: LogEnd): Wait<string>;
}

export function createCacheLifetime({
  database,
  forget: forgetRest,
  restart,
  timeAt,
}: CacheLifetimeDeps): CacheLifetime {
  let tip: Tip | undefined;
  let version: number | undefined;
  let checked = false;

  function forget(): void {
    tip = undefined;
    forgetRest();
  }

  /** Ends with the turn's last microtask, so a request that arrives later is never answered from before it. */
  function holdsForThisTurn(): void {
    if (checked) return;
    checked = true;
    process.nextTick(() => {
      checked = false;
    });
  }

  return {
    version: () => version,
    holdsForThisTurn,
    forget,
    refresh() {
      const current = database.version();
      if (tip && version === current) return tip;
      forget();
      version = current;
      return andThen(database.end(), (end) =>
        andThen(restart(end), () =>
          andThen(timeAt(end), (at) => {
            tip = { position: end.position, at };
            return tip;
          }),
        ),
      );
    },
    // Once per turn is enough: any notice that led to this read arrived before the turn began.
    check() {
      if (checked) return;
      const current = database.version();
      if (version !== current) {
        forget();
        version = current;
      }
      holdsForThisTurn();
    },
    grew(to) {
      tip = to;
    },
  };
}
