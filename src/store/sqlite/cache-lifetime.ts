/**
 * How long cached contents of the file stay valid: until another writer commits, and at most to the end of that turn of the event
 * loop.
 */
import type { Connection } from './connection.ts';
import type { Log, Tip } from './log.ts';

export interface Memory {
  /** Looks at the file and drops caches that are out of date. Returns the end of the log. */
  refresh(): Tip;
  /** The version of the file that the caches reflect. */
  version(): number | undefined;
  /** Call before using cached rows outside a commit: drops them when another process has written. */
  check(): void;
  /** The file was checked just now; do not check again in this turn. */
  holdsForThisTurn(): void;
  /** We have committed: the log now ends there. */
  grew(tip: Tip): void;
  forget(): void;
}
export interface MemoryDeps {
  readonly connection: Connection;
  readonly log: Log;
  /** Called to drop every other cache too. */
  forget(): void;
}

export function createMemory({ connection, log, forget: forgetRest }: MemoryDeps): Memory {
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
      const current = connection.version();
      if (tip && version === current) return tip;
      forget();
      version = current;
      tip = log.tip();
      return tip;
    },
    // Once per turn is enough: any notice that led to this read arrived before the turn began.
    check() {
      if (checked) return;
      const current = connection.version();
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
