/**
 * The writer thread: takes the lock, checks that the file has not been written to since the write set was computed, writes,
 * commits.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { openConnection } from '../file/connection.ts';
import { createTableWriter } from './table-rows.ts';
import type { WriteOrder, WriterThreadData, WriterThreadReply } from './writer-thread.ts';

/** Long enough for another process to finish creating or recovering the file. */
const LOCK_TIMEOUT_MS = 5_000;

/** Not a generation: they count from 0. */
const NO_GENERATION = -1;

const port = parentPort!;
const { claimed, ...file } = workerData as WriterThreadData;
const connection = await openConnection({ ...file, lockTimeoutMs: LOCK_TIMEOUT_MS, checkpointsOnDemand: true });
const write = createTableWriter(connection);

function attempt({ after, rows }: WriteOrder): WriterThreadReply {
  try {
    connection.begin();
    if (connection.generation() === after) {
      // Before the commit is visible: a look at the file in between must not take it for a foreign one.
      Atomics.store(claimed, 0, after + 1);
      write(rows);
      connection.commit();
      return 'written';
    }
  } catch {
    // Locked, full, gone, or a value that cannot be stored: the main thread writes the set itself and meets the error.
  }
  // While the lock is still held, so that a later commit by another writer is never taken for ours.
  Atomics.store(claimed, 0, NO_GENERATION);
  undo();
  return 'not written';
}

function undo(): void {
  try {
    connection.rollback();
  } catch {
    // The next transaction rolls it back before it begins.
  }
}

/** Runs after the reply, so that no caller waits for a checkpoint. */
function tidy(): void {
  try {
    connection.checkpoint();
  } catch {
    // The next transaction meets the same error, and reports it to a caller.
  }
}

port.on('message', (order: WriteOrder | 'end') => {
  if (order === 'end') {
    connection.close();
    port.close();
  } else {
    port.postMessage(attempt(order));
    tidy();
  }
});
port.postMessage('ready' satisfies WriterThreadReply);
