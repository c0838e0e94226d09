/** Calls of tools that stand for agents: the call submits a task and returns its result, or the task where the client supports tasks. */
import { CODES } from '../../../mappings/mcp.ts';
import {
  type Bridge,
  type CoreEvent,
  Fault,
  isObject,
  type JsonObject,
  type Task,
  visibleLine,
} from '../../../src/index.ts';
import { type FrameOutcome, failed, metaOf, notice } from '../frames.ts';
import { callerIn, circleIn } from '../gateways.ts';
import type { Caller } from '../server/caller.ts';
import type { Running } from '../server/suspended-calls.ts';
import { knowsTasks } from '../tasks/words.ts';
import { AGENT_PREFIX, toExtensionTask, toLegacyTask } from './result.ts';
import type { AgentWork } from './work.ts';

export interface AgentEndpoint {
  /** Undefined when the tool is not an agent's. */
  call(params: JsonObject, caller: Caller, running: Running): Promise<FrameOutcome | undefined>;
}

export function createAgentEndpoint(bridge: Bridge, work: AgentWork): AgentEndpoint {
  async function give(agent: string, params: JsonObject, caller: Caller, running: Running): Promise<FrameOutcome> {
    const { message, session_id: session } = args(params);
    if (typeof message !== 'string' || message === '') return failed(CODES.invalidParams, 'message must be a text');
    const sessionId = typeof session === 'string' ? session : undefined;
    const task = await work.give(agent, message, { sessionId, from: callerIn(params) }, caller);
    if (caller.era === 'legacy' && caller.tasks && isObject(params.task))
      return { result: { task: toLegacyTask(task) } };
    if (caller.era === 'modern' && knowsTasks(caller.capabilities)) {
      return { result: { resultType: 'task', ...toExtensionTask(task) } };
    }
    const stop = () => {
      const { reason } = running.signal;
      work.cancel(task, typeof reason === 'string' ? reason : 'the caller gave up', caller).catch(() => {});
    };
    running.signal.addEventListener('abort', stop, { once: true });
    try {
      return complete(await work.follow(task, caller, running, progress(params, running)), caller);
    } finally {
      running.signal.removeEventListener('abort', stop);
    }
  }

  async function status(task: Task, caller: Caller): Promise<FrameOutcome> {
    const result = await work.result(task, caller);
    const open = await work.questions(task, caller);
    const asks = open.map(({ id, kind, question }) => ({ ask_id: id, kind, question }));
    const structured = { ...(result.structuredContent as JsonObject), questions: asks };
    const text =
      asks.length > 0
        ? asks.map(({ ask_id, question }) => `${ask_id}: ${visibleLine(question)}`).join('\n')
        : task.status;
    const { isError: _, ...plain } = result;
    const content = asks.length > 0 ? [{ type: 'text', text }] : (plain.content ?? []);
    return complete({ ...plain, content, structuredContent: structured }, caller);
  }

  async function answer(reply: JsonObject, task: Task, caller: Caller): Promise<FrameOutcome> {
    const { ask_id, value, approved, reason, arguments: changed } = reply;
    const open = await work.questions(task, caller);
    const ask = open.find(({ id }) => ask_id === undefined || id === ask_id);
    if (!ask) return complete({ content: [{ type: 'text', text: 'the task asks nothing' }], isError: true }, caller);
    if (changed !== undefined && changed !== null && !isObject(changed)) {
      // Dropped, it would let the original run on a yes that was meant for something else.
      throw new Fault('invalid_request', 'arguments has to be an object', { param: '/arguments' });
    }
    const said = {
      ...(value !== undefined && { value }),
      ...(typeof approved === 'boolean' && { approved }),
      ...(isObject(changed) && { arguments: changed }),
      ...(typeof reason === 'string' && { reason }),
    };
    await work.answer(ask, said, caller, 'tool');
    return complete({ content: [{ type: 'text', text: `${ask.id} is answered` }] }, caller);
  }

  return {
    async call(params, caller, running) {
      const { name } = params;
      if (typeof name !== 'string') return undefined;
      if (name.startsWith(AGENT_PREFIX)) {
        const agent = name.slice(AGENT_PREFIX.length);
        const known = (await bridge.agents(caller.actor)).some((each) => each.name === agent);
        const circle = known ? circleIn(params) : undefined;
        if (circle) return failed(CODES.invalidParams, circle);
        return known ? await give(agent, params, caller, running) : undefined;
      }
      if (name !== 'task__status' && name !== 'task__answer' && name !== 'task__cancel') return undefined;
      const callArguments = args(params);
      const task = await work.find(callArguments.task_id, caller);
      if (name === 'task__status') return await status(task, caller);
      if (name === 'task__answer') return await answer(callArguments, task, caller);
      await work.cancel(
        task,
        typeof callArguments.reason === 'string' ? callArguments.reason : 'canceled at the client',
        caller,
      );
      return complete({ content: [{ type: 'text', text: `${task.id} was asked to stop` }] }, caller);
    },
  };
}

function args({ arguments: callArguments }: JsonObject): JsonObject {
  return isObject(callArguments) ? callArguments : {};
}

function complete(result: JsonObject, { era }: Caller): FrameOutcome {
  return { result: era === 'modern' ? { resultType: 'complete', ...result } : result };
}

/** Sends the task's progress to callers that asked for it. */
function progress(params: JsonObject, running: Running): (event: CoreEvent) => void {
  const { progressToken } = metaOf(params);
  let count = 0;
  return ({ event, payload }) => {
    const text = event === 'vendor.tollbridge.message_delta' ? payload.text : undefined;
    if (progressToken === undefined || typeof text !== 'string') return;
    count += 1;
    running.notify(notice('notifications/progress', { progressToken, progress: count, message: text }));
  };
}
