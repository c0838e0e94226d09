/**
 * Tasks of a server of 2025-11-25, for callers who know them as the extension of 2026-07-28 has them. There the caller decides that
 * a call is a task, fetches its result by a request that waits, and is asked things on that request's stream; here the server
 * decides, results are part of the state, and questions are answered by a request of their own.
 */

import { CODES, TASKS_EXTENSION } from '../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { offersTasks, toModernOutcome } from './eras.ts';
import { failed, isObject, type Outcome, type WireError } from './frames.ts';
import type { LegacyPeers } from './legacy-peers.ts';
import type { Inputs, Inputted, McpLine } from './line.ts';
import { createPatience, type Patience } from './patience.ts';
import { knowsTasks, lost, toExtensionState, unrelated } from './task-words.ts';

export interface TaskEras {
  /** Undefined for what has nothing to do with tasks. */
  answer(
    method: string,
    params: JsonObject,
    line: McpLine,
    patience: Patience,
    about: JsonObject,
  ): Promise<Outcome | undefined>;
  close(): void;
}

interface Question {
  readonly shown: JsonObject;
  answer(said: JsonObject): void;
}
/** Somebody waits for the result of a task, and is asked what it asks. */
interface Followed {
  readonly open: Map<string, Question>;
  count: number;
  asked: () => void;
}

/** How long a look at a task waits for the question the task says it has. */
const ASKED_WITHIN_MS = 2_000;
const FOREVER_MS = 2 ** 31 - 1;

/** `support` is what a tool says of itself: `optional`, `required`, or nothing. */
export function createTaskEras(peers: Pick<LegacyPeers, 'call'>, support: (tool: string) => unknown): TaskEras {
  const followed = new Map<string, Followed>();
  const waits = new Set<AbortController>();

  async function begin(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome | undefined> {
    const wants = support(asText(params.name));
    if (wants !== 'optional' && wants !== 'required') return undefined;
    if (!knowsTasks(line.capabilities)) {
      const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
      if (wants === 'optional') return undefined;
      return failed(CODES.missingCapability, `${asText(params.name)} runs as a task only`, { requiredCapabilities });
    }
    const outcome = await peers.call('tools/call', { ...params, task: {} }, line, patience);
    if ('error' in outcome || !isObject(outcome.result.task)) return outcome;
    return { result: { resultType: 'task', ...toExtensionState(outcome.result.task) } };
  }

  async function look(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const { taskId } = params;
    const outcome = await peers.call('tasks/get', { taskId: taskId ?? null }, line, patience);
    if ('error' in outcome) {
      const known = await remembered(outcome.error, taskId, line);
      return known ? { result: { ...lost(known), resultType: 'complete' } } : outcome;
    }
    const task = { resultType: 'complete', ...toExtensionState(outcome.result) };
    const { status } = outcome.result;
    if (status === 'completed' || status === 'failed') {
      const ended = await peers.call('tasks/result', { taskId: taskId ?? null }, line, patience);
      if ('error' in ended) return { result: { ...task, status: 'failed', error: ended.error as unknown as Json } };
      // A tool that failed has come to a result; failing is for what came to none.
      return { result: { ...task, status: 'completed', result: unrelated(ended.result) } };
    }
    if (status !== 'input_required') return { result: task };
    const { open } = await questions(asText(taskId), line);
    // Answered a moment ago, and not yet gone on.
    if (open.size === 0) return { result: { ...task, status: 'working' } };
    const inputRequests = Object.fromEntries([...open].map(([key, { shown }]) => [key, shown]));
    return { result: { ...task, inputRequests } };
  }

  /** Waits for the result for as long as the task lives, because that is where it asks. */
  function follow(taskId: string, line: McpLine): Followed {
    const mine = keyOf(taskId, line);
    const known = followed.get(mine);
    if (known) return known;
    const made: Followed = { open: new Map(), count: 0, asked() {} };
    followed.set(mine, made);
    const stop = new AbortController();
    waits.add(stop);
    const patience = createPatience(stop.signal, FOREVER_MS, FOREVER_MS);
    const waiting: McpLine = { ...line, notify() {}, input: (requests) => collect(made, requests) };
    peers
      .call('tasks/result', { taskId }, waiting, patience)
      .catch(() => {})
      .finally(() => {
        patience.end();
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

  async function questions(taskId: string, line: McpLine): Promise<Followed> {
    const task = follow(taskId, line);
    if (task.open.size > 0) return task;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ASKED_WITHIN_MS).unref();
      task.asked = () => {
        clearTimeout(timer);
        // What is asked together comes together.
        setTimeout(resolve, GATHER_MS);
      };
    });
    return task;
  }

  async function update(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const found = await peers.call('tasks/get', { taskId: params.taskId ?? null }, line, patience);
    if ('error' in found) return (await remembered(found.error, params.taskId, line)) ? DONE : found;
    const open = followed.get(keyOf(asText(params.taskId), line))?.open;
    const given = isObject(params.inputResponses) ? params.inputResponses : {};
    for (const [key, said] of Object.entries(given)) {
      const question = open?.get(key);
      if (!question || !isObject(said)) continue;
      open?.delete(key);
      question.answer(said);
    }
    return DONE;
  }

  /** Whoever stops what has ended has stopped it all the same. */
  async function cancel(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const found = await peers.call('tasks/get', { taskId: params.taskId ?? null }, line, patience);
    if ('error' in found) return (await remembered(found.error, params.taskId, line)) ? DONE : found;
    await peers.call('tasks/cancel', { taskId: params.taskId ?? null }, line, patience);
    return DONE;
  }

  return {
    async answer(method, params, line, patience, about) {
      if (!offersTasks(about)) return undefined;
      if (method === 'tools/call') {
        const outcome = await begin(params, line, patience);
        return outcome && 'result' in outcome && outcome.result.resultType === undefined
          ? toModernOutcome(method, outcome, about)
          : outcome;
      }
      const tend = { 'tasks/get': look, 'tasks/update': update, 'tasks/cancel': cancel }[method];
      if (!tend) return undefined;
      if (knowsTasks(line.capabilities)) return await tend(params, line, patience);
      const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
      return failed(CODES.missingCapability, 'tasks are for those who know them', { requiredCapabilities });
    },
    close() {
      for (const stop of waits) stop.abort();
    },
  };
}

/** A task that should be there and that its server knows nothing of, as it was when it began. */
async function remembered({ code }: WireError, taskId: Json | undefined, { tasks }: McpLine) {
  return code === CODES.invalidParams ? await tasks?.known(taskId ?? null) : undefined;
}

/** Servers name tasks as they like, and two of our callers may each have a first one. */
function keyOf(taskId: string, { principal }: McpLine): string {
  return `${principal}\n${taskId}`;
}

const GATHER_MS = 20;
const DONE: Outcome = { result: { resultType: 'complete' } };
