/** A prompt as a task: submitted, followed to its end, answered; or taken as the value that a question asked for. */
import {
  type Actor,
  asFault,
  type Bridge,
  Fault,
  type Json,
  type JsonObject,
  type Logger,
  type Part,
  type Row,
  type Task,
} from '../../../src/index.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import type { AcpSettings } from '../config.ts';
import { fromBlock, requireAudience } from '../content.ts';
import { compact, listOf, objectOf } from '../shapes.ts';
import { OURS, toWireStop, traceOf } from '../translate.ts';
import type { PromptOutcome, Viewer } from './viewer.ts';

export interface PromptContext {
  readonly bridge: Bridge;
  readonly actor: Actor;
  readonly settings: Pick<AcpSettings, 'agent'>;
  readonly viewer: Viewer;
  readonly log: Logger;
  /** Fires when the connection is closed, which is not a cancel. */
  readonly over: AbortSignal;
}

export async function givePrompt(context: PromptContext, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
  const { viewer, bridge, actor } = context;
  const blocks = listOf(params.prompt);
  if (!Array.isArray(params.prompt) || blocks.length === 0) {
    throw new Fault('invalid_request', 'prompt must be a list of content', { param: '/prompt' });
  }
  const asked = viewer.takeAsked();
  const taskId = asked ? await answerAsked(asked, blocks) : await submit();
  if (taskId === undefined) return { stopReason: 'refusal' };
  const withdraw = () => {
    if (context.over.aborted) return;
    cancelTasks(bridge, actor, viewer, 'the prompt was withdrawn').catch((cause) =>
      context.log.warn({ err: cause, task: taskId }, 'a prompt could not be withdrawn'),
    );
  };
  signal.addEventListener('abort', withdraw, { once: true });
  try {
    return await toResult(viewer, await viewer.outcome(taskId));
  } finally {
    signal.removeEventListener('abort', withdraw);
  }

  async function answerAsked(ask: { id: string; task_id: string }, said: readonly Json[]): Promise<string> {
    const value = said.flatMap((block) => {
      const { text } = objectOf(block) ?? {};
      return typeof text === 'string' ? [text] : [];
    });
    await bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: ask.id, value: value.join('\n') } });
    return ask.task_id;
  }

  /** Undefined when policy denies the prompt: the client gets the reason, and the turn is over. */
  async function submit(): Promise<string | undefined> {
    const parts = await partsOf(context, blocks);
    const agent = viewer.agent ?? context.settings.agent;
    try {
      return await viewer.give(async () => {
        const { resource } = await bridge.submit({
          kind: 'task.submit',
          actor,
          ...traceOf(params),
          body: {
            session_id: viewer.sessionId,
            input: { role: 'user', parts: parts },
            ...(viewer.persona && { persona_id: viewer.persona }),
            ...(agent && { agent }),
          },
        });
        return resource.id;
      });
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind !== 'policy_violation') throw fault;
      await viewer.say(`${fault.message}\n`, `refused.${viewer.sessionId}`);
      return undefined;
    }
  }
}

/** Words for the task that runs, from any client that may see it: the agent gets them now, where it can take them. */
export async function giveSteering(context: PromptContext, params: JsonObject): Promise<JsonObject> {
  const { bridge, actor, viewer } = context;
  const [task_id] = await running(bridge, actor, viewer.sessionId, ['WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED']);
  if (!task_id) throw new Fault('conflict', 'no turn runs in this session: send a prompt');
  const message = { role: 'user' as const, parts: await partsOf(context, listOf(params.prompt)) };
  await bridge.submit({ kind: 'task.message', actor, body: { task_id, kind: 'interrupt', message } });
  return {};
}

/** Bytes become artifacts of the session; other blocks become parts directly. */
async function partsOf({ bridge, actor, viewer }: PromptContext, blocks: readonly Json[]): Promise<Part[]> {
  const parts: Part[] = [];
  for (const block of blocks) {
    requireAudience(block);
    const from = fromBlock(block);
    if (!('file' in from)) {
      parts.push(from.part);
      continue;
    }
    const { kind, mime_type, bytes, name, visibility = 'internal' } = from.file;
    const { resource } = await bridge.submit({
      kind: 'artifact.register',
      actor,
      ...(bytes && { bytes }),
      body: {
        kind: kind as 'image' | 'other',
        mime_type,
        visibility,
        session_id: viewer.sessionId,
        ...(name && { metadata: { name } }),
      },
    });
    parts.push(from.part(resource.id));
  }
  return parts;
}

async function toResult(viewer: Viewer, outcome: PromptOutcome): Promise<JsonObject> {
  if (outcome.kind === 'waiting') {
    const meta = { taskId: outcome.taskId, askId: outcome.ask.id, waiting: 'input' };
    return { stopReason: 'end_turn', _meta: { [OURS]: meta } };
  }
  const { taskId, state, failure, receiptId } = outcome;
  const stop = toWireStop(state, failure);
  if ('code' in stop) {
    const data = { ...objectOf(stop.data), ...compact({ taskId, receiptId }) };
    throw new RpcError({ ...stop, data });
  }
  if (failure && stop.stop === 'refusal') await viewer.say(`${failure.message}\n`, `${taskId}.refused`);
  return { stopReason: stop.stop, _meta: { [OURS]: compact({ taskId, receiptId }) } };
}

/** The unfinished tasks this client submitted; for a client that only watches, all running tasks of the session. Newest first. */
export async function cancelTasks(
  bridge: Bridge,
  actor: Actor,
  viewer: Viewer,
  reason = 'canceled by the editor',
  ownOnly = false,
): Promise<void> {
  const own = [...viewer.open].reverse();
  const tasks = own.length > 0 || ownOnly ? own : await running(bridge, actor, viewer.sessionId);
  for (const task_id of tasks) {
    try {
      await bridge.submit({ kind: 'task.cancel', actor, body: { task_id, reason } });
    } catch (cause) {
      // It ended meanwhile, which has the same result.
      if (!(cause instanceof Fault && cause.kind === 'conflict')) throw cause;
    }
  }
}

const RUNNING = ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED'];

async function running(bridge: Bridge, actor: Actor, sessionId: string, state = RUNNING): Promise<string[]> {
  const where = { session_id: sessionId, state };
  const { data } = await bridge.list<Task & Row>(actor, { object: 'task', where, newestFirst: true, limit: 50 });
  return data.map(({ id }) => id);
}
