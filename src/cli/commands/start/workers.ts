/**
 * `serve --workers N`: several processes on one port and one store. This process accepts the connections and hands each to a worker in
 * turn; a worker is a gateway like any other, and a replica of the others. A worker that dies is replaced; one that cannot start at all
 * ends the command, with its error. When this process is asked to stop, the workers are, and it ends after the last of them.
 */
import cluster, { type Worker } from 'node:cluster';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { stopRequested } from '../../stop-signals.ts';

/** What a worker is told before it starts. */
export interface WorkerOrders {
  /** The token for clients on this machine: the same at every worker. */
  readonly token: string;
  /** One worker makes the link that signs in to the console. */
  readonly first: boolean;
}

/** What a worker says once it serves. */
export interface WorkerReady {
  readonly url: string;
  readonly token: string | null;
  readonly console: string | null;
  readonly waiting: number;
  readonly resumed: number;
}

/** Asked by the worker: what it is told before it listens for it is lost. */
const ORDERS_PLEASE = 'orders please';
/** Longer than a worker takes to end running work and write its receipts. */
const MOST_STOP_MS = 30_000;
/** A worker that dies again and again is started more and more seldom. */
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 10_000;
/** A worker that has run for this long did not die of its start. */
const SETTLED_MS = 10_000;

/** Runs until it is asked to stop. `started` is called once all workers serve. Resolves with the exit code. */
export async function runWorkers(count: number, started: (first: WorkerReady) => void): Promise<number> {
  const token = randomBytes(24).toString('base64url');
  const stop = stopRequested();
  const running = new Set<Worker>();
  const stopping = new AbortController();
  let fail: (code: number) => void = () => {};
  const failed = new Promise<number>((resolve) => {
    fail = resolve;
  });
  let serving = false;
  cluster.setupPrimary({ args: process.argv.slice(2) });

  function startWorker(first: boolean): Promise<WorkerReady> {
    const worker = cluster.fork();
    running.add(worker);
    return new Promise((resolve) => {
      worker.on('message', (said: WorkerReady | typeof ORDERS_PLEASE) => {
        if (said === ORDERS_PLEASE) worker.send({ token, first } satisfies WorkerOrders);
        else resolve(said);
      });
      worker.once('exit', (code) => {
        running.delete(worker);
        if (!serving && !stopping.signal.aborted) fail(code || 1);
      });
    });
  }

  /** Keeps one place filled. */
  async function keep(worker: Worker, wait = FIRST_WAIT_MS): Promise<void> {
    const since = performance.now();
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      worker.once('exit', (code, signal) => resolve([code, signal])),
    );
    if (stopping.signal.aborted) return;
    process.stderr.write(
      `tollbridge: worker ${worker.process.pid} ended (${signal ?? code}); another one is started\n`,
    );
    const next = performance.now() - since > SETTLED_MS ? FIRST_WAIT_MS : Math.min(wait * 2, LONGEST_WAIT_MS);
    await pause(next, undefined, { signal: stopping.signal }).catch(() => {});
    if (stopping.signal.aborted) return;
    void startWorker(false);
    await keep([...running].at(-1) as Worker, next);
  }

  async function begin(): Promise<void> {
    // The first one alone: it makes what the others then find, such as keys and tables.
    const first = await startWorker(true);
    await Promise.all(Array.from({ length: count - 1 }, () => startWorker(false)));
    serving = true;
    for (const worker of running) void keep(worker);
    started(first);
  }
  void begin();

  const code = await Promise.race([stop.requested.then(() => 0), failed]);
  stop.letGo();
  stopping.abort();
  await endAll(running);
  return code;
}

async function endAll(running: ReadonlySet<Worker>): Promise<void> {
  const ended = [...running].map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  for (const worker of running) worker.process.kill('SIGTERM');
  const late = setTimeout(() => {
    for (const worker of running) worker.process.kill('SIGKILL');
  }, MOST_STOP_MS);
  await Promise.all(ended);
  clearTimeout(late);
}

/** In a worker: what the process that started it has to say. */
export function workerOrders(): Promise<WorkerOrders> {
  return new Promise((resolve) => {
    process.once('message', (orders: WorkerOrders) => resolve(orders));
    process.send?.(ORDERS_PLEASE);
  });
}

export function tellReady(ready: WorkerReady): void {
  process.send?.(ready);
}

export function isWorker(): boolean {
  return cluster.isWorker;
}

/** After this nothing keeps the worker from ending. */
export function leaveParent(): void {
  if (cluster.worker?.isConnected()) cluster.worker.disconnect();
}

/** A worker whose parent was killed stops in order, instead of at once as Node would have it. */
export function stopWithParent(): void {
  const { worker } = cluster;
  worker?.once('disconnect', () => {
    if (worker.exitedAfterDisconnect) return;
    worker.exitedAfterDisconnect = true;
    process.kill(process.pid, 'SIGTERM');
  });
}
