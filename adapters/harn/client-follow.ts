/** One remote task from the moment it was taken to its end: what it says is written down, what it asks is answered. */
import { asText, type End, Fault, type JsonObject, type Sink, type Work } from '../../src/index.ts';
import { isPassing, type Remote } from '../../src/wire/remote.ts';
import { createWonder, handOver, TOLD_ONLY, whenStopped } from '../../src/wire/remote-work.ts';
import type { BackendDeps, BackendSettings } from './client-config.ts';
import { keepFile } from './client-files.ts';
import { createQuestions } from './client-questions.ts';
import { type CheckedReceipt, checkReceipt } from './client-receipts.ts';
import { createReading, type Deed, isKnownState, isWaiting, type RemoteTask, toCoreEnd } from './client-translate.ts';
import { createWatch, type RemoteEvent } from './client-watch.ts';

export interface Desk {
  readonly settings: BackendSettings;
  readonly remote: Remote;
  readonly deps: BackendDeps;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

const LOST = 'some events of the remote were no longer kept when we came for them';

export async function follow(desk: Desk, given: RemoteTask): Promise<End> {
  const { settings, remote, deps, work, sink, signal, pause } = desk;
  const over = new AbortController();
  const reading = createReading(work.task);
  const watch = createWatch({ remote, taskId: given.id, pollMs: settings.pollMs, idleMs: settings.idleMs, pause });
  const questions = createQuestions({
    remote,
    sink,
    taskId: given.id,
    reading,
    log: deps.log,
    clock: deps.clock,
    signal: AbortSignal.any([signal, over.signal]),
    pause,
  });
  let reached = performance.now();
  const wonder = createWonder(sink, settings.silenceMs);
  let lost = false;

  /** True when the task itself should be looked at. */
  async function perform(deeds: readonly Deed[]): Promise<boolean> {
    let look = false;
    for (const deed of deeds) {
      if (deed.do === 'emit') await sink.emit(deed.fact);
      else if (deed.do === 'ask') await questions.look('INPUT_REQUIRED', deed.request).catch(onlyPassing);
      else if (deed.do === 'look') look = true;
      else {
        const files = { remote, sink, limit: settings.artifactLimit, log: deps.log };
        reading.name(deed.artifact.id, await keepFile(files, deed.artifact));
      }
    }
    return look;
  }

  /** A session's stream may tell of other tasks, too. */
  async function take(event: RemoteEvent): Promise<boolean> {
    reached = performance.now();
    const others = typeof event.task_id === 'string' && event.task_id !== given.id;
    return others ? false : await perform(reading.read(event));
  }

  /** The task if it has ended. */
  async function look(): Promise<RemoteTask | undefined> {
    let task: RemoteTask;
    try {
      task = await remote.call<RemoteTask>('GET', `/v1/tasks/${given.id}`);
    } catch (cause) {
      onlyPassing(cause);
      if (performance.now() - reached < settings.silenceMs) return undefined;
      throw new Fault('upstream_unavailable', 'the remote has been out of reach for too long', { cause });
    }
    reached = performance.now();
    // A call that is asked about is written down by the bridge, so questions come before what was held back.
    if (isWaiting(task.status)) await questions.look(task.status).catch(onlyPassing);
    await perform(reading.rest());
    if (toCoreEnd(task)) return task;
    if (isKnownState(task.status)) wonder.rest();
    else await wonder.at(asText(task.status));
    return undefined;
  }

  async function untilOver(): Promise<RemoteTask> {
    for await (const sign of watch.signs(over.signal)) {
      if (sign.kind === 'lost') lost = true;
      if (sign.kind === 'unreachable')
        deps.log.warn({ err: sign.cause, remote: settings.name }, 'a remote is out of reach');
      const ended = sign.kind === 'event' && !(await take(sign.event)) ? undefined : await look();
      if (ended) return ended;
    }
    throw new Fault('client_closed', 'the work was told to stop');
  }

  async function catchUp(): Promise<void> {
    try {
      for (const event of await watch.rest()) await take(event);
    } catch (cause) {
      deps.log.warn({ err: cause, remote: settings.name }, 'the last events of a remote could not be read');
      lost = true;
    }
    await perform(reading.end());
  }

  async function finish() {
    const task = await untilOver();
    await catchUp();
    const receipt = settings.receipts === 'ignored' ? undefined : await receiptOf(desk, task);
    const end = await endOf(desk, task, receipt);
    const proof = receipt ? { receipt_id: receipt.receipt_id } : {};
    return { end: { ...end, not_reported: lost ? [TOLD_ONLY, LOST] : [TOLD_ONLY] }, proof };
  }

  const cancel = () => {
    const body = { reason: 'stopped by whoever gave the work' };
    return remote.call('POST', `/v1/tasks/${given.id}/cancel`, { body, key: `tollbridge-cancel-${given.id}` });
  };
  const { name, cancelMs } = settings;
  const stopping = whenStopped({ name, cancelMs, signal, over, log: deps.log, cancel });
  try {
    return await handOver({ name, taskId: given.id, host: remote.base.host, sink, signal }, finish);
  } finally {
    stopping.close();
    over.abort();
  }
}

async function receiptOf({ remote, sink, deps }: Desk, task: RemoteTask): Promise<CheckedReceipt | undefined> {
  try {
    const checked = await checkReceipt(remote, task);
    if (!checked) return undefined;
    const note = checked.valid ? 'the receipt of the remote is sound' : 'the receipt of the remote proves nothing';
    const payload = { note, remote_receipt: checked as unknown as JsonObject };
    await sink.emit({ event: 'vendor.tollbridge.note', payload });
    return checked;
  } catch (cause) {
    deps.log.warn({ err: cause, remote_task: task.id }, 'the receipt of a remote could not be fetched');
    return undefined;
  }
}

async function endOf({ remote, settings }: Desk, task: RemoteTask, receipt: CheckedReceipt | undefined): Promise<End> {
  const path = `/v1/outcomes/${task.outcome_id}`;
  const outcome = task.outcome_id
    ? await remote.call<{ summary?: string; metrics?: JsonObject }>('GET', path).catch(() => undefined)
    : undefined;
  const end = toCoreEnd(task, outcome?.summary, outcome?.metrics) as End;
  if (settings.receipts !== 'required' || end.state !== 'COMPLETED' || receipt?.valid) return end;
  const message = receipt
    ? `the receipt of the remote does not verify: ${receipt.reason}`
    : 'the remote gave no receipt';
  return { state: 'FAILED', failure: { code: 'remote_receipt_invalid', message } };
}

function onlyPassing(cause: unknown): void {
  if (!isPassing(cause)) throw cause;
}
