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

export interface Codec<Given, Made> {
  readonly given: { fromJSON(json: unknown): Given };
  readonly made: { toJSON(value: Made): unknown };
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
  send: { given: SendMessageRequest, made: SendMessageResponse },
  stream: { given: SendMessageRequest, made: StreamResponse },
  get: { given: GetTaskRequest, made: Task },
  list: { given: ListTasksRequest, made: ListTasksResponse },
  cancel: { given: CancelTaskRequest, made: Task },
  subscribe: { given: SubscribeToTaskRequest, made: StreamResponse },
  createPush: { given: TaskPushNotificationConfig, made: TaskPushNotificationConfig },
  getPush: { given: GetTaskPushNotificationConfigRequest, made: TaskPushNotificationConfig },
  listPush: { given: ListTaskPushNotificationConfigsRequest, made: ListTaskPushNotificationConfigsResponse },
  deletePush: { given: DeleteTaskPushNotificationConfigRequest, made: { toJSON: () => null } },
  card: { given: GetExtendedAgentCardRequest, made: AgentCard },
};
