/**
 * A remote Agent Harness as an agent. The backend creates a run for each task, follows it to its end, answers its questions by
 * signals, and cancels it. The remote acted elsewhere, so its account of its acts is recorded as its claim.
 */

import { isOver, RUN_STATUSES } from '../../../mappings/runs.ts';
import {
  type AgentBackend,
  type Answer,
  asText,
  beginning,
  type End,
  Fault,
  type JsonObject,
  type Sink,
  type Work,
} from '../../../src/index.ts';
import { createCarried } from '../../../src/transport/outbound/carried.ts';
import {
  createRemote,
  isPassing,
  persist,
  type Remote,
  RemoteRefusal,
  segment,
} from '../../../src/transport/outbound/remote.ts';
import { remoteDecided } from '../../../src/transport/outbound/remote-decisions.ts';
import {
  claimedReceipt,
  createWonder,
  handOver,
  REPORTED_ONLY,
  whenStopped,
} from '../../../src/transport/outbound/remote-work.ts';
import { taskTrace } from '../../../src/transport/outbound/trace-context.ts';
import { type BackendDeps, type BackendSettings, backendSettingsOf, type RunsBackendConfig } from './config.ts';
import { give } from './submit.ts';
import { createUpdateReader, type Instruction, type RemoteEnd, type RemoteQuestion } from './translate.ts';
import { createWatch } from './watch.ts';

export function runsBackend(name: string, config: RunsBackendConfig, deps: BackendDeps): AgentBackend {
  const settings = backendSettingsOf(name, config);
  const remote = createRemote({
    base: settings.base,
    requestMs: settings.requestMs,
    token: async () => (settings.secret ? await deps.secret(settings.secret) : undefined),
    refusal: (body) => ({ code: wordIn(body, 'reason_code') || wordIn(body, 'error'), message: '' }),
  });
  return {
    name,
    // The remote finds the run by its key, so a restart of ours is not the end of it.
    abilities: { resume: true, evidence: 'observed' },
    async start(work, sink, signal) {
      const traced = remote.within(taskTrace(work.task));
      const context: FollowContext = { settings, remote: traced, deps, work, sink, signal };
      return { done: give(traced, settings, work, signal).then((runId) => follow(context, runId)) };
    },
  };
}

interface FollowContext {
  readonly settings: BackendSettings;
  readonly remote: Remote;
  readonly deps: BackendDeps;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
}

const LEFT_OUT = 'some events of the remote could not be had';

async function follow(context: FollowContext, runId: string): Promise<End> {
  const { settings, remote, deps, work, signal } = context;
  const carried = createCarried(context.sink);
  const { sink } = carried;
  const over = new AbortController();
  const path = `/v1/runs/${segment(runId)}`;
  const reader = createUpdateReader(work.task.id);
  const watch = createWatch({ remote, runId, pollMs: settings.pollMs, idleMs: settings.idleMs });
  const reference = await work.reference?.('runs');
  let reached = performance.now();
  const wonder = createWonder(sink, settings.silenceMs);
  const asked: { askId: string | undefined; taken: AbortController; settled: Promise<boolean> }[] = [];

  /** The end of the run, when one of these reports it. */
  async function perform(instructions: readonly Instruction[]): Promise<RemoteEnd | undefined> {
    let end: RemoteEnd | undefined;
    for (const instruction of instructions) {
      if (instruction.do === 'emit') await sink.emit(instruction.fact);
      else if (instruction.do === 'ask') settle(instruction.question);
      else if (instruction.do === 'answered') await answeredThere(instruction.askId);
      else if (instruction.do === 'ruled') {
        const { decision } = instruction;
        const relayed = decision.ask_id ? await answeredThere(decision.ask_id) : false;
        for (const fact of remoteDecided(settings.name, decision, relayed, instruction.ext)) await sink.emit(fact);
      } else if (instruction.do === 'stalled') goOn();
      else end = instruction.as;
    }
    return end;
  }

  /** Waits for the answer in the background; meanwhile the run is followed as before. */
  function settle(question: RemoteQuestion): void {
    const taken = new AbortController();
    const settled = ask(question, taken.signal)
      .then((answer) => {
        if (signal.aborted || over.signal.aborted || taken.signal.aborted) return false;
        return sendAnswer(question, answer);
      })
      .catch((cause) => {
        if (!signal.aborted && !over.signal.aborted)
          deps.log.warn({ err: cause, run: runId }, 'a question of a remote could not be settled');
        return false;
      });
    asked.push({ askId: question.askId, taken, settled });
  }

  /**
   * The remote reports that this question, or without an id the open one, has been decided. True when the answer was ours;
   * otherwise our question is withdrawn, and the promise resolves when that is logged.
   */
  async function answeredThere(askId: string | undefined): Promise<boolean> {
    const question = askId ? asked.find((each) => each.askId === askId) : asked.at(-1);
    question?.taken.abort();
    return (await question?.settled) ?? false;
  }

  async function ask(question: RemoteQuestion, withdrawn: AbortSignal): Promise<Answer> {
    const { key, text } = question;
    if (question.kind === 'input')
      return await sink.ask({ kind: 'input', key, question: text ?? 'The remote waits for an input.', withdrawn });
    return await sink.ask({
      kind: 'approval',
      action: question.action,
      ...(text && { question: text }),
      withdrawn,
    });
  }

  async function sendAnswer(question: RemoteQuestion, answer: Answer): Promise<boolean> {
    const body = { ...signalFor(answer), idempotency_key: `tollbridge-${question.key}` };
    const send = () => remote.call('POST', `${path}/signal`, { body, signal });
    return await persist(send, signal, settings.silenceMs).then(() => true, unlessAnswered);
  }

  /** Resumes a stalled run, where configured; a run that continued by itself meanwhile is no error. */
  function goOn(): void {
    if (!settings.resumes) return;
    persist(() => remote.call('POST', `${path}/resume`, { signal }), signal, settings.silenceMs).catch((cause) => {
      if (!(cause instanceof RemoteRefusal && cause.status === 409))
        deps.log.warn({ err: cause, run: runId }, 'a stalled run of a remote could not be resumed');
    });
  }

  /** The end, if the run itself reports that it has ended. */
  async function look(): Promise<RemoteEnd | undefined> {
    let run: JsonObject;
    try {
      run = await remote.call<JsonObject>('GET', path);
    } catch (cause) {
      if (!isPassing(cause)) throw cause;
      if (performance.now() - reached < settings.silenceMs) return undefined;
      throw new Fault('upstream_unavailable', 'the remote has been out of reach for too long', { cause });
    }
    reached = performance.now();
    // A call that is about to be asked about is written down by the bridge.
    if (!run?.awaiting_input) await perform(reader.rest());
    const status = asText(run?.status);
    if (isOver(status)) return { status: status as RemoteEnd['status'] };
    if ((RUN_STATUSES as readonly string[]).includes(status)) wonder.rest();
    else await wonder.at(status);
    return undefined;
  }

  async function untilOver(): Promise<RemoteEnd> {
    for await (const sign of watch.signs(over.signal)) {
      if (sign.kind === 'event') reached = performance.now();
      if (sign.kind === 'unreachable')
        deps.log.warn({ err: sign.cause, remote: settings.name }, 'a remote is out of reach');
      const end = sign.kind === 'event' ? await perform(reader.read(sign.event)) : await ended();
      if (end) return end;
    }
    throw new Fault('client_closed', 'the work was canceled');
  }

  /** The run reports that it has ended: its last events say how, and are read first. */
  async function ended(): Promise<RemoteEnd | undefined> {
    const end = await look();
    if (!end) return undefined;
    let reported: RemoteEnd | undefined;
    try {
      for await (const event of watch.rest()) reported = (await perform(reader.read(event))) ?? reported;
    } catch (cause) {
      deps.log.warn({ err: cause, run: runId }, 'the last events of a remote could not be read');
    }
    return reported ?? end;
  }

  async function finish() {
    const end = await untilOver();
    await perform(reader.rest());
    const not_reported = watch.missing ? [REPORTED_ONLY, LEFT_OUT] : [REPORTED_ONLY];
    const run = await remote.call<JsonObject>('GET', path).catch(() => undefined);
    const receipt = claimedReceipt(run?.tollbridge);
    return { end: { ...toCoreEnd(end, reader.lastSaid), not_reported }, receipt };
  }

  const cancel = () =>
    remote.call('POST', `${path}/cancel`, { body: { reason: 'stopped by the client that submitted the work' } });
  const { name, cancelMs } = settings;
  const stopping = whenStopped({ name, cancelMs, signal, over, log: deps.log, cancel });
  try {
    return await handOver({ name, taskId: runId, host: remote.base.host, carried, signal, reference }, finish);
  } finally {
    stopping.close();
    over.abort();
  }
}

/** Everything but an approval or a value is a rejection, and a rejection fails the run: the API has no smaller one. */
function signalFor(answer: Answer): JsonObject {
  switch (answer.kind) {
    case 'approved':
      return { action: 'approve', ...(answer.reason && { payload: { reason: answer.reason } }) };
    case 'value':
      return { action: 'submit_input', payload: answer.value as JsonObject };
    default:
      return { action: 'reject', payload: { reason: answer.reason } };
  }
}

function toCoreEnd({ status, reason }: RemoteEnd, lastSaid: string | undefined): End {
  switch (status) {
    case 'succeeded':
      return { state: 'COMPLETED', ...(lastSaid && { summary: beginning(lastSaid, 500) }) };
    case 'cancelled':
      return { state: 'CANCELED', summary: 'the remote was asked to stop' };
    case 'failed':
      return {
        state: 'FAILED',
        failure: { code: reason ?? 'remote_failed', message: `the remote failed: ${reason ?? 'it did not say why'}` },
      };
  }
}

/** An answer that came too late, or second, is no error. */
function unlessAnswered(cause: unknown): false {
  if (!(cause instanceof RemoteRefusal && (cause.status === 409 || cause.status === 404))) throw cause;
  return false;
}

function wordIn(body: unknown, name: string): string {
  const word = ((body ?? {}) as Record<string, unknown>)[name];
  return typeof word === 'string' ? word : '';
}
