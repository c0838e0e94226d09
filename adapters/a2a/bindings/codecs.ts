/** The request and response codecs of each operation, from the SDK. Every binding uses this one list. */
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
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import type { OperationId } from '../../../mappings/a2a.ts';

export interface Codec<RequestMessage, ResultMessage> {
  readonly requestCodec: { fromJSON(json: unknown): RequestMessage };
  readonly resultCodec: { toJSON(value: ResultMessage): unknown };
}

/** Written out, because the SDK does not export a type for its codecs. */
interface Codecs {
  readonly send: Codec<SendMessageRequest, SendMessageResponse>;
  readonly stream: Codec<SendMessageRequest, StreamResponse>;
  readonly get: Codec<GetTaskRequest, Task>;
  readonly list: Codec<ListTasksRequest, ListTasksResponse>;
  readonly cancel: Codec<CancelTaskRequest, Task>;
  readonly subscribe: Codec<SubscribeToTaskRequest, StreamResponse>;
  readonly createPush: Codec<TaskPushNotificationConfig, TaskPushNotificationConfig>;
  readonly getPush: Codec<GetTaskPushNotificationConfigRequest, TaskPushNotificationConfig>;
  readonly listPush: Codec<ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse>;
  readonly deletePush: Codec<DeleteTaskPushNotificationConfigRequest, unknown>;
  readonly card: Codec<GetExtendedAgentCardRequest, AgentCard>;
}

export const CODECS: Codecs & Record<OperationId, unknown> = {
  send: { requestCodec: SendMessageRequest, resultCodec: SendMessageResponse },
  stream: { requestCodec: SendMessageRequest, resultCodec: StreamResponse },
  get: { requestCodec: GetTaskRequest, resultCodec: Task },
  list: { requestCodec: ListTasksRequest, resultCodec: ListTasksResponse },
  cancel: { requestCodec: CancelTaskRequest, resultCodec: Task },
  subscribe: { requestCodec: SubscribeToTaskRequest, resultCodec: StreamResponse },
  createPush: { requestCodec: TaskPushNotificationConfig, resultCodec: TaskPushNotificationConfig },
  getPush: { requestCodec: GetTaskPushNotificationConfigRequest, resultCodec: TaskPushNotificationConfig },
  listPush: {
    requestCodec: ListTaskPushNotificationConfigsRequest,
    resultCodec: ListTaskPushNotificationConfigsResponse,
  },
  deletePush: { requestCodec: DeleteTaskPushNotificationConfigRequest, resultCodec: { toJSON: () => null } },
  card: { requestCodec: GetExtendedAgentCardRequest, resultCodec: AgentCard },
};
