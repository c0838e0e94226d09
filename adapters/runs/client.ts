/**
 * A remote Agent Harness as an agent of this house: it is given a run for each task, followed to its end, asked and answered
 * by signals, and stopped. What it did it did elsewhere: its word for it is written down as its word.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { isOver, RUN_STATUSES } from '../../mappings/runs.ts';
import {
  type AgentBackend,
  type Answer,
  asText,
  type End,
  Fault,
  type JsonObject,
  type Sink,
  type Work,
} from '../../src/index.ts';
import { createRemote, isPassing, Refusal, type Remote } from '../../src/wire/remote.ts';
import { createWonder, handOver, TOLD_ONLY, whenStopped } from '../../src/wire/remote-work.ts';
import { type BackendDeps, type BackendSettings, backendSettingsOf, type RunsBackendConfig } from './client-config.ts';
import { give, persist } from './client-give.ts';
import { createReading, type Deed, type RemoteEnd, type RemoteQuestion } from './client-translate.ts';
import { createWatch } from './client-watch.ts';

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
      const desk: Desk = { settings, remote, deps, work, sink, signal };
      return { done: give(remote, settings, work, signal, pause).then((runId) => follow(desk, runId)) };
    },
  };
}

interface Desk {
  readonly settings: BackendSettings;
  readonly remote: Remote;
  readonly deps: BackendDeps;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
}

const LEFT_OUT = 'some events of the remote could not be had';

async function follow(desk: Desk, runId: string): Promise<End> {
  const { settings, remote, deps, work, sink, signal } = desk;
  const over = new AbortController();
  const path = `/v1/runs/${encodeURIComponent(runId)}`;
  const reading = createReading(work.task.id);
  const watch = createWatch({ remote, runId, pollMs: settings.pollMs, idleMs: settings.idleMs, pause });
  let reached = performance.now();
  const wonder = createWonder(sink, settings.silenceMs);

  /** How it ended, when one of these said so. */
  async function perform(deeds: readonly Deed[]): Promise<RemoteEnd | undefined> {
    let end: RemoteEnd | undefined;
    for (const deed of deeds) {
      if (deed.do === 'emit') await sink.emit(deed.fact);
      else if (deed.do === 'ask') settle(deed.question);
      else if (deed.do === 'stalled') goOn();
      else end = deed.as;
    }
    return end;
  }

  /** Answered in its own time; meanwhile the run is followed as before. */
  function settle(question: RemoteQuestion): void {
    ask(question)
      .then((answer) => (signal.aborted || over.signal.aborted ? undefined : tell(question, answer)))
      .catch((cause) => {
        if (!signal.aborted && !over.signal.aborted)
          deps.log.warn({ err: cause, run: runId }, 'a question of a remote could not be settled');
      });
  }

  async function ask(question: RemoteQuestion): Promise<Answer> {
    const { key, text } = question;
    if (question.kind === 'input')
      return await sink.ask({ kind: 'input', key, question: text ?? 'The remote waits for an input.' });
    const answer = await sink.ask({ kind: 'approval', action: question.action, ...(text && { question: text }) });
    if (answer.kind === 'denied' || answer.kind === 'expired') reading.denied(question.action.tool_call_id ?? '');
    return answer;
  }

  async function tell(question: RemoteQuestion, answer: Answer): Promise<void> {
    if (answer.kind === 'canceled') return;
    const body = { ...signalFor(answer), idempotency_key: `tollbridge-${question.key}` };
    await persist(() => remote.call('POST', `${path}/signal`, { body, signal }), signal, pause).catch(unlessAnswered);
  }

  /** A stalled run is told to go on, where that is wanted; that it went on by itself meanwhile is fine. */
  function goOn(): void {
    if (!settings.resumes) return;
    persist(() => remote.call('POST', `${path}/resume`, { signal }), signal, pause).catch((cause) => {
      if (!(cause instanceof Refusal && cause.status === 409))
        deps.log.warn({ err: cause, run: runId }, 'a stalled run of a remote could not be resumed');
    });
  }

  /** The end, if the run itself says that it has ended. */
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
    if (!run?.awaiting_input) await perform(reading.rest());
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
      const end = sign.kind === 'event' ? await perform(reading.read(sign.event)) : await ended();
      if (end) return end;
    }
    throw new Fault('client_closed', 'the work was told to stop');
  }

  /** The run says that it has ended: what it told last says how, and comes first. */
  async function ended(): Promise<RemoteEnd | undefined> {
    const end = await look();
    if (!end) return undefined;
    let told: RemoteEnd | undefined;
    for (const event of await watch.rest().catch(() => [])) told = (await perform(reading.read(event))) ?? told;
    return told ?? end;
  }

  async function finish() {
    const end = await untilOver();
    await perform(reading.rest());
    const not_reported = watch.missing ? [TOLD_ONLY, LEFT_OUT] : [TOLD_ONLY];
    return { end: { ...toCoreEnd(end, reading.lastSaid), not_reported } };
  }

  const cancel = () => remote.call('POST', `${path}/cancel`, { body: { reason: 'stopped by whoever gave the work' } });
  const { name, cancelMs } = settings;
  const stopping = whenStopped({ name, cancelMs, signal, over, log: deps.log, cancel });
  try {
    return await handOver({ name, taskId: runId, host: remote.base.host, sink, signal }, finish);
  } finally {
    stopping.close();
    over.abort();
  }
}

/** Anything but a yes or a value is a no, and a no fails the run: the remote has no smaller one. */
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
      return { state: 'COMPLETED', ...(lastSaid && { summary: lastSaid.slice(0, 500) }) };
    case 'cancelled':
      return { state: 'CANCELED', summary: 'the remote was told to stop' };
    case 'failed':
      return {
        state: 'FAILED',
        failure: { code: reason ?? 'remote_failed', message: `the remote failed: ${reason ?? 'it did not say why'}` },
      };
  }
}

/** An answer that came too late, or second, is nobody's fault. */
function unlessAnswered(cause: unknown): void {
  if (!(cause instanceof Refusal && (cause.status === 409 || cause.status === 404))) throw cause;
}

function wordIn(body: unknown, name: string): string {
  const word = ((body ?? {}) as Record<string, unknown>)[name];
  return typeof word === 'string' ? word : '';
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}
