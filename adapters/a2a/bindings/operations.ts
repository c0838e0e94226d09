/** The eleven operations with JSON parameters and results, shared by both HTTP bindings. */
import type { Message, SendMessageResponse, StreamResponse, Task } from '@a2a-js/sdk';
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';
import type { OperationId } from '../../../mappings/a2a.ts';
import type { Json, JsonObject } from '../../../src/index.ts';
import { Refusal } from '../server/refusal.ts';
import { CODECS, type Codec } from './codecs.ts';

export type Params = JsonObject;
type Outcome = { readonly result: Json } | { readonly stream: AsyncGenerator<Json> };
type Perform = (handler: A2ARequestHandler, params: Params, context: ServerCallContext) => Promise<Outcome>;

export const PERFORM: Readonly<Record<OperationId, Perform>> = {
  send: answering(CODECS.send, async (handler, ...args) => sent(await handler.sendMessage(...args))),
  stream: streaming(CODECS.stream, (handler, ...args) => handler.sendMessageStream(...args)),
  get: answering(CODECS.get, (handler, ...args) => handler.getTask(...args)),
  list: answering(CODECS.list, (handler, ...args) => handler.listTasks(...args), {
    whole: (json, { includeArtifacts }) => listed(json, includeArtifacts === true),
  }),
  cancel: answering(CODECS.cancel, (handler, ...args) => handler.cancelTask(...args)),
  subscribe: streaming(CODECS.subscribe, (handler, ...args) => handler.resubscribe(...args)),
  createPush: answering(CODECS.createPush, (handler, ...args) => handler.createTaskPushNotificationConfig(...args)),
  getPush: answering(CODECS.getPush, (handler, ...args) => handler.getTaskPushNotificationConfig(...args)),
  listPush: answering(CODECS.listPush, (handler, ...args) => handler.listTaskPushNotificationConfigs(...args), {
    whole: (json) => ({ configs: [], ...json }),
  }),
  deletePush: answering(CODECS.deletePush, (handler, ...args) => handler.deleteTaskPushNotificationConfig(...args)),
  card: answering(CODECS.card, (handler, ...args) => handler.getAuthenticatedExtendedAgentCard(...args)),
};

type Call<Request, Came> = (handler: A2ARequestHandler, request: Request, context: ServerCallContext) => Came;

/** `whole`: adds members that the codec omits because they are empty and that the protocol requires. */
function answering<Request, Result>(
  { requestCodec, resultCodec }: Codec<Request, Result>,
  call: Call<Request, Promise<Result>>,
  { whole }: { whole?(json: JsonObject, request: Request): Json } = {},
): Perform {
  return async (handler, params, context) => {
    const request = read(requestCodec, params);
    const json = resultCodec.toJSON(await call(handler, request, context)) as JsonObject;
    return { result: whole ? whole(json, request) : json };
  };
}

function streaming<Request>(
  { requestCodec, resultCodec }: Codec<Request, StreamResponse>,
  call: Call<Request, AsyncGenerator<StreamResponse>>,
): Perform {
  async function* encoded(updates: AsyncGenerator<StreamResponse>): AsyncGenerator<Json> {
    for await (const update of updates) yield resultCodec.toJSON(update) as Json;
  }
  return async (handler, params, context) => ({ stream: encoded(call(handler, read(requestCodec, params), context)) });
}

/** The codecs expect objects where the protocol has them, and throw on anything else. */
function read<Request>(codec: { fromJSON(json: unknown): Request }, params: Params): Request {
  try {
    return codec.fromJSON(params);
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
