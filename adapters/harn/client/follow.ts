/** Follows one remote task from its submission to its end: records its events and has its questions answered. */
import { anySignal, asText, type End, Fault, type JsonObject, type Sink, type Work } from '../../../src/index.ts';
import { createCarried } from '../../../src/transport/outbound/carried.ts';
import { isPassing, segment } from '../../../src/transport/outbound/remote.ts';
import { type RemoteDecision, remoteDecided } from '../../../src/transport/outbound/remote-decisions.ts';
import { createWonder, handOver, REPORTED_ONLY, whenStopped } from '../../../src/transport/outbound/remote-work.ts';
import type { BackendDeps, BackendSettings } from './config.ts';
import { keepFile } from './files.ts';
import type { HarnRemote } from './http.ts';
import { createQuestions } from './questions.ts';
import { type CheckedReceipt, checkReceipt, toRemoteReceipt } from './receipts.ts';
import {
  createUpdateReader,
  type Instruction,
  isKnownState,
  isWaiting,
  type RemoteTask,
  toCoreEnd,
} from './translate.ts';
import { createWatch, type RemoteEvent } from './watch.ts';

export interface FollowContext {
  readonly settings: BackendSettings;
  readonly remote: HarnRemote;
  readonly deps: BackendDeps;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
}

const LOST = 'some events of the remote were no longer kept when we came for them';

export async function follow(context: FollowContext, submitted: RemoteTask): Promise<End> {
  const { settings, remote, deps, work, signal } = context;
  const carried = createCarried(context.sink);
  const { sink } = carried;
  const reference = await work.reference?.('harn');
  const over = new AbortController();
  const reader = createUpdateReader(work.task);
  const watch = createWatch({ remote, taskId: submitted.id, pollMs: settings.pollMs, idleMs: settings.idleMs });
  const questions = createQuestions({
    remote,
    sink,
    taskId: submitted.id,
    reader,
    log: deps.log,
    clock: deps.clock,
    signal: anySignal([signal, over.signal]),
  });
  let reached = performance.now();
  const wonder = createWonder(sink, settings.silenceMs);
  let lost = false;

  /** True when the task itself should be looked at. */
  async function perform(instructions: readonly Instruction[]): Promise<boolean> {
    let look = false;
    for (const instruction of instructions) {
      if (instruction.do === 'emit') await sink.emit(instruction.fact);
      else if (instruction.do === 'ask') await questions.look('INPUT_REQUIRED', instruction.request).catch(onlyPassing);
      else if (instruction.do === 'look') look = true;
      else if (instruction.do === 'ruled') await ruled(instruction.decision);
      else if (instruction.do === 'close') await questions.decidedThere(instruction.requestId);
      else {
        const files = { remote, sink, limit: settings.artifactLimit, log: deps.log };
        reader.name(instruction.artifact.id, await keepFile(files, instruction.artifact));
      }
    }
    return look;
  }

  /** A question of ours about the same call is over before it is written down how theirs was answered. */
  async function ruled(decision: RemoteDecision): Promise<void> {
    const relayed = decision.ask_id ? await questions.decidedThere(decision.ask_id) : false;
    for (const fact of remoteDecided(settings.name, decision, relayed)) await sink.emit(fact);
  }

  /** A session's stream may contain events of other tasks. */
  async function take(event: RemoteEvent): Promise<boolean> {
    reached = performance.now();
    const others = typeof event.task_id === 'string' && event.task_id !== submitted.id;
    return others ? false : await perform(reader.read(event));
  }

  /** The task if it has ended. */
  async function look(): Promise<RemoteTask | undefined> {
    let task: RemoteTask;
    try {
      task = await remote.call<RemoteTask>('GET', `/v1/tasks/${segment(submitted.id)}`);
    } catch (cause) {
      onlyPassing(cause);
      if (performance.now() - reached < settings.silenceMs) return undefined;
      throw new Fault('upstream_unavailable', 'the remote has been out of reach for too long', { cause });
    }
    reached = performance.now();
    // The bridge records a call that is asked about, so questions are put before held-back events are recorded.
    if (isWaiting(task.status)) await questions.look(task.status).catch(onlyPassing);
    await perform(reader.rest());
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
    throw new Fault('client_closed', 'the work was canceled');
  }

  async function catchUp(): Promise<void> {
    try {
      for await (const event of watch.rest()) await take(event);
    } catch (cause) {
      deps.log.warn({ err: cause, remote: settings.name }, 'the last events of a remote could not be read');
      lost = true;
    }
    await perform(reader.end());
  }

  async function finish() {
    const task = await untilOver();
    await catchUp();
    const receipt = settings.receipts === 'ignored' ? undefined : await receiptOf(context, task);
    const end = await endOf(context, task, receipt);
    const reported = { ...end, not_reported: lost ? [REPORTED_ONLY, LOST] : [REPORTED_ONLY] };
    return { end: reported, receipt: receipt && toRemoteReceipt(receipt) };
  }

  const cancel = () => {
    const body = { reason: 'stopped by the client that submitted the work' };
    return remote.call('POST', `/v1/tasks/${segment(submitted.id)}/cancel`, {
      body,
      key: `tollbridge-cancel-${submitted.id}`,
    });
  };
  const { name, cancelMs } = settings;
  const stopping = whenStopped({ name, cancelMs, signal, over, log: deps.log, cancel });
  try {
    return await handOver({ name, taskId: submitted.id, host: remote.base.host, carried, signal, reference }, finish);
  } finally {
    stopping.close();
    over.abort();
  }
}

async function receiptOf({ remote, sink, deps }: FollowContext, task: RemoteTask): Promise<CheckedReceipt | undefined> {
  try {
    const checked = await checkReceipt(remote, task);
    if (!checked) return undefined;
    const note = checked.valid ? 'the receipt of the remote is sound' : 'the receipt of the remote proves nothing';
    const payload = { note, remote_receipt: checked as JsonObject };
    await sink.emit({ event: 'vendor.tollbridge.note', payload });
    return checked;
  } catch (cause) {
    deps.log.warn({ err: cause, remote_task: task.id }, 'the receipt of a remote could not be fetched');
    return undefined;
  }
}

interface RemoteOutcome {
  readonly summary?: string;
  readonly metrics?: JsonObject;
}

async function endOf(
  { remote, settings }: FollowContext,
  task: RemoteTask,
  receipt: CheckedReceipt | undefined,
): Promise<End> {
  const { outcome_id: named } = task;
  const outcome =
    typeof named === 'string' && named !== ''
      ? await remote.call<RemoteOutcome>('GET', `/v1/outcomes/${segment(named)}`).catch(() => undefined)
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
