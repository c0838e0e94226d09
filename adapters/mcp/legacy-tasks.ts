/**
 * Tasks of a server of 2026-07-28, for callers who know them as 2025-11-25 has them. There the caller decides that a call is a task and
 * gets one whatever the server makes of it, fetches its result by a request that waits, and is asked things on that request's
 * stream; here the server decides, results are part of the state, and questions are answered by a request of their own.
 */
import { randomUUID } from 'node:crypto';
import { CODES, META, TASKS_EXTENSION } from '../../mappings/mcp.ts';
import type { Clock, Json, JsonObject } from '../../src/index.ts';
import type { StopSignal } from '../../src/wire/stop.ts';
import { envelopeFor, toLegacyOutcome } from './eras.ts';
import { failed, isObject, metaOf, type Outcome, type WireError } from './frames.ts';
import type { Inputs, McpLine } from './line.ts';
import type { ModernPeer } from './modern-peer.ts';
import { createPatience, type Patience } from './patience.ts';
import { related, toLegacyState, unrelated } from './task-words.ts';

export interface LegacyTasks {
  /** A call; `tasks` when its caller was told that it may be one. */
  call(params: JsonObject, line: McpLine, patience: Patience, tasks: boolean): Promise<Outcome>;
  /** Undefined for what has nothing to do with tasks. */
  answer(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome | undefined>;
}

export interface LegacyTasksParts {
  readonly peer: Pick<ModernPeer, 'call'>;
  /** What the caller's session wants to hear. */
  readonly level: (line: McpLine) => string | undefined;
  readonly clock: Clock;
}

/** A task somebody began here. The server keeps no list; what it answered at once is kept as the task it was asked to be. */
interface Begun {
  readonly principal: string;
  readonly whole?: JsonObject;
  readonly until?: number;
}

const MOST_BEGUN = 1_000;
const PAGE = 50;
const POLL_MS = 1_000;
const SHORTEST_POLL_MS = 20;
/** How often a task that was told to stop is looked at before its caller hears that it goes on. */
const LOOKS_AFTER_CANCEL = 5;
const KEPT_MS = 10 * 60_000;
const LONGEST_KEPT_MS = 60 * 60_000;
const LAST_WORD_MS = 5_000;
const OVER: readonly unknown[] = ['completed', 'failed', 'cancelled'];

export function createLegacyTasks({ peer, level, clock }: LegacyTasksParts): LegacyTasks {
  const begun = new Map<string, Begun>();
  /** What is being asked for a task's sake, and is nobody's question once the task was told to stop. */
  const asking = new Set<{ readonly taskId: Json; readonly withdrawn: AbortController }>();

  /** As somebody who knows the extension, and answers what it says in its own words. */
  function ask(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const { task: _, ...rest } = params;
    const { [META.capabilities]: able, ...envelope } = envelopeFor(line, level(line));
    const capabilities = { ...(able as JsonObject), extensions: { [TASKS_EXTENSION]: {} } };
    const sent = { ...rest, _meta: { ...metaOf(params), ...envelope, [META.capabilities]: capabilities } };
    return peer.call(method, sent, { ...line, era: 'modern' }, patience);
  }

  function remember(taskId: string, task: Begun): void {
    const now = Date.parse(clock.now());
    for (const [id, { until = now }] of begun) if (until < now) begun.delete(id);
    begun.set(taskId, task);
    if (begun.size > MOST_BEGUN) begun.delete(begun.keys().next().value as string);
  }

  async function begin(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const outcome = await ask('tools/call', params, line, patience);
    if ('error' in outcome) return outcome;
    const state = taskIn(outcome) ?? keep(outcome.result, params.task as JsonObject, line);
    if (!begun.has(state.taskId)) remember(state.taskId, { principal: line.principal });
    // By 2025-11-25 every task begins as `working`; what it is by now is for whoever looks.
    return { result: { task: { ...toLegacyState(state), status: 'working' } } };
  }

  /** The server made no task of it, and its caller is owed one. */
  function keep(result: JsonObject, { ttl }: JsonObject, { principal }: McpLine): JsonObject & { taskId: string } {
    const ttlMs = typeof ttl === 'number' && ttl >= 0 ? Math.min(ttl, LONGEST_KEPT_MS) : KEPT_MS;
    const now = clock.now();
    const taskId = randomUUID();
    const times = { createdAt: now, lastUpdatedAt: now, ttlMs, pollIntervalMs: POLL_MS };
    const whole = { taskId, status: 'completed', ...times, result };
    remember(taskId, { principal, whole, until: Date.parse(now) + ttlMs });
    return whole;
  }

  async function look(taskId: Json, line: McpLine, patience: Patience): Promise<Outcome> {
    const known = begun.get(String(taskId));
    const kept = known?.whole && Date.parse(clock.now()) <= (known.until ?? 0);
    return kept ? { result: known.whole as JsonObject } : await ask('tasks/get', { taskId }, line, patience);
  }

  /** Waits until it has ended, and on the way asks what it asks. */
  async function result(taskId: Json, line: McpLine, patience: Patience): Promise<Outcome> {
    const answered = new Set<string>();
    for (;;) {
      const outcome = await look(taskId, line, patience);
      if ('error' in outcome) return outcome;
      patience.moved();
      const { status, result: came, error, inputRequests, pollIntervalMs } = outcome.result;
      if (status === 'completed') return toLegacyOutcome({ result: related(isObject(came) ? came : {}, taskId) });
      if (status === 'failed') return { error: errorIn(error) };
      if (status === 'cancelled') return failed(CODES.invalidParams, 'the task was cancelled and has no result');
      const open = Object.entries((isObject(inputRequests) ? inputRequests : {}) as Inputs).filter(
        ([key]) => !answered.has(key),
      );
      if (open.length === 0) {
        await pause(pollIntervalMs, patience.signal);
        continue;
      }
      const inputResponses = await put(open, taskId, line, patience);
      if (!inputResponses) {
        await pause(pollIntervalMs, patience.signal);
        continue;
      }
      const told = await ask('tasks/update', { taskId, inputResponses }, line, patience);
      if ('error' in told) return told;
      // They may be shown for a moment longer, and are not asked twice.
      for (const [key] of open) answered.add(key);
    }
  }

  /** Undefined when the task was told to stop meanwhile. */
  async function put(open: [string, Inputs[string]][], taskId: Json, line: McpLine, patience: Patience) {
    const mine = { taskId, withdrawn: new AbortController() };
    const { signal } = mine.withdrawn;
    const asked = open.map(([key, { method, params = {} }]) => [key, { method, params: related(params, taskId) }]);
    asking.add(mine);
    try {
      const answer = line.input(Object.fromEntries(asked), undefined, signal);
      return (await patience.during(answer)).inputResponses;
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
      return undefined;
    } finally {
      asking.delete(mine);
    }
  }

  /** Of 2025-11-25: what has ended cannot be stopped, and whoever stops it hears how it is. */
  async function cancel(taskId: Json, line: McpLine, patience: Patience): Promise<Outcome> {
    let outcome = await look(taskId, line, patience);
    if ('error' in outcome) return outcome;
    if (OVER.includes(outcome.result.status)) {
      return failed(CODES.invalidParams, `the task has ended as ${String(toLegacyState(outcome.result).status)}`);
    }
    const told = await ask('tasks/cancel', { taskId }, line, patience);
    if ('error' in told) return told;
    for (const { taskId: about, withdrawn } of asking) if (about === taskId) withdrawn.abort();
    for (let looks = 0; looks < LOOKS_AFTER_CANCEL; looks += 1) {
      outcome = await look(taskId, line, patience);
      if ('error' in outcome) return outcome;
      if (OVER.includes(outcome.result.status)) break;
      await pause(outcome.result.pollIntervalMs, patience.signal);
    }
    return { result: toLegacyState(outcome.result) };
  }

  async function list({ cursor }: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const mine = [...begun].flatMap(([id, { principal }]) => (principal === line.principal ? [id] : []));
    const from = cursor === undefined ? 0 : mine.indexOf(String(cursor)) + 1;
    if (cursor !== undefined && from === 0) return failed(CODES.invalidParams, 'Invalid cursor');
    const page = mine.slice(from, from + PAGE);
    const tasks = await Promise.all(
      page.map(async (taskId) => {
        const outcome = await look(taskId, line, patience);
        if ('result' in outcome) return [toLegacyState(outcome.result)];
        // Past its time at the server.
        if (outcome.error.code === CODES.invalidParams) begun.delete(taskId);
        return [];
      }),
    );
    const last = page.at(-1);
    const more = last !== undefined && from + PAGE < mine.length;
    return { result: { tasks: tasks.flat(), ...(more && { nextCursor: last }) } };
  }

  /** A call that can only be a task, by somebody who wants none of it: they get its result, and never hear of the task. */
  async function wait(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const outcome = await ask('tools/call', params, line, patience);
    const task = taskIn(outcome);
    if (!task) return toLegacyOutcome(outcome);
    const { taskId } = task;
    try {
      const ended = await result(taskId, line, patience);
      return 'error' in ended ? ended : { result: unrelated(ended.result) };
    } catch (thrown) {
      // Nobody would ever ask for it again.
      const last = createPatience(new AbortController().signal, LAST_WORD_MS, LAST_WORD_MS);
      await ask('tasks/cancel', { taskId }, line, last)
        .catch(() => {})
        .finally(() => last.end());
      throw thrown;
    }
  }

  return {
    async call(params, line, patience, tasks) {
      if (tasks && isObject(params.task)) return await begin(params, line, patience);
      const outcome = await peer.call('tools/call', params, line, patience);
      // It was refused before anything was done, so that asking again is no second call.
      return wantsTasks(outcome) ? await wait(params, line, patience) : outcome;
    },
    async answer(method, params, line, patience) {
      if (method === 'tasks/list') return await list(params, line, patience);
      const tend = { 'tasks/get': look, 'tasks/result': result, 'tasks/cancel': cancel }[method];
      if (!tend) return undefined;
      const outcome = await tend(params.taskId ?? null, line, patience);
      return method === 'tasks/get' && 'result' in outcome ? { result: toLegacyState(outcome.result) } : outcome;
    },
  };
}

function taskIn(outcome: Outcome): (JsonObject & { readonly taskId: string }) | undefined {
  if ('error' in outcome || outcome.result.resultType !== 'task') return undefined;
  const { taskId } = outcome.result;
  return typeof taskId === 'string' ? { ...outcome.result, taskId } : undefined;
}

function wantsTasks(outcome: Outcome): boolean {
  if (!('error' in outcome) || outcome.error.code !== CODES.missingCapability) return false;
  const { data } = outcome.error;
  const required = isObject(data) && isObject(data.requiredCapabilities) ? data.requiredCapabilities.extensions : {};
  return isObject(required) && required[TASKS_EXTENSION] !== undefined;
}

function errorIn(error: Json | undefined): WireError {
  const known = isObject(error) && typeof error.code === 'number' && typeof error.message === 'string';
  return known ? (error as unknown as WireError) : { code: CODES.internal, message: 'the task failed' };
}

/** As long as the server wants to be left alone, or until nobody waits any more. */
function pause(wanted: Json | undefined, signal: StopSignal): Promise<void> {
  const ms = typeof wanted === 'number' ? Math.max(wanted, SHORTEST_POLL_MS) : POLL_MS;
  return new Promise((resolve, reject) => {
    const over = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', over);
      resolve();
    }, ms);
    if (signal.aborted) over();
    else signal.addEventListener('abort', over, { once: true });
  });
}
