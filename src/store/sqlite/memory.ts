/** How long what is remembered of the file holds: until somebody else has written to it, and not a turn of the event loop longer. */
import type { Connection } from './connection.ts';
import type { Log, Tip } from './log.ts';

export interface Memory {
  /** Looks at the file: afterwards what is remembered is what it holds. Returns where the log ends. */
  refresh(): Tip;
  /** Of the file as it was when what is remembered was true. */
  version(): number | undefined;
  /** Call before using what is remembered outside a commit: forgets it when another process has written. */
  check(): void;
  /** It was looked at just now. */
  holdsForThisTurn(): void;
  /** We have written: the log ends there. */
  grew(tip: Tip): void;
  forget(): void;
}
export interface MemoryDeps {
  readonly connection: Connection;
  readonly log: Log;
  /** Everything else that is remembered goes with it. */
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

  /** Ends with the turn's last microtask, so nothing that arrives later is answered from before it. */
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
    // Once per turn is enough: whatever we were told to look at was told before the turn began.
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
