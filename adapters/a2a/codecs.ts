/** What each operation is given and what it answers, in the SDK's own codecs. The one list of them, for every binding. */
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
import type { OperationId } from '../../mappings/a2a.ts';

interface Codec {
  readonly given: { fromJSON(json: unknown): unknown };
  readonly made: { toJSON(value: never): unknown };
}

const NOTHING = { toJSON: (_: unknown) => null };

export const CODECS = {
  send: { given: SendMessageRequest, made: SendMessageResponse },
  stream: { given: SendMessageRequest, made: StreamResponse },
  get: { given: GetTaskRequest, made: Task },
  list: { given: ListTasksRequest, made: ListTasksResponse },
  cancel: { given: CancelTaskRequest, made: Task },
  subscribe: { given: SubscribeToTaskRequest, made: StreamResponse },
  createPush: { given: TaskPushNotificationConfig, made: TaskPushNotificationConfig },
  getPush: { given: GetTaskPushNotificationConfigRequest, made: TaskPushNotificationConfig },
  listPush: { given: ListTaskPushNotificationConfigsRequest, made: ListTaskPushNotificationConfigsResponse },
  deletePush: { given: DeleteTaskPushNotificationConfigRequest, made: NOTHING },
  card: { given: GetExtendedAgentCardRequest, made: AgentCard },
} as const satisfies Record<OperationId, Codec>;
