/** The thread that writes sheets: takes the lock, sees that nobody has written since the sheet was worked out, writes, commits. */
import { parentPort, workerData } from 'node:worker_threads';
import { openConnection } from './connection.ts';
import { unpack } from './packed.ts';
import type { Order, Said, ScribeData } from './scribe.ts';
import { createSheetWriter } from './sheet.ts';

/** Long enough for whoever is making or mending the file at this moment. */
const PATIENCE_MS = 5_000;

/** No generation: they count from 0. */
const NOBODY = -1;

const port = parentPort!;
const { claimed, ...place } = workerData as ScribeData;
const connection = await openConnection({ ...place, patienceMs: PATIENCE_MS, checkpointsOnDemand: true });
const write = createSheetWriter(connection);

function attempt({ after, sheet }: Order): Said {
  try {
    connection.begin();
    if (connection.generation() === after) {
      // Before it is to be seen: whoever looks at the file in between must not take it for somebody else's.
      Atomics.store(claimed, 0, after + 1);
      write(unpack(sheet));
      connection.commit();
      return 'written';
    }
  } catch {
    // Locked, full, gone, or a value that cannot be kept: whoever asked finds out by writing it themselves.
  }
  // While the lock is still held, so that what others write then is never taken for ours.
  Atomics.store(claimed, 0, NOBODY);
  undo();
  return 'not written';
}

function undo(): void {
  try {
    connection.rollback();
  } catch {
    // The next transaction takes it back before it begins.
  }
}

/** Once they have heard, so that nobody waits for it who need not. */
function tidy(): void {
  try {
    connection.checkpoint();
  } catch {
    // Whatever it is, the next transaction meets it too, and somebody is there to be told.
  }
}

port.on('message', (order: Order | 'end') => {
  if (order === 'end') {
    connection.close();
    port.close();
  } else {
    port.postMessage(attempt(order));
    tidy();
  }
});
port.postMessage('ready' satisfies Said);
