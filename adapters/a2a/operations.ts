/** The eleven operations as JSON in and JSON out, once for both HTTP bindings. The codecs are the SDK's. */
import {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetExtendedAgentCardRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';
import type { OperationId } from '../../mappings/a2a.ts';
import type { Json, JsonObject } from '../../src/index.ts';

export type Params = JsonObject;
export type Outcome = { readonly result: Json } | { readonly stream: AsyncGenerator<Json> };
type Perform = (handler: A2ARequestHandler, params: Params, context: ServerCallContext) => Promise<Outcome>;

export const PERFORM: Readonly<Record<OperationId, Perform>> = {
  async send(handler, params, context) {
    const came = await handler.sendMessage(SendMessageRequest.fromJSON(params), context);
    return { result: ('messageId' in came ? { message: Message.toJSON(came) } : { task: Task.toJSON(came) }) as Json };
  },
  async stream(handler, params, context) {
    return { stream: encoded(handler.sendMessageStream(SendMessageRequest.fromJSON(params), context)) };
  },
  async get(handler, params, context) {
    return { result: Task.toJSON(await handler.getTask(GetTaskRequest.fromJSON(params), context)) as Json };
  },
  async list(handler, params, context) {
    const request = ListTasksRequest.fromJSON(params);
    return { result: listed(await handler.listTasks(request, context), request.includeArtifacts === true) };
  },
  async cancel(handler, params, context) {
    return { result: Task.toJSON(await handler.cancelTask(CancelTaskRequest.fromJSON(params), context)) as Json };
  },
  async subscribe(handler, params, context) {
    return { stream: encoded(handler.resubscribe(SubscribeToTaskRequest.fromJSON(params), context)) };
  },
  async createPush(handler, params, context) {
    const made = await handler.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(params), context);
    return { result: TaskPushNotificationConfig.toJSON(made) as Json };
  },
  async getPush(handler, params, context) {
    const request = GetTaskPushNotificationConfigRequest.fromJSON(params);
    const found = await handler.getTaskPushNotificationConfig(request, context);
    return { result: TaskPushNotificationConfig.toJSON(found) as Json };
  },
  async listPush(handler, params, context) {
    const request = ListTaskPushNotificationConfigsRequest.fromJSON(params);
    const found = await handler.listTaskPushNotificationConfigs(request, context);
    const json = ListTaskPushNotificationConfigsResponse.toJSON(found) as JsonObject;
    return { result: { configs: [], ...json } };
  },
  async deletePush(handler, params, context) {
    await handler.deleteTaskPushNotificationConfig(DeleteTaskPushNotificationConfigRequest.fromJSON(params), context);
    return { result: null };
  },
  async card(handler, params, context) {
    const card = await handler.getAuthenticatedExtendedAgentCard(GetExtendedAgentCardRequest.fromJSON(params), context);
    return { result: AgentCard.toJSON(card) as Json };
  },
};

async function* encoded(updates: AsyncGenerator<StreamResponse>): AsyncGenerator<Json> {
  for await (const update of updates) yield StreamResponse.toJSON(update) as Json;
}

/** The four members are always there, and artifacts are when they were asked for. */
function listed(response: ListTasksResponse, artifacts: boolean): Json {
  const json = ListTasksResponse.toJSON(response) as { tasks?: JsonObject[] };
  const tasks = (json.tasks ?? []).map((task) => (artifacts ? { artifacts: [], ...task } : task));
  const { nextPageToken, pageSize, totalSize } = response;
  return { tasks, nextPageToken, pageSize, totalSize } as Json;
}
