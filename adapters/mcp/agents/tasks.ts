/** Requests about tasks of agents, for clients of either era. */
import { CODES } from '../../../mappings/mcp.ts';
import { asFault, isObject, isTerminal, type JsonObject, type Task } from '../../../src/index.ts';
import { type FrameOutcome, failed } from '../frames.ts';
import { answerIn, approvalForm } from '../server/approvals.ts';
import type { Caller } from '../server/caller.ts';
import type { Running } from '../server/suspended-calls.ts';
import { related } from '../tasks/words.ts';
import { fromForm, toExtensionTask, toForm, toLegacyTask } from './result.ts';
import type { AgentWork } from './work.ts';

/** Undefined for methods that are not about tasks. */
export async function answerTasks(
  method: string,
  params: JsonObject,
  caller: Caller,
  running: Running,
  work: AgentWork,
): Promise<FrameOutcome | undefined> {
  if (!method.startsWith('tasks/')) return undefined;
  if (method === 'tasks/list') {
    const { data, next } = await work.list(caller, typeof params.cursor === 'string' ? params.cursor : undefined);
    return { result: { tasks: data.map(toLegacyTask), ...(next && { nextCursor: next }) } };
  }
  const task = await work.find(params.taskId, caller).catch((cause) => {
    if (asFault(cause).kind === 'not_found') return undefined;
    throw cause;
  });
  if (!task) return failed(CODES.invalidParams, 'Task not found');
  return caller.era === 'legacy'
    ? await legacy(method, task, caller, running, work)
    : await modern(method, params, task, caller, work);
}

async function legacy(
  method: string,
  task: Task,
  caller: Caller,
  running: Running,
  work: AgentWork,
): Promise<FrameOutcome> {
  switch (method) {
    case 'tasks/get':
      return { result: toLegacyTask(task) };
    case 'tasks/result': {
      const result = await work.follow(task, caller, running, () => {});
      return { result: related(result, task.id) };
    }
    case 'tasks/cancel': {
      if (isTerminal(task.status)) return failed(CODES.invalidParams, `the task has ended as ${task.status}`);
      await work.cancel(task, 'canceled at the client', caller);
      return { result: toLegacyTask(await ended(task, caller, running, work)) };
    }
    default:
      return failed(CODES.methodNotFound, 'Method not found');
  }
}

/** Waits for the end, so that the answer to a cancellation is the final state. */
async function ended(task: Task, caller: Caller, running: Running, work: AgentWork): Promise<Task> {
  await work.follow(task, { ...caller, capabilities: {} }, running, () => {});
  return await work.find(task.id, caller);
}

async function modern(
  method: string,
  params: JsonObject,
  task: Task,
  caller: Caller,
  work: AgentWork,
): Promise<FrameOutcome> {
  switch (method) {
    case 'tasks/get': {
      const rendered = { resultType: 'complete', ...toExtensionTask(task) };
      if (task.status === 'COMPLETED' || task.status === 'FAILED') {
        return { result: { ...rendered, result: await work.result(task, caller) } };
      }
      const asked = isTerminal(task.status) ? [] : await work.questions(task, caller);
      // An approval is put to a person; a program is not shown a form that it may not fill in.
      const open = asked.filter(({ kind }) => kind !== 'approval' || caller.person !== undefined);
      if (open.length === 0) return { result: rendered };
      const forms = open.map(async (ask) => {
        const params = ask.kind === 'approval' ? approvalForm(await work.dialog(ask, caller)) : toForm(ask);
        return [ask.id, { method: 'elicitation/create', params }] as const;
      });
      const inputRequests = Object.fromEntries(await Promise.all(forms));
      return { result: { ...rendered, inputRequests: inputRequests as JsonObject } };
    }
    case 'tasks/update': {
      const responses = isObject(params.inputResponses) ? params.inputResponses : {};
      for (const ask of await work.questions(task, caller)) {
        const said = responses[ask.id];
        if (!isObject(said)) continue;
        const content = isObject(said.content) ? said.content : {};
        const accepted = said.action === 'accept';
        if (ask.kind === 'approval') {
          const answer = answerIn(said, await work.dialog(ask, caller));
          if (answer) await work.answer(ask, answer, caller, 'form');
        } else if (accepted) await work.answer(ask, { value: fromForm(ask, content) }, caller, 'form');
        else await work.answer(ask, { approved: false, reason: 'declined at the client' }, caller, 'form');
      }
      return { result: { resultType: 'complete' } };
    }
    case 'tasks/cancel':
      await work.cancel(task, 'canceled at the client', caller);
      return { result: { resultType: 'complete' } };
    default:
      return failed(CODES.methodNotFound, 'Method not found');
  }
}
