/**
 * Tasks of a server of 2026-07-28, for callers that know them as 2025-11-25 has them. There the caller decides that a call is a task
 * and gets one however the server handles the call, fetches its result by a request that waits, and is asked questions on that
 * request's stream; here the server decides, results are part of the state, and questions are answered by a request of their own.
 */

import { CODES, META, TASKS_EXTENSION } from '../../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../../src/index.ts';
import { asText, isObject } from '../../../src/index.ts';
import type { WireError } from '../../../src/transport/json-rpc/messages.ts';
import type { ModernPeer } from '../client/modern-peer.ts';
import { createResponseTimeout, type ResponseTimeout } from '../client/timeout.ts';
import { envelopeFor, toLegacyOutcome } from '../compat/convert.ts';
import { inputsTrouble } from '../frame-rules.ts';
import { type FrameOutcome, failed, metaOf } from '../frames.ts';
import type { Inputs, McpRequestContext } from '../request-context.ts';
import { createTaskNotices } from './notices.ts';
import { lost, OVER, related, toExtensionState, toLegacyState, unrelated } from './words.ts';

export interface LegacyTasks {
  call(params: JsonObject, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome>;
  /** Undefined for methods that are not about tasks. */
  answer(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome | undefined>;
}

export interface LegacyTasksParts {
  readonly peer: Pick<ModernPeer, 'call'>;
  /** The log level of the caller's session. */
  readonly level: (context: McpRequestContext) => string | undefined;
  /** Whether the server makes tasks of calls. */
  readonly supported: (context: McpRequestContext, timeout: ResponseTimeout) => Promise<boolean>;
}

const POLL_MS = 1_000;
const SHORTEST_POLL_MS = 20;
/** How often a canceled task is polled before its caller is answered that it still runs. */
const LOOKS_AFTER_CANCEL = 5;
const LAST_WORD_MS = 5_000;

export function createLegacyTasks({ peer, level, supported }: LegacyTasksParts): LegacyTasks {
  const notices = createTaskNotices(ask);
  /** Open questions of tasks; they are withdrawn once their task is canceled. */
  const asking = new Set<{ readonly taskId: Json; readonly withdrawn: AbortController }>();

  /** Sends a request as a client that supports the extension, with answers in the extension's words. */
  function ask(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const { task: _, ...rest } = params;
    const { [META.capabilities]: able, ...envelope } = envelopeFor(context, level(context));
    const capabilities = { ...(able as JsonObject), extensions: { [TASKS_EXTENSION]: {} } };
    const sent = { ...rest, _meta: { ...metaOf(params), ...envelope, [META.capabilities]: capabilities } };
    return peer.call(method, sent, { ...context, era: 'modern' }, timeout);
  }

  /** A result that the server returns at once is returned as it is: the endpoint records it as the task that the caller asked for. */
  async function begin(
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    let begun: string | undefined;
    context.tasks?.keep(() => begun !== undefined && notices.follow(begun, context));
    const outcome = await ask('tools/call', params, context, timeout);
    const task = taskIn(outcome);
    if (!task) return toLegacyOutcome(outcome);
    begun = task.taskId;
    // By 2025-11-25 every task begins as `working`; its present state is read with `tasks/get`.
    return { result: { task: { ...toLegacyState(task), status: 'working' } } };
  }

  /** A task within its lifetime that the server no longer knows has failed: the server lost it, and its outcome is unknown. */
  async function look(taskId: Json, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome> {
    const outcome = await ask('tasks/get', { taskId }, context, timeout);
    if (!('error' in outcome) || outcome.error.code !== CODES.invalidParams) return outcome;
    const known = await context.tasks?.known(taskId);
    return known ? { result: lost(toExtensionState(known)) } : outcome;
  }

  /** Waits until the task has ended, and puts its questions to the caller. */
  async function result(taskId: Json, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome> {
    const answered = new Set<string>();
    for (;;) {
      const outcome = await look(taskId, context, timeout);
      if ('error' in outcome) return outcome;
      timeout.moved();
      const { status, result: came, error, inputRequests, pollIntervalMs } = outcome.result;
      if (status === 'completed') return toLegacyOutcome({ result: related(isObject(came) ? came : {}, taskId) });
      if (status === 'failed') return { error: errorIn(error) };
      if (status === 'cancelled') return failed(CODES.invalidParams, 'the task was cancelled and has no result');
      const open = Object.entries((isObject(inputRequests) ? inputRequests : {}) as Inputs).filter(
        ([key]) => !answered.has(key),
      );
      if (open.length === 0) {
        await pause(pollIntervalMs, timeout.signal);
        continue;
      }
      const trouble = inputsTrouble(Object.fromEntries(open), context.capabilities);
      if (trouble) {
        context.refused?.('input_required', trouble);
        return failed(CODES.internal, `the server asks for what may not be asked: ${trouble}`);
      }
      const inputResponses = await put(open, taskId, context, timeout);
      if (!inputResponses) {
        await pause(pollIntervalMs, timeout.signal);
        continue;
      }
      const updated = await ask('tasks/update', { taskId, inputResponses }, context, timeout);
      if ('error' in updated) return updated;
      // They may be shown for a moment longer, and are not asked twice.
      for (const [key] of open) answered.add(key);
    }
  }

  /** Undefined when the task was canceled meanwhile. */
  async function put(
    open: [string, Inputs[string]][],
    taskId: Json,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ) {
    const mine = { taskId, withdrawn: new AbortController() };
    const { signal } = mine.withdrawn;
    const asked = open.map(([key, { method, params = {} }]) => [key, { method, params: related(params, taskId) }]);
    asking.add(mine);
    try {
      const answer = context.input(Object.fromEntries(asked), undefined, signal);
      return (await timeout.during(answer)).inputResponses;
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
      return undefined;
    } finally {
      asking.delete(mine);
    }
  }

  /** By 2025-11-25 a task that has ended cannot be canceled, and the answer to a cancellation is the task's state. */
  async function cancel(taskId: Json, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome> {
    let outcome = await look(taskId, context, timeout);
    if ('error' in outcome) return outcome;
    if (OVER.includes(outcome.result.status)) {
      return failed(CODES.invalidParams, `the task has ended as ${asText(toLegacyState(outcome.result).status)}`);
    }
    const cancelled = await ask('tasks/cancel', { taskId }, context, timeout);
    if ('error' in cancelled) return cancelled;
    for (const { taskId: about, withdrawn } of asking) if (about === taskId) withdrawn.abort();
    for (let looks = 0; looks < LOOKS_AFTER_CANCEL; looks += 1) {
      outcome = await look(taskId, context, timeout);
      if ('error' in outcome) return outcome;
      if (OVER.includes(outcome.result.status)) break;
      await pause(outcome.result.pollIntervalMs, timeout.signal);
    }
    return { result: toLegacyState(outcome.result) };
  }

  /** The server has no list: the tasks that began are in our log. */
  async function list(
    { cursor }: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const page = context.tasks ? await context.tasks.begun(cursor) : { ids: [] };
    if (!page) return failed(CODES.invalidParams, 'Invalid cursor');
    const { ids, next } = page;
    const tasks = await Promise.all(
      ids.map(async (taskId) => {
        const outcome = await look(taskId, context, timeout);
        return 'result' in outcome ? [toLegacyState(outcome.result)] : [];
      }),
    );
    return { result: { tasks: tasks.flat(), ...(next !== undefined && { nextCursor: next }) } };
  }

  /** A call that can only be a task, for a caller that did not ask for one: it gets the result and no task. */
  async function wait(params: JsonObject, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome> {
    const outcome = await ask('tools/call', params, context, timeout);
    const task = taskIn(outcome);
    if (!task) return toLegacyOutcome(outcome);
    const { taskId } = task;
    try {
      const ended = await result(taskId, context, timeout);
      return 'error' in ended ? ended : { result: unrelated(ended.result) };
    } catch (thrown) {
      // No client knows this task, so it is canceled.
      const last = createResponseTimeout(new AbortController().signal, LAST_WORD_MS, LAST_WORD_MS);
      await ask('tasks/cancel', { taskId }, context, last)
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
    async call(params, context, timeout) {
      if (context.tasks && (await supported(context, timeout))) return await begin(params, context, timeout);
      const outcome = await peer.call('tools/call', params, context, timeout);
      // It was refused before anything was done, so that asking again is no second call.
      return wantsTasks(outcome) ? await wait(params, context, timeout) : outcome;
    },
    async answer(method, params, context, timeout) {
      if (method === 'tasks/list') return await list(params, context, timeout);
      const tend = tends.get(method);
      if (!tend) return undefined;
      const outcome = await tend(params.taskId ?? null, context, timeout);
      return method === 'tasks/get' && 'result' in outcome ? { result: toLegacyState(outcome.result) } : outcome;
    },
  };
}

function taskIn(outcome: FrameOutcome): (JsonObject & { readonly taskId: string }) | undefined {
  if ('error' in outcome || outcome.result.resultType !== 'task') return undefined;
  const { taskId } = outcome.result;
  return typeof taskId === 'string' ? { ...outcome.result, taskId } : undefined;
}

function wantsTasks(outcome: FrameOutcome): boolean {
  if (!('error' in outcome) || outcome.error.code !== CODES.missingCapability) return false;
  const { data } = outcome.error;
  const required = isObject(data) && isObject(data.requiredCapabilities) ? data.requiredCapabilities.extensions : {};
  return isObject(required) && required[TASKS_EXTENSION] !== undefined;
}

function errorIn(error: Json | undefined): WireError {
  const known = isObject(error) && typeof error.code === 'number' && typeof error.message === 'string';
  return known ? (error as WireError) : { code: CODES.internal, message: 'the task failed' };
}

/** Waits for the server's poll interval, or until the caller has stopped waiting. */
function pause(wanted: Json | undefined, signal: AbortSignal): Promise<void> {
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
