/**
 * The protocol's operations on the bridge. Every answer is read from the log, and every request goes through the gate. There is
 * one handler for each agent; it knows no binding and holds no task.
 */
import type { AgentCard, Message, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk';
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { EXTENSIONS } from '../../../mappings/a2a.ts';
import {
  type AskRecord,
  anySignal,
  type Bridge,
  type CoreEvent,
  Fault,
  isTerminal,
  type JsonObject,
  mayAnswer,
  type Row,
} from '../../../src/index.ts';
import type { A2aSettings } from '../config.ts';
import type { Push } from '../push/push.ts';
import { aboutMessage, artifactKind, type KeepFile, toCoreMessage } from '../translate.ts';
import { activated, type CallOptions, callOf } from './caller.ts';
import { checkHistoryLength, checkId, checkList, checkSend } from './checks.ts';
import type { Contexts } from './contexts.ts';
import { listTasks } from './list-tasks.ts';
import { type Answering, answeredBy, toCoreAnswer } from './questions.ts';
import { Refusal } from './refusal.ts';
import type { TaskProjection, Update } from './render-events.ts';
import { type Owned, type Reading, type TaskReader, whyQueued } from './task-reader.ts';

export interface HandlerDeps {
  readonly bridge: Bridge;
  readonly settings: A2aSettings;
  readonly agent: string;
  /** Accepts messages while it works. */
  readonly steers: boolean;
  readonly contexts: Contexts;
  readonly reader: TaskReader;
  readonly push: Push | undefined;
  /** Fires when the door is closed: streams end with it. */
  readonly closing: AbortSignal;
  card(): Promise<AgentCard>;
  extendedCard(call: CallOptions): Promise<AgentCard>;
}

interface Submission extends Reading {
  readonly once: boolean;
  readonly version: string;
  /** Questions that are open in the context. */
  readonly before: readonly AskRecord[];
}

/** The result of a send. For a new task `projection` is still empty: not even the events that began the task were applied. */
interface Begun {
  readonly owned: Owned;
  readonly projection: TaskProjection;
  readonly fresh: boolean;
  readonly written?: readonly CoreEvent[] | undefined;
  /** It has not begun, because another task in its context waits for an answer: waiting for it would wait for that. */
  readonly queued?: string | undefined;
}

export function createHandler(deps: HandlerDeps): A2ARequestHandler {
  const { bridge, settings, agent, contexts, reader, push } = deps;

  const whileOpen = (signal: AbortSignal) => anySignal([signal, deps.closing]);

  function pushOrRefuse(): Push {
    if (push) return push;
    throw new Refusal('PUSH_NOTIFICATION_NOT_SUPPORTED', 'this agent sends no push notifications');
  }

  /** The tenant of a request is only a routing hint and grants nothing. */
  function enter(context: ServerCallContext, tenant: string | undefined): CallOptions {
    const call = callOf(context);
    if (tenant && tenant !== call.actor.tenant_id)
      throw new Refusal('TASK_NOT_FOUND', 'there is nothing at this address');
    // The activity extension needs more than the public view, which requires a scope.
    if (!activated(context).has(EXTENSIONS.activity)) return call;
    return { ...call, actor: { ...call.actor, sees: 'internal' } };
  }

  /** Adds the hash of the receipt, for callers that requested the record extension: it costs one more read of the log. */
  async function proven(actor: CallOptions['actor'], task: Task, context: ServerCallContext): Promise<Task> {
    return activated(context).has(EXTENSIONS.record) ? await reader.withReceipt(actor, task) : task;
  }

  /** `quiet`: only the final state matters. */
  async function begin(params: SendMessageRequest, context: ServerCallContext, quiet: boolean): Promise<Begun> {
    const call = enter(context, params.tenant);
    const message = checkSend(params, settings.inputModes);
    const config = params.configuration?.taskPushNotificationConfig;
    // A request that is refused has had no effect.
    if (config) await pushOrRefuse().check(config);
    const wanted = activated(context);
    // Some clients can name an extension in a message and not in a header.
    const texts = wanted.has(EXTENSIONS.textAnswers) || message.extensions.includes(EXTENSIONS.textAnswers);
    const how = { ...extended(wanted), ...(texts && { texts }), quiet };
    const before = message.taskId ? [] : await openBefore(call, message);
    const taskId = message.taskId || (await answered(call, message, before, how));
    const begun = taskId
      ? await goOn(call, { ...message, taskId }, how)
      : await submit(call, message, params, {
          once: wanted.has(EXTENSIONS.once),
          version: context.requestedVersion,
          before,
          ...how,
        });
    if (config)
      await pushOrRefuse().create(call.actor, begun.owned.task, config, context.requestedVersion, begun.fresh);
    return begun;
  }

  /** Questions that are open in the context that a message names, when it names no task. A context is one caller's. */
  async function openBefore({ actor }: CallOptions, { contextId }: Message): Promise<readonly AskRecord[]> {
    const session = contextId ? await contexts.find(actor, contextId) : undefined;
    return session ? await reader.openIn(actor, session) : [];
  }

  /** The task that a message continues which names only its context. Tasks of other agents in it are continued at their own addresses. */
  async function answered(call: CallOptions, message: Message, before: readonly AskRecord[], how: Reading) {
    const here = before.length > 0 ? await reader.ofMine(call.actor, before) : [];
    return answeredBy(message, here, answering(call, how))?.task_id;
  }

  /** Tasks of a context are the caller's own. */
  function answering({ actor }: CallOptions, { texts }: Reading): Answering {
    const own = { created_by: actor.id };
    return { may: (ask) => mayAnswer(actor, ask, own), texts: texts ?? settings.textApprovals };
  }

  async function submit(
    call: CallOptions,
    message: Message,
    params: SendMessageRequest,
    { once, version, before, ...how }: Submission,
  ): Promise<Begun> {
    const { actor } = call;
    // The protocol leaves repeats open, and its own test kit sends one id twice; so a message id is a key only on request.
    const key = call.idempotencyKey ?? (once ? message.messageId : undefined);
    const context = await contexts.open(actor, message.contextId);
    const input = await toCoreMessage(message, keepFor(call));
    const { resource, written } = await bridge.submit({
      kind: 'task.submit',
      actor,
      body: {
        agent,
        // A refusal of the work is a task that says so; a refusal of the caller stays an error.
        refusal: 'task',
        input: input,
        metadata: {
          a2a: {
            version,
            binding: call.binding,
            ...(context.contextId && { context_id: context.contextId }),
            ...aboutMessage(message),
            ...(params.metadata && { metadata: params.metadata }),
          },
          ...callerIn(params),
        },
        ...context.in,
      },
      ...(key && { idempotency: { key, target: `a2a/${agent}` } }),
      ...call.trace,
    });
    const task = resource as Owned['task'];
    const contextId = context.contextId ?? task.session_id;
    const queued = task.status === 'SUBMITTED' ? whyQueued(task, before) : undefined;
    const projection = reader.begin(actor, contextId, { ...how, queued });
    return { owned: { task, contextId }, projection, fresh: true, written, queued };
  }

  /** The next message on a task: an answer when it asks, otherwise a message to the working agent. */
  async function goOn(call: CallOptions, message: Message, how: Reading): Promise<Begun> {
    const { actor } = call;
    const owned = await reader.own(actor, checkId(message.taskId, 'message.taskId'));
    const { task, contextId } = owned;
    if (message.contextId && message.contextId !== contextId) {
      throw new Refusal('INVALID_PARAMS', 'message.contextId is not the context of this task');
    }
    if (isTerminal(task.status)) {
      throw new Refusal('UNSUPPORTED_OPERATION', `task ${task.id} has ended and takes no more messages`);
    }
    const where = { task_id: task.id, state: 'open' };
    const open = (await bridge.list<AskRecord & Row>(actor, { object: 'ask', where, limit: 50 })).data;
    if (open.length > 0) {
      const body = toCoreAnswer(message, open, answering(call, how));
      await bridge.submit({ kind: 'ask.answer', actor, body });
    } else {
      if (!deps.steers) throw new Refusal('UNSUPPORTED_OPERATION', 'this agent takes no messages while it works');
      const said = { ...(await toCoreMessage(message, keepFor(call))), metadata: { a2a: aboutMessage(message) } };
      const body = { task_id: task.id, kind: 'interrupt' as const, message: said };
      await bridge.submit({ kind: 'task.message', actor, body });
    }
    return { owned, projection: await reader.catchUp(actor, owned, how), fresh: false };
  }

  function keepFor({ actor }: CallOptions) {
    return async ({ bytes, mime_type, name, visibility }: Parameters<KeepFile>[0]) => {
      const { resource } = await bridge.submit({
        kind: 'artifact.register',
        actor,
        bytes,
        body: {
          kind: artifactKind(mime_type) as 'file',
          mime_type,
          visibility,
          workspace_id: await contexts.workspace(actor),
          metadata: { ...(name && { name }), a2a: { owner: actor.id } },
        },
      });
      return resource.id;
    };
  }

  async function* streamed(
    begun: Begun,
    call: CallOptions,
    wanted: ReadonlySet<string>,
    historyLength: number | undefined,
  ): AsyncGenerator<StreamResponse> {
    const { owned, projection, fresh } = begun;
    const encode = updateEncoder(projection, wanted.has(EXTENSIONS.resume), historyLength);
    if (!fresh) yield encode({ $case: 'task', value: projection.snapshot() });
    // At INPUT_REQUIRED the caller must answer; any approver may answer an approval, so those streams stay open.
    const over = () => projection.waiting && projection.status === 'INPUT_REQUIRED';
    if (!fresh && over()) return;
    for await (const updates of reader.follow(call.actor, owned.task.id, projection, whileOpen(call.signal))) {
      for (const update of updates) yield encode(update);
      if (over()) return;
    }
  }

  return {
    getAgentCard: () => deps.card(),

    async getAuthenticatedExtendedAgentCard(params, context) {
      const call = enter(context, params.tenant);
      if (settings.extendedCard) return await deps.extendedCard(call);
      throw new Refusal('UNSUPPORTED_OPERATION', 'this agent has no extended card');
    },

    async sendMessage(params, context) {
      const { owned, projection, fresh, written, queued } = await begin(params, context, true);
      const call = enter(context, params.tenant);
      const view = { historyLength: params.configuration?.historyLength };
      const done = () => projection.ended || projection.waiting;
      if ((params.configuration?.returnImmediately || queued) && fresh) {
        return await reader.snapshot(call.actor, owned, view.historyLength);
      }
      if (!params.configuration?.returnImmediately && !(done() && !fresh)) {
        await reader.settle(call.actor, owned.task.id, projection, call.signal, written);
      }
      return projection.reply ?? (await proven(call.actor, projection.snapshot(view), context));
    },

    async *sendMessageStream(params, context) {
      const wanted = activated(context);
      const begun = await begin(params, context, false);
      yield* streamed(begun, enter(context, params.tenant), wanted, params.configuration?.historyLength);
    },

    async getTask(params, context) {
      const { actor } = enter(context, params.tenant);
      checkHistoryLength(params.historyLength);
      const task = await reader.snapshot(actor, await reader.own(actor, checkId(params.id)), params.historyLength);
      return await proven(actor, task, context);
    },

    async listTasks(params, context) {
      const { actor } = enter(context, params.tenant);
      checkList(params);
      return await listTasks({ bridge, reader, contexts }, actor, params);
    },

    async cancelTask(params, context) {
      const { actor } = enter(context, params.tenant);
      const owned = await reader.own(actor, checkId(params.id));
      const reason = typeof params.metadata?.reason === 'string' ? { reason: params.metadata.reason } : {};
      try {
        await bridge.submit({ kind: 'task.cancel', actor, body: { task_id: owned.task.id, ...reason } });
      } catch (thrown) {
        if (thrown instanceof Fault && thrown.kind === 'conflict') {
          throw new Refusal('TASK_NOT_CANCELABLE', thrown.message);
        }
        throw thrown;
      }
      return await reader.snapshot(actor, owned);
    },

    async *resubscribe(params, context) {
      const call = enter(context, params.tenant);
      const wanted = activated(context);
      const owned = await reader.own(call.actor, checkId(params.id));
      const resume = wanted.has(EXTENSIONS.resume);
      const upTo = resume && call.lastEventId ? await cursorIn(owned, call) : undefined;
      const projection = await reader.catchUp(call.actor, owned, { ...extended(wanted), ...(upTo && { upTo }) });
      if (projection.ended && !upTo) throw new Refusal('UNSUPPORTED_OPERATION', `task ${owned.task.id} has ended`);
      const encode = updateEncoder(projection, resume);
      yield encode({ $case: 'task', value: projection.snapshot() });
      for await (const updates of reader.follow(call.actor, owned.task.id, projection, whileOpen(call.signal))) {
        for (const update of updates) yield encode(update);
      }
    },

    async createTaskPushNotificationConfig(params, context) {
      const { actor } = enter(context, params.tenant);
      const { task } = await reader.own(actor, checkId(params.taskId, 'taskId'));
      return await pushOrRefuse().create(actor, task, params, context.requestedVersion);
    },
    async getTaskPushNotificationConfig(params, context) {
      const { actor } = enter(context, params.tenant);
      const { task } = await reader.own(actor, checkId(params.taskId, 'taskId'));
      return await pushOrRefuse().get(task, checkId(params.id));
    },
    async listTaskPushNotificationConfigs(params, context) {
      const { actor } = enter(context, params.tenant);
      const { task } = await reader.own(actor, checkId(params.taskId, 'taskId'));
      return { configs: await pushOrRefuse().list(task), nextPageToken: '' };
    },
    async deleteTaskPushNotificationConfig(params, context) {
      const { actor } = enter(context, params.tenant);
      const { task } = await reader.own(actor, checkId(params.taskId, 'taskId'));
      await pushOrRefuse().remove(task, checkId(params.id));
    },
  };

  /** The last event a reader received, if it belongs to this task. */
  async function cursorIn({ task }: Owned, { actor, lastEventId }: CallOptions): Promise<string> {
    const event = await bridge
      .view<Row & { task_id?: string }>(actor, 'event', lastEventId as string)
      .catch(() => undefined);
    if (event?.task_id === task.id) return event.id;
    throw new Refusal('CURSOR_EXPIRED', 'this cursor is not a position in the stream of this task');
  }
}

/** How a caller with these extensions reads a task. */
function extended(wanted: ReadonlySet<string>): Reading {
  return { activity: wanted.has(EXTENSIONS.activity), pieces: wanted.has(EXTENSIONS.pieces) };
}

/** The reference of another Tollbridge gateway, for the core to read. */
function callerIn({ metadata }: SendMessageRequest): { tollbridge?: JsonObject } {
  const record = metadata?.[EXTENSIONS.record] as { caller?: JsonObject } | undefined;
  return record?.caller ? { tollbridge: { caller: record.caller } } : {};
}

/** Encodes updates; with the resume extension each carries the reader's position. */
function updateEncoder(
  projection: TaskProjection,
  resume: boolean,
  historyLength?: number,
): (update: Update) => StreamResponse {
  if (!resume) return (update) => ({ payload: shortened(update, historyLength) });
  return (rendered) => {
    const update = shortened(rendered, historyLength);
    const metadata = { ...(update.value.metadata ?? {}), [EXTENSIONS.resume]: { cursor: projection.cursor } };
    return { payload: { ...update, value: { ...update.value, metadata } } as Update };
  };
}

/** A task with as much of its history as was requested. */
function shortened(update: Update, historyLength: number | undefined): Update {
  if (update.$case !== 'task' || historyLength === undefined) return update;
  const history = historyLength === 0 ? [] : update.value.history.slice(-historyLength);
  return { ...update, value: { ...update.value, history } };
}
