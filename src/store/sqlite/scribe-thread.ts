/** The thread that writes sheets: takes the lock, sees that nobody has written since the sheet was worked out, writes, commits. */
import { parentPort, workerData } from 'node:worker_threads';
import { openConnection } from './connection.ts';
import { unpack } from './packed.ts';
import type { Order, Said, ScribeData } from './scribe.ts';
import { createSheetWriter } from './sheet.ts';

/** Long enough for whoever is making or mending the file at this moment. */
const PATIENCE_MS = 5_000;

const port = parentPort!;
const { made, ...place } = workerData as ScribeData;
const connection = await openConnection({ ...place, patienceMs: PATIENCE_MS });
const write = createSheetWriter(connection);

function attempt({ after, sheet }: Order): Said {
  try {
    connection.begin();
    if (connection.generation() === after) {
      write(unpack(sheet));
      connection.commit();
      Atomics.store(made, 0, after + 1);
      return 'written';
    }
  } catch {
    // Locked, full, gone, or a value that cannot be kept: whoever asked finds out by writing it themselves.
  }
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

port.on('message', (order: Order | 'end') => {
  if (order === 'end') {
    connection.close();
    port.close();
  } else {
    port.postMessage(attempt(order));
  }
});
port.postMessage('ready' satisfies Said);
