/**
 * What a store knows of the state of the log without asking: how many transactions it has seen, and whether others made some of them. A
 * standby that took over may lack transactions that this store has seen, and count others by the same numbers: so the number counts only
 * together with the server that gave it.
 */
import type { Logger } from '../../../ports/index.ts';

export interface Versions {
  /** Changes when another writer has committed, and not for our own commits. */
  version(): number;
  /** The last transaction we know of. */
  generation(): number;
  /** The server that we know it from; empty while we know of none. */
  server(): string;
  /** The state as it was read under the lock: exact. */
  exact(generation: number, server: string): void;
  /** The state as it was read, or announced by another, some time ago. */
  seen(generation: number, writer: string, server?: string): void;
  /** We have committed this one. */
  own(generation: number): void;
  /** What happened is not known: whatever is cached may be wrong. */
  doubt(): void;
  /** A commit of ours is under way: the next generation may be ours. */
  writing(): () => void;
}

/** A running server: when it was started, which no two of one log have in common. */
export const SERVER = 'extract(epoch FROM pg_postmaster_start_time())::text';

export function createVersions(writer: string, name: string, logger: Logger | undefined): Versions {
  let known = 0;
  let from = '';
  let version = 0;
  let underWay = 0;

  function foreign(generation: number): void {
    known = generation;
    version += 1;
  }

  return {
    version: () => version,
    generation: () => known,
    server: () => from,
    exact(generation, server) {
      if (generation < known) {
        logger?.error({ store: name, known, generation }, 'the database has lost commits that it had confirmed');
      }
      if (generation !== known || server !== from) foreign(generation);
      from = server;
    },
    seen(generation, by, server = from) {
      if (server !== from) {
        from = server;
        foreign(generation);
        return;
      }
      if (generation <= known) return;
      // The answer to our own commit is about to arrive.
      if (by === writer && underWay > 0 && generation === known + 1) return;
      foreign(generation);
    },
    own(generation) {
      if (generation === known + 1) known = generation;
      else if (generation > known) foreign(generation);
    },
    doubt() {
      version += 1;
    },
    writing() {
      underWay += 1;
      return () => {
        underWay -= 1;
      };
    },
  };
}
