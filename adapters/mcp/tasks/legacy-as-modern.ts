/**
 * Tasks of a server of 2025-11-25, for callers that know them as the extension of 2026-07-28 has them. There the caller decides that
 * a call is a task, fetches its result by a request that waits, and is asked questions on that request's stream; here the server
 * decides, results are part of the state, and questions are answered by a request of their own.
 */

import { CODES, TASKS_EXTENSION } from '../../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../../src/index.ts';
import { asText, isObject } from '../../../src/index.ts';
import type { WireError } from '../../../src/transport/json-rpc/messages.ts';
import type { LegacyPeers } from '../client/legacy-peers.ts';
import { createResponseTimeout, type ResponseTimeout } from '../client/timeout.ts';
import { supportsTasks, toModernOutcome } from '../compat/convert.ts';
import { type FrameOutcome, failed } from '../frames.ts';
import type { Inputs, Inputted, McpRequestContext } from '../request-context.ts';
import { knowsTasks, lost, toExtensionState, unrelated } from './words.ts';

export interface TaskEras {
  /** Undefined for methods that are not about tasks. */
  answer(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
    about: JsonObject,
  ): Promise<FrameOutcome | undefined>;
  close(): void;
}

interface Question {
  readonly shown: JsonObject;
  answer(said: JsonObject): void;
}
/** A task whose result is being waited for, with its open questions. */
interface Followed {
  readonly open: Map<string, Question>;
  count: number;
  asked: () => void;
}

/** How long `tasks/get` waits for the question that the task says it has. */
const ASKED_WITHIN_MS = 2_000;
const FOREVER_MS = 2 ** 31 - 1;

/** `support` is the tool's own declaration: `optional`, `required`, or undefined. */
export function createTaskEras(peers: Pick<LegacyPeers, 'call'>, support: (tool: string) => unknown): TaskEras {
  const followed = new Map<string, Followed>();
  const waits = new Set<AbortController>();

  async function begin(
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome | undefined> {
    const wants = support(asText(params.name));
    if (wants !== 'optional' && wants !== 'required') return undefined;
    if (!knowsTasks(context.capabilities)) {
      const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
      if (wants === 'optional') return undefined;
      return failed(CODES.missingCapability, `${asText(params.name)} runs as a task only`, { requiredCapabilities });
    }
    const outcome = await peers.call('tools/call', { ...params, task: {} }, context, timeout);
    if ('error' in outcome || !isObject(outcome.result.task)) return outcome;
    return { result: { resultType: 'task', ...toExtensionState(outcome.result.task) } };
  }

  async function look(params: JsonObject, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome> {
    const { taskId } = params;
    const outcome = await peers.call('tasks/get', { taskId: taskId ?? null }, context, timeout);
    if ('error' in outcome) {
      const known = await remembered(outcome.error, taskId, context);
      return known ? { result: { ...lost(known), resultType: 'complete' } } : outcome;
    }
    const task = { resultType: 'complete', ...toExtensionState(outcome.result) };
    const { status } = outcome.result;
    if (status === 'completed' || status === 'failed') {
      const ended = await peers.call('tasks/result', { taskId: taskId ?? null }, context, timeout);
      if ('error' in ended) return { result: { ...task, status: 'failed', error: ended.error as Json } };
      // A tool that failed has a result; `failed` is for tasks that have none.
      return { result: { ...task, status: 'completed', result: unrelated(ended.result) } };
    }
    if (status !== 'input_required') return { result: task };
    const { open } = await questions(asText(taskId), context);
    // Answered a moment ago, and not yet gone on.
    if (open.size === 0) return { result: { ...task, status: 'working' } };
    const inputRequests = Object.fromEntries([...open].map(([key, { shown }]) => [key, shown]));
    return { result: { ...task, inputRequests } };
  }

  /** Waits for the result for as long as the task lives, because that is where it asks. */
  function follow(taskId: string, context: McpRequestContext): Followed {
    const mine = keyOf(taskId, context);
    const known = followed.get(mine);
    if (known) return known;
    const made: Followed = { open: new Map(), count: 0, asked() {} };
    followed.set(mine, made);
    const stop = new AbortController();
    waits.add(stop);
    const timeout = createResponseTimeout(stop.signal, FOREVER_MS, FOREVER_MS);
    const waiting: McpRequestContext = { ...context, notify() {}, input: (requests) => collect(made, requests) };
    peers
      .call('tasks/result', { taskId }, waiting, timeout)
      .catch(() => {})
      .finally(() => {
        timeout.end();
        waits.delete(stop);
        if (followed.get(mine) === made) followed.delete(mine);
        made.asked();
      });
    return made;
  }

  function collect(task: Followed, requests: Inputs): Promise<Inputted> {
    const answers = Object.entries(requests).map(
      ([theirs, { method, params }]) =>
        new Promise<readonly [string, JsonObject]>((resolve) => {
          task.count += 1;
          const shown = { method, ...(params && { params: unrelated(params) }) };
          task.open.set(`in_${task.count}`, { shown, answer: (said) => resolve([theirs, said]) });
        }),
    );
    task.asked();
    return Promise.all(answers).then((pairs) => ({ inputResponses: Object.fromEntries(pairs) }));
  }

  async function questions(taskId: string, context: McpRequestContext): Promise<Followed> {
    const task = follow(taskId, context);
    if (task.open.size > 0) return task;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ASKED_WITHIN_MS).unref();
      task.asked = () => {
        clearTimeout(timer);
        // Questions that are asked at the same time arrive in one answer.
        setTimeout(resolve, GATHER_MS);
      };
    });
    return task;
  }

  async function update(
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const found = await peers.call('tasks/get', { taskId: params.taskId ?? null }, context, timeout);
    if ('error' in found) return (await remembered(found.error, params.taskId, context)) ? DONE : found;
    const open = followed.get(keyOf(asText(params.taskId), context))?.open;
    const responses = isObject(params.inputResponses) ? params.inputResponses : {};
    for (const [key, said] of Object.entries(responses)) {
      const question = open?.get(key);
      if (!question || !isObject(said)) continue;
      open?.delete(key);
      question.answer(said);
    }
    return DONE;
  }

  /** Cancelling a task that has ended succeeds in this design. */
  async function cancel(
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const found = await peers.call('tasks/get', { taskId: params.taskId ?? null }, context, timeout);
    if ('error' in found) return (await remembered(found.error, params.taskId, context)) ? DONE : found;
    await peers.call('tasks/cancel', { taskId: params.taskId ?? null }, context, timeout);
    return DONE;
  }

  return {
    async answer(method, params, context, timeout, about) {
      if (!supportsTasks(about)) return undefined;
      if (method === 'tools/call') {
        const outcome = await begin(params, context, timeout);
        return outcome && 'result' in outcome && outcome.result.resultType === undefined
          ? toModernOutcome(method, outcome, about)
          : outcome;
      }
      const tend = { 'tasks/get': look, 'tasks/update': update, 'tasks/cancel': cancel }[method];
      if (!tend) return undefined;
      if (knowsTasks(context.capabilities)) return await tend(params, context, timeout);
      const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
      return failed(CODES.missingCapability, 'tasks are for those who know them', { requiredCapabilities });
    },
    close() {
      for (const stop of waits) stop.abort();
    },
  };
}

/** A task within its lifetime that its server no longer knows, as it was when it began. */
async function remembered({ code }: WireError, taskId: Json | undefined, { tasks }: McpRequestContext) {
  return code === CODES.invalidParams ? await tasks?.known(taskId ?? null) : undefined;
}

/** Servers choose task ids freely, so two callers may have tasks with the same id. */
function keyOf(taskId: string, { principal }: McpRequestContext): string {
  return `${principal}\n${taskId}`;
}

const GATHER_MS = 20;
const DONE: FrameOutcome = { result: { resultType: 'complete' } };
