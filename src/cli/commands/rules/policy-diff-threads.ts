/** Threads that compare parts of the log, each with a connection of its own. One that fails fails the command. */
import { Worker } from 'node:worker_threads';
import { Fault, type FaultKind } from '../../../model/faults.ts';
import type { StoreLocation } from '../../../store/index.ts';
import type { Differences, LogPart } from './policy-diff-part.ts';

/** What a thread is started with. */
export interface DiffThreadData {
  readonly location: StoreLocation;
  /** The file of the rules. */
  readonly rules: string;
  readonly json: boolean;
}
export type DiffReply = Differences | { readonly failed: { readonly kind: FaultKind; readonly message: string } };

export interface DiffThread {
  /** Parts are compared in the order of these calls. */
  compare(part: LogPart): Promise<Differences>;
  close(): Promise<void>;
}

export function startDiffThread(file: string, workerData: DiffThreadData): DiffThread {
  // A descriptor of a file beside the log must stay open: closing it would drop the locks that this process holds on the log.
  const worker = new Worker(file, { workerData, trackUnmanagedFds: false });
  const waiting: { resolve(found: Differences): void; reject(cause: unknown): void }[] = [];
  const fail = (cause: unknown): void => {
    for (const { reject } of waiting.splice(0)) reject(cause);
  };
  let ended: Fault | undefined;
  worker.on('message', (reply: DiffReply) => {
    const first = waiting.shift();
    if ('failed' in reply) first?.reject(new Fault(reply.failed.kind, reply.failed.message));
    else first?.resolve(reply);
  });
  worker.on('error', fail);
  const exit = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      ended = new Fault('internal', 'a thread that compares decisions has ended');
      fail(ended);
      resolve();
    });
  });
  return {
    compare: (part) =>
      new Promise((resolve, reject) => {
        if (ended) return reject(ended);
        waiting.push({ resolve, reject });
        worker.postMessage(part);
      }),
    close() {
      worker.postMessage('end');
      return exit;
    },
  };
}
