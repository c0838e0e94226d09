/** A real store whose disk can be pulled and put back while it is in use. */
import { Fault } from '../../../src/model/faults.ts';
import type { Draft, Store } from '../../../src/ports/index.ts';

export interface Disk {
  down: boolean;
  /** The next commit with this event in it is refused, and only that one. */
  fails: string | undefined;
  /** Commits that were refused. */
  refused: number;
  wrap(store: Store): Store;
}

export function pulledDisk(): Disk {
  let trouble: string | undefined;
  const gone = () => new Fault('unavailable', 'no room left to write the log: free some disk space');
  const failing = (draft: Draft): Draft => {
    if (!draft.events.some(({ event }) => event === disk.fails)) return draft;
    disk.fails = undefined;
    throw gone();
  };
  const disk: Disk = {
    down: false,
    fails: undefined,
    refused: 0,
    wrap: (store) => ({
      ...store,
      async commit(unit) {
        if (!disk.down) {
          const committed = await store.commit({ ...unit, decide: (at) => failing(unit.decide(at)) });
          trouble = undefined;
          return committed;
        }
        disk.refused += 1;
        trouble = gone().message;
        throw gone();
      },
      async putBlob(bytes) {
        if (!disk.down) return await store.putBlob(bytes);
        throw gone();
      },
      // As a real one: it knows of trouble when a write fails, and of its end when one succeeds.
      trouble: () => trouble ?? store.trouble(),
    }),
  };
  return disk;
}
