/** The eleven operations with JSON parameters and results, shared by both HTTP bindings. */
import type { Message, SendMessageResponse, StreamResponse, Task } from '@a2a-js/sdk';
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';
import type { OperationId } from '../../../mappings/a2a.ts';
import type { Json, JsonObject } from '../../../src/index.ts';
import { Refusal } from '../server/refusal.ts';
import { CODECS, type Codec } from './codecs.ts';

export type Params = JsonObject;
export type Outcome = { readonly result: Json } | { readonly stream: AsyncGenerator<Json> };
type Perform = (handler: A2ARequestHandler, params: Params, context: ServerCallContext) => Promise<Outcome>;

export const PERFORM: Readonly<Record<OperationId, Perform>> = {
  send: answering(CODECS.send, async (handler, ...given) => sent(await handler.sendMessage(...given))),
  stream: streaming(CODECS.stream, (handler, ...given) => handler.sendMessageStream(...given)),
  get: answering(CODECS.get, (handler, ...given) => handler.getTask(...given)),
  list: answering(CODECS.list, (handler, ...given) => handler.listTasks(...given), {
    whole: (json, { includeArtifacts }) => listed(json, includeArtifacts === true),
  }),
  cancel: answering(CODECS.cancel, (handler, ...given) => handler.cancelTask(...given)),
  subscribe: streaming(CODECS.subscribe, (handler, ...given) => handler.resubscribe(...given)),
  createPush: answering(CODECS.createPush, (handler, ...given) => handler.createTaskPushNotificationConfig(...given)),
  getPush: answering(CODECS.getPush, (handler, ...given) => handler.getTaskPushNotificationConfig(...given)),
  listPush: answering(CODECS.listPush, (handler, ...given) => handler.listTaskPushNotificationConfigs(...given), {
    whole: (json) => ({ configs: [], ...json }),
  }),
  deletePush: answering(CODECS.deletePush, (handler, ...given) => handler.deleteTaskPushNotificationConfig(...given)),
  card: answering(CODECS.card, (handler, ...given) => handler.getAuthenticatedExtendedAgentCard(...given)),
};

type Call<Request, Came> = (handler: A2ARequestHandler, request: Request, context: ServerCallContext) => Came;

/** `whole`: adds members that the codec omits because they are empty and that the protocol requires. */
function answering<Request, Result>(
  { given, made }: Codec<Request, Result>,
  call: Call<Request, Promise<Result>>,
  { whole }: { whole?(json: JsonObject, request: Request): Json } = {},
): Perform {
  return async (handler, params, context) => {
    const request = read(given, params);
    const json = made.toJSON(await call(handler, request, context)) as JsonObject;
    return { result: whole ? whole(json, request) : json };
  };
}

function streaming<Request>(
  { given, made }: Codec<Request, StreamResponse>,
  call: Call<Request, AsyncGenerator<StreamResponse>>,
): Perform {
  async function* encoded(updates: AsyncGenerator<StreamResponse>): AsyncGenerator<Json> {
    for await (const update of updates) yield made.toJSON(update) as Json;
  }
  return async (handler, params, context) => ({ stream: encoded(call(handler, read(given, params), context)) });
}

/** The codecs expect objects where the protocol has them, and throw on anything else. */
function read<Request>(given: { fromJSON(json: unknown): Request }, params: Params): Request {
  try {
    return given.fromJSON(params);
  } catch {
    throw new Refusal('INVALID_PARAMS', 'params do not have the members this method takes');
  }
}

function sent(came: Message | Task): SendMessageResponse {
  return { payload: 'messageId' in came ? { $case: 'message', value: came } : { $case: 'task', value: came } };
}

/** The four members are always present; artifacts are present when they were requested. */
function listed(json: JsonObject, artifacts: boolean): Json {
  const tasks = ((json.tasks ?? []) as JsonObject[]).map((task) => (artifacts ? { artifacts: [], ...task } : task));
  return { nextPageToken: '', pageSize: 0, totalSize: 0, ...json, tasks };
}
