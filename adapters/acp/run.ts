/**
 * One task, done by an agent at its seat: the prompt goes out, what comes back is written down in the order it came, what it
 * asks is asked of the bridge. Ends with the result of the prompt, with the agent, or with patience.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AGENT_EVENT } from '../../mappings/acp-harn.ts';
import { asText, type End, Fault, type Json, type JsonObject, type Sink, type Work } from '../../src/index.ts';
import type { BackendDeps, BackendSettings } from './config.ts';
import { createFiles } from './files.ts';
import { type Asked, RpcError } from './peer.ts';
import { historyBlock, promptBlocks } from './prompt.ts';
import { createReading } from './reading.ts';
import { createRequests } from './requests.ts';
import { isStanding, type Seat } from './seat.ts';
import { compact, textOf } from './shapes.ts';
import type { Step } from './step.ts';
import { createTerminals } from './terminals.ts';
import { toCoreEnd, toCoreFailure } from './translate.ts';

export interface RunOptions {
  readonly settings: BackendSettings;
  readonly deps: BackendDeps;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly seat: Seat;
}

export async function runTask({ settings, deps, work, sink, signal, seat }: RunOptions): Promise<End> {
  const { task } = work;
  const { cwd, sessionId } = seat;
  const reading = createReading({
    taskId: task.id,
    cwd,
    agent: settings.name,
    sessionId,
    thoughts: settings.thoughts,
    spent: seat.spent,
  });

  // One inbox: whatever the agent says or asks is written down in the order it arrived.
  let inbox: Promise<void> = Promise.resolve();
  function write(steps: readonly Step[]): Promise<void> {
    const written = inbox.then(async () => {
      for (const step of steps) await writeStep(sink, step);
    });
    inbox = written.catch(() => {});
    return written;
  }

  const terminals = createTerminals({
    sink,
    reading,
    taskId: task.id,
    cwd,
    agent: seat.agentName,
    blocked: settings.blockedTerminal,
    inherit: settings.inherit,
    graceMs: settings.graceMs,
  });
  const files = createFiles({
    sink,
    reading,
    taskId: task.id,
    cwd,
    agent: seat.agentName,
    outside: settings.outside,
    ids: deps.ids,
  });
  const requests = createRequests({ settings, sink, reading, files, terminals, write, seat, log: deps.log, signal });

  const sitting = seat.sit({
    async update(update) {
      if (update.sessionUpdate === 'hitl_request') requests.harnQuestion(update);
      if (update.sessionUpdate === 'hitl_resolved') requests.harnSettled(update);
      await write(reading.update(update));
    },
    async notification(method, params) {
      if (method === AGENT_EVENT) await write(reading.agentEvent(params));
    },
    request: (asked: Asked) => requests.answer(asked),
  });

  try {
    await write(introduction(seat, settings));
    await write(beforehand());
    const blocks = await promptBlocks(work, seat.can);
    const history = seat.remembers ? undefined : await historyBlock(work);
    const prompt = history ? [history, ...blocks] : blocks;
    seat.remembers = true;
    return await converse({ sessionId, prompt });
  } finally {
    sitting.leave();
    await terminals.close();
    await inbox;
  }

  /** What was heard of it when nobody listened: how it stands is told, the rest is only mentioned. */
  function beforehand(): Step[] {
    const heard = seat.late.splice(0);
    const late = heard.flatMap(({ sessionUpdate: kind }) => (isStanding(kind) ? [] : [asText(kind).slice(0, 100)]));
    const steps = heard
      .filter(({ sessionUpdate: kind }) => isStanding(kind))
      .flatMap((update) => reading.update(update));
    return late.length > 0 ? [...steps, { event: 'vendor.acp.late', payload: { updates: late } }] : steps;
  }

  async function converse(params: { sessionId: string; prompt: readonly JsonObject[] }): Promise<End> {
    const over = new AbortController();
    const stalled = watch(over.signal);
    const stopped = stop(over.signal);
    try {
      const turn = seat.peer.request('session/prompt', params as unknown as JsonObject).then(
        async (result) => ({ end: await finish(result) }),
        async (cause) => {
          if (!(cause instanceof RpcError)) throw cause;
          const { summary } = await finishSteps(null);
          return { end: { ...toCoreFailure(cause, signal.aborted), ...(summary && { summary }) } };
        },
      );
      turn.catch(() => {});
      const { end } = await Promise.race([turn, stalled, stopped]);
      return end;
    } catch (cause) {
      // What it had said until then is still what it said.
      await finishSteps(null).catch(() => {});
      throw cause;
    } finally {
      over.abort();
    }
  }

  async function finishSteps(result: Json): Promise<{ summary: string }> {
    const { steps, summary } = reading.finish(result);
    await write(steps);
    seat.spent = reading.meter.spent;
    return { summary };
  }

  async function finish(result: Json): Promise<End> {
    const { summary } = await finishSteps(result);
    const end = toCoreEnd(result, summary);
    const unseen = requests.held ? [] : ['what the agent did without asking is only known as it told it'];
    return { ...end, not_reported: unseen };
  }

  /** Told to stop: it is asked to, and ended when it does not. */
  async function stop(over: AbortSignal): Promise<never> {
    await aborted(signal, over);
    if (over.aborted) return await forever();
    await seat.peer.notify('session/cancel', { sessionId });
    await pause(settings.cancelMs, undefined, { signal: over }).catch(() => {});
    if (over.aborted) return await forever();
    const why = new Fault('deadline_exceeded', `the agent ${settings.name} did not stop when it was told to`);
    await seat.close(why);
    throw why;
  }

  /** Silence while it works and nothing is asked of us is an agent that hangs. */
  async function watch(over: AbortSignal): Promise<never> {
    let awaitedAt = 0;
    for (;;) {
      await pause(Math.min(settings.stallMs, Math.max(50, settings.stallMs / 4)), undefined, { signal: over }).catch(
        () => {},
      );
      if (over.aborted) return await forever();
      const since = Math.max(seat.heardAt, requests.settledAt, awaitedAt);
      if (requests.open > 0 || performance.now() - since < settings.stallMs) continue;
      // What it called through another door of ours may take its time, or wait for a person.
      if (await work.awaiting?.()) {
        awaitedAt = performance.now();
        continue;
      }
      const why = new Fault('upstream_unavailable', `the agent ${settings.name} has not said a word for too long`);
      await seat.close(why);
      throw why;
    }
  }
}

async function writeStep(sink: Sink, step: Step): Promise<void> {
  if ('event' in step) return await sink.emit(step);
  const { id } = await sink.artifact(step.file);
  if (step.fact) await sink.emit(step.fact(id));
}

/** Who does the work, once for each process. */
function introduction(seat: Seat, { name }: BackendSettings): Step[] {
  const steps: Step[] = [];
  if (!seat.told) {
    seat.told = true;
    const { name: called, version, title } = seat.agent;
    const payload = compact({
      agent: name,
      name: textOf(called),
      title: textOf(title),
      version: textOf(version),
      protocol_version: 1,
      session_id: seat.sessionId,
      remembers: seat.remembers,
    });
    steps.push({ event: 'vendor.acp.connected', payload });
    if (seat.catalog !== undefined) {
      steps.push({ event: 'vendor.harn.provider_catalog', payload: { catalog: seat.catalog } });
    }
  }
  return steps;
}

function aborted(...signals: readonly AbortSignal[]): Promise<void> {
  const any = AbortSignal.any([...signals]);
  return new Promise((resolve) => {
    if (any.aborted) resolve();
    else any.addEventListener('abort', () => resolve(), { once: true });
  });
}

function forever(): Promise<never> {
  return new Promise(() => {});
}
