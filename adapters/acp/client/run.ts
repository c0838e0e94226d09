/**
 * One task on an agent process: sends the prompt, records updates in arrival order, and submits the agent's requests to the
 * bridge. Ends with the result of the prompt, with the process, or by a timeout.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AGENT_EVENT, HITL_REQUESTED } from '../../../mappings/acp-harn.ts';
import {
  anySignal,
  asText,
  type End,
  Fault,
  type Json,
  type JsonObject,
  type Loss,
  type Sink,
  vendorEvent,
  type Work,
} from '../../../src/index.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import type { Asked } from '../../../src/transport/json-rpc/peer.ts';
import type { BackendDeps, BackendSettings } from '../config.ts';
import { harnPayload } from '../harn.ts';
import { olderHitl } from '../hitl.ts';
import { REFUSALS_REPORTED, refusalsBlock } from '../refusals.ts';
import { compact, textOf } from '../shapes.ts';
import { toCoreEnd, toCoreFailure } from '../translate.ts';
import { createFiles } from './acts/files.ts';
import { createHostCalls } from './acts/host-calls.ts';
import { createTerminals } from './acts/terminals.ts';
import { type AgentProcess, isStanding } from './agent-process.ts';
import type { RecordedFact } from './facts.ts';
import { historyBlock, promptBlocks } from './prompt.ts';
import { createUpdateReader } from './read-updates.ts';
import { createRequests } from './requests.ts';

/** File reads and writes finish within this time. */
const SETTLE_MS = 500;

export interface RunOptions {
  readonly settings: BackendSettings;
  readonly deps: BackendDeps;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly agentProcess: AgentProcess;
}

export async function runTask({ settings, deps, work, sink, signal, agentProcess }: RunOptions): Promise<End> {
  const { task } = work;
  const { cwd, sessionId } = agentProcess;
  const reader = createUpdateReader({
    taskId: task.id,
    cwd,
    agent: settings.name,
    sessionId,
    thoughts: settings.thoughts,
    spent: agentProcess.spent,
  });

  // One queue: updates and requests of the agent are recorded in arrival order.
  let inbox: Promise<void> = Promise.resolve();
  function write(steps: readonly RecordedFact[]): Promise<void> {
    const written = inbox.then(async () => {
      for (const step of steps) await writeStep(sink, step);
    });
    inbox = written.catch(() => {});
    return written;
  }

  const terminals = createTerminals({
    sink,
    reader,
    taskId: task.id,
    cwd,
    agent: agentProcess.agentName,
    blocked: settings.blockedTerminal,
    inherit: settings.inherit,
    graceMs: settings.graceMs,
  });
  const files = createFiles({
    sink,
    reader,
    taskId: task.id,
    cwd,
    agent: agentProcess.agentName,
    outside: settings.outside,
    ids: deps.ids,
  });
  const hostCalls = createHostCalls({ sink, terminals, cwd, taskId: task.id, agent: agentProcess.agentName });
  const requests = createRequests({
    hostCalls,
    settings,
    sink,
    reader,
    files,
    terminals,
    write,
    agentProcess,
    log: deps.log,
    signal,
  });

  const inFlight = new Set<Promise<unknown>>();
  const attachment = agentProcess.attach({
    async update(update) {
      if (update.sessionUpdate === 'hitl_request') requests.harnQuestion(harnPayload(update));
      if (update.sessionUpdate === 'hitl_resolved') requests.harnSettled(harnPayload(update));
      await write(reader.update(update));
    },
    async notification(method, params) {
      if (method === AGENT_EVENT) await write(reader.agentEvent(params));
      if (method === HITL_REQUESTED) requests.harnQuestion(olderHitl(params));
    },
    request(asked: Asked) {
      const answered = requests.answer(asked);
      inFlight.add(answered);
      return answered.finally(() => inFlight.delete(answered));
    },
  });

  try {
    await write(introduction(agentProcess, settings));
    await write(beforehand());
    const blocks = await promptBlocks(work, agentProcess.can);
    const history = agentProcess.remembers ? undefined : await historyBlock(work);
    const refusals = agentProcess.untold.splice(0);
    if (refusals.length > 0) await write([{ event: REFUSALS_REPORTED, payload: { refusals } }]);
    const prompt = [
      ...(history ? [history] : []),
      ...blocks,
      ...(refusals.length > 0 ? [refusalsBlock(refusals)] : []),
    ];
    agentProcess.remembers = true;
    return await converse({ sessionId, prompt });
  } finally {
    // The end of a call is recorded after the turn, too; other late updates are only noted.
    attachment.leave((update) => write(reader.late(update)).catch(() => {}));
    await terminals.close();
    // Acts in progress are recorded before the task ends, unless they wait for a person.
    await Promise.race([Promise.allSettled(inFlight), pause(SETTLE_MS, undefined, { ref: false })]);
    await inbox;
  }

  /** Updates that arrived between tasks: states are recorded, the rest is only noted. */
  function beforehand(): RecordedFact[] {
    const received = agentProcess.late.splice(0);
    const late = received.flatMap(({ sessionUpdate: kind }) => (isStanding(kind) ? [] : [asText(kind).slice(0, 100)]));
    const steps = received
      .filter(({ sessionUpdate: kind }) => isStanding(kind))
      .flatMap((update) => reader.update(update));
    return late.length > 0 ? [...steps, { event: vendorEvent('vendor.acp.late'), payload: { updates: late } }] : steps;
  }

  async function converse(params: { sessionId: string; prompt: readonly JsonObject[] }): Promise<End> {
    const over = new AbortController();
    const stalled = watch(over.signal);
    const stopped = stop(over.signal);
    try {
      const turn = agentProcess.peer.request('session/prompt', params).then(
        async (result) => ({ end: await finish(result) }),
        async (cause) => {
          if (!(cause instanceof RpcError)) throw cause;
          const { summary } = await finishSteps(null);
          const end = toCoreFailure(cause, signal.aborted);
          return { end: { ...end, ...(summary && { summary }), loss: [...(end.loss ?? []), ...unmetered(null)] } };
        },
      );
      turn.catch(() => {});
      const { end } = await Promise.race([turn, stalled, stopped]);
      return end;
    } catch (cause) {
      // The text sent until then is still recorded.
      await finishSteps(null).catch(() => {});
      throw cause;
    } finally {
      over.abort();
    }
  }

  async function finishSteps(result: Json): Promise<{ summary: string }> {
    const { steps, summary } = reader.finish(result);
    await write(steps);
    agentProcess.spent = reader.meter.spent;
    return { summary };
  }

  async function finish(result: Json): Promise<End> {
    const { summary } = await finishSteps(result);
    const end = toCoreEnd(result, summary);
    const unseen = requests.held ? [] : ['of what the agent did without asking, only its own report is known'];
    return { ...end, not_reported: unseen, loss: unmetered(result) };
  }

  function unmetered(result: Json): Loss[] {
    return reader.meter.total(result) ? [] : [{ aspect: 'usage', why: 'the agent reports neither tokens nor money' }];
  }

  /** After a cancel: the agent is asked to stop, and ended when it does not. */
  async function stop(over: AbortSignal): Promise<never> {
    await aborted(signal, over);
    if (over.aborted) return await forever();
    await agentProcess.peer.notify('session/cancel', { sessionId });
    await pause(settings.cancelMs, undefined, { signal: over }).catch(() => {});
    if (over.aborted) return await forever();
    const why = new Fault('deadline_exceeded', `the agent ${settings.name} did not stop when it was asked to`);
    await agentProcess.close(why);
    throw why;
  }

  /** An agent that is silent while it works, with no request to us in progress, has stalled. */
  async function watch(over: AbortSignal): Promise<never> {
    let waitingSince = 0;
    for (;;) {
      await pause(Math.min(settings.stallMs, Math.max(50, settings.stallMs / 4)), undefined, { signal: over }).catch(
        () => {},
      );
      if (over.aborted) return await forever();
      const since = Math.max(agentProcess.receivedAt, requests.settledAt, waitingSince);
      if (requests.open > 0 || performance.now() - since < settings.stallMs) continue;
      // A call of the agent through another door may take long, or wait for a person.
      if (await work.awaiting?.()) {
        waitingSince = performance.now();
        continue;
      }
      const why = new Fault('upstream_unavailable', `the agent ${settings.name} has not said a word for too long`);
      await agentProcess.close(why);
      throw why;
    }
  }
}

async function writeStep(sink: Sink, step: RecordedFact): Promise<void> {
  if ('event' in step) return await sink.emit(step);
  const { id } = await sink.artifact(step.file);
  if (step.fact) await sink.emit(step.fact(id));
}

/** Records which agent does the work, once per process. */
function introduction(agentProcess: AgentProcess, { name }: BackendSettings): RecordedFact[] {
  const steps: RecordedFact[] = [];
  if (!agentProcess.introduced) {
    agentProcess.introduced = true;
    const { name: called, version, title } = agentProcess.agent;
    const payload = compact({
      agent: name,
      name: textOf(called),
      title: textOf(title),
      version: textOf(version),
      protocol_version: 1,
      session_id: agentProcess.sessionId,
      remembers: agentProcess.remembers,
    });
    steps.push({ event: vendorEvent('vendor.acp.connected'), payload });
    if (agentProcess.catalog !== undefined) {
      steps.push({ event: vendorEvent('vendor.harn.provider_catalog'), payload: { catalog: agentProcess.catalog } });
    }
  }
  return steps;
}

function aborted(...signals: readonly AbortSignal[]): Promise<void> {
  const any = anySignal([...signals]);
  return new Promise((resolve) => {
    if (any.aborted) resolve();
    else any.addEventListener('abort', () => resolve(), { once: true });
  });
}

function forever(): Promise<never> {
  return new Promise(() => {});
}
