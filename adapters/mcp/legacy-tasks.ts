/**
 * Tasks of a server of 2026-07-28, for callers who know them as 2025-11-25 has them. There the caller decides that a call is a task and
 * gets one whatever the server makes of it, fetches its result by a request that waits, and is asked things on that request's
 * stream; here the server decides, results are part of the state, and questions are answered by a request of their own.
 */

import { CODES, META, TASKS_EXTENSION } from '../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import type { StopSignal } from '../../src/wire/stop.ts';
import { envelopeFor, toLegacyOutcome } from './eras.ts';
import { inputsTrouble } from './frame-rules.ts';
import { failed, isObject, metaOf, type Outcome, type WireError } from './frames.ts';
import type { Inputs, McpLine } from './line.ts';
import type { ModernPeer } from './modern-peer.ts';
import { createPatience, type Patience } from './patience.ts';
import { createTaskNotices } from './task-notices.ts';
import { lost, OVER, related, toExtensionState, toLegacyState, unrelated } from './task-words.ts';

export interface LegacyTasks {
  call(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome>;
  /** Undefined for what has nothing to do with tasks. */
  answer(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome | undefined>;
}

export interface LegacyTasksParts {
  readonly peer: Pick<ModernPeer, 'call'>;
  /** What the caller's session wants to hear. */
  readonly level: (line: McpLine) => string | undefined;
  /** Whether the server makes tasks of calls. */
  readonly offered: (line: McpLine, patience: Patience) => Promise<boolean>;
}

const POLL_MS = 1_000;
const SHORTEST_POLL_MS = 20;
/** How often a task that was told to stop is looked at before its caller hears that it goes on. */
const LOOKS_AFTER_CANCEL = 5;
const LAST_WORD_MS = 5_000;

export function createLegacyTasks({ peer, level, offered }: LegacyTasksParts): LegacyTasks {
  const notices = createTaskNotices(ask);
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

  /** What the server answers at once stays what it is: whoever asked on the line makes the task of it that its caller is owed. */
  async function begin(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    let begun: string | undefined;
    line.tasks?.keep(() => begun !== undefined && notices.follow(begun, line));
    const outcome = await ask('tools/call', params, line, patience);
    const task = taskIn(outcome);
    if (!task) return toLegacyOutcome(outcome);
    begun = task.taskId;
    // By 2025-11-25 every task begins as `working`; what it is by now is for whoever looks.
    return { result: { task: { ...toLegacyState(task), status: 'working' } } };
  }

  /** One that should be there and is not has failed: its server has lost it, and nobody knows what it came to. */
  async function look(taskId: Json, line: McpLine, patience: Patience): Promise<Outcome> {
    const outcome = await ask('tasks/get', { taskId }, line, patience);
    if (!('error' in outcome) || outcome.error.code !== CODES.invalidParams) return outcome;
    const known = await line.tasks?.known(taskId);
    return known ? { result: lost(toExtensionState(known)) } : outcome;
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
      const trouble = inputsTrouble(Object.fromEntries(open), line.capabilities);
      if (trouble) {
        line.refused?.('input_required', trouble);
        return failed(CODES.internal, `the server asks for what may not be asked: ${trouble}`);
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
      return failed(CODES.invalidParams, `the task has ended as ${asText(toLegacyState(outcome.result).status)}`);
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

  /** The server keeps no list: what began is on record here. */
  async function list({ cursor }: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const page = line.tasks ? await line.tasks.begun(cursor) : { ids: [] };
    if (!page) return failed(CODES.invalidParams, 'Invalid cursor');
    const { ids, next } = page;
    const tasks = await Promise.all(
      ids.map(async (taskId) => {
        const outcome = await look(taskId, line, patience);
        return 'result' in outcome ? [toLegacyState(outcome.result)] : [];
      }),
    );
    return { result: { tasks: tasks.flat(), ...(next !== undefined && { nextCursor: next }) } };
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

  const tends = new Map([
    ['tasks/get', look],
    ['tasks/result', result],
    ['tasks/cancel', cancel],
  ]);

  return {
    async call(params, line, patience) {
      if (line.tasks && (await offered(line, patience))) return await begin(params, line, patience);
      const outcome = await peer.call('tools/call', params, line, patience);
      // It was refused before anything was done, so that asking again is no second call.
      return wantsTasks(outcome) ? await wait(params, line, patience) : outcome;
    },
    async answer(method, params, line, patience) {
      if (method === 'tasks/list') return await list(params, line, patience);
      const tend = tends.get(method);
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
