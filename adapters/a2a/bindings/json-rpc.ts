/** The JSON-RPC binding: one POST to the agent's base. 1.0 uses our own table, 0.3 the SDK's translation layer. */
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { frames, OPERATIONS, type OperationId, PROTOCOL } from '../../../mappings/a2a.ts';
import { OPERATIONS as OLDER, frames as olderFrames } from '../../../mappings/a2a-0.3.ts';
import { type Authenticate, isObject, type Json, type JsonObject, type Logger, own } from '../../../src/index.ts';
import { envelopeOf, isStrictId, type RequestId } from '../../../src/transport/json-rpc/messages.ts';
import type { A2aSettings } from '../config.ts';
import {
  answer,
  bodyOf,
  contextOf,
  type PeerRequest,
  refuseStream,
  refusing,
  requireVersion,
  sendStream,
  showExtensions,
  versionOf,
} from '../server/exchange.ts';
import { ABSENT_AGENT, Refusal, toErrorReply, toRestError, toRpcError } from '../server/refusal.ts';
import { PERFORM } from './operations.ts';

export interface BindingDeps {
  readonly handler: A2ARequestHandler;
  /** The same, for the SDK's 0.3 layer. */
  readonly legacy: A2ARequestHandler;
  readonly settings: A2aSettings;
  readonly authenticate: Authenticate;
  readonly log: Logger;
}

const METHODS: ReadonlyMap<string, OperationId> = new Map(OPERATIONS.map(({ rpc, id }) => [rpc, id]));
const STREAMING = new Set<string>(OPERATIONS.flatMap((each) => ('streams' in each ? [each.id] : [])));
/** Methods of 0.3 whose every response is a stream. */
const OLDER_STREAMS: ReadonlySet<string> = new Set(OLDER.flatMap(({ id, rpc }) => (STREAMING.has(id) ? [rpc] : [])));
const JSON_TYPE = 'application/json';

export function createJsonRpc(deps: BindingDeps): (incoming: PeerRequest) => Promise<void> {
  const { settings, log } = deps;
  const older = new LegacyJsonRpcTransportHandler(deps.legacy);

  async function current(
    incoming: PeerRequest,
    { id, method, params }: Call,
    context: ServerCallContext,
  ): Promise<void> {
    const operation = METHODS.get(method) as OperationId;
    if (operation !== 'card' && !isObject(params)) throw new Refusal('INVALID_PARAMS', 'params has to be an object');
    const outcome = await PERFORM[operation](deps.handler, (params ?? {}) as JsonObject, context);
    if ('result' in outcome) {
      showExtensions(incoming.response, context);
      answer(incoming.response, 200, JSON_TYPE, { jsonrpc: '2.0', id, result: outcome.result });
      return;
    }
    const wrap = (result: Json): Json => ({ jsonrpc: '2.0', id, result });
    const failed = (thrown: unknown): Json => ({ jsonrpc: '2.0', id, error: toRpcError(thrown) });
    await sendStream(incoming, outcome.stream, { settings, context, log, wrap, failed });
  }

  async function legacy(incoming: PeerRequest, call: Call, context: ServerCallContext): Promise<void> {
    requireNames(call.params);
    const came = (await older.handle(call.body, context)) as Json | AsyncGenerator<Json>;
    const extensionHeader = 'X-A2A-Extensions';
    if (!isStream(came)) {
      if (OLDER_STREAMS.has(call.method)) return refuseStream(incoming.response, came);
      showExtensions(incoming.response, context, extensionHeader);
      answer(incoming.response, 200, JSON_TYPE, came);
      return;
    }
    const failed = (thrown: unknown): Json => ({ jsonrpc: '2.0', id: call.id, error: legacyError(thrown) });
    const wrap = call.method === 'message/stream' ? withFinal : (event: Json) => event;
    const how = { settings, context, log, extensionHeader, wrap, failed };
    await sendStream(incoming, came, how);
  }

  return async (incoming) => {
    let id: RequestId = null;
    let version: string = PROTOCOL;
    let streams = false;
    try {
      version = versionOf(incoming);
      const context = await contextOf(incoming, 'JSONRPC', version, deps.authenticate);
      const type = incoming.request.headers['content-type'];
      if (type && !/^application\/json\s*(;|$)/i.test(type)) {
        throw new Refusal('CONTENT_TYPE_NOT_SUPPORTED', 'the body has to be application/json');
      }
      const body = await bodyOf(incoming.request, settings).catch(asParseError);
      if (isObject(body) && (body.id === null || isStrictId(body.id))) id = body.id;
      requireVersion(version, settings);
      const call = readCall(body, id);
      streams = version !== PROTOCOL && OLDER_STREAMS.has(call.method);
      judge(call, version === PROTOCOL ? frames : olderFrames);
      await (version === PROTOCOL ? current : legacy)(incoming, call, context);
    } catch (thrown) {
      refusing(incoming, thrown, log);
      if (thrown === ABSENT_AGENT) return answer(incoming.response, 404, JSON_TYPE, toRestError(thrown));
      const error = version === PROTOCOL ? toRpcError(thrown) : legacyError(thrown);
      const refused = { jsonrpc: '2.0', id, error } as const;
      if (streams) refuseStream(incoming.response, refused);
      else answer(incoming.response, statusOf(thrown), JSON_TYPE, refused);
    }
  };
}

/** A stream that was opened by sending ends at a question, and 0.3 says so in its last update; the SDK's layer does at an end only. */
function withFinal(event: Json): Json {
  const { result } = event as { result?: { kind?: string; status?: { state?: string } } };
  if (result?.kind !== 'status-update' || result.status?.state !== 'input-required') return event;
  return { ...(event as JsonObject), result: { ...result, final: true } };
}

/** An error that the protocol has a code for is a normal answer; an error that only HTTP defines also sets the HTTP status. */
function statusOf(thrown: unknown): number {
  const { http } = toErrorReply(thrown);
  return [401, 403, 413, 429, 500, 503, 504].includes(http) ? http : 200;
}

function legacyError(thrown: unknown): Json {
  const { rpc, message, reason } = toErrorReply(thrown);
  return { code: rpc, message, data: { reason } };
}

interface Call {
  readonly kind: 'request' | 'notification';
  readonly id: RequestId;
  readonly method: string;
  readonly params: unknown;
  readonly body: JsonObject;
}

function readCall(body: unknown, id: RequestId): Call {
  if (!isObject(body)) throw new Refusal('INVALID_REQUEST', 'a request is one JSON object; batches are not taken');
  const { jsonrpc, params } = body;
  if (jsonrpc !== '2.0') throw new Refusal('INVALID_REQUEST', 'jsonrpc has to be "2.0"');
  const envelope = envelopeOf(body);
  if (envelope.kind === 'invalid') throw new Refusal('INVALID_REQUEST', envelope.reason);
  if (envelope.kind === 'response') throw new Refusal('INVALID_REQUEST', 'this is an answer, and nothing was asked');
  const { kind, method } = envelope;
  if (method === '') throw new Refusal('INVALID_REQUEST', 'method is required');
  if (kind === 'request' && envelope.id !== id)
    throw new Refusal('INVALID_REQUEST', 'id has to be a text or a whole number');
  return { kind, id, method, params, body };
}

/** A call without an id is still a call: it is refused, not carried out silently. What else is wrong with it is said first. */
function judge({ kind, method, params }: Call, table: typeof frames | typeof olderFrames): void {
  const asked = table.judge('client', 'request', method);
  if (!('row' in asked && asked.row))
    throw new Refusal('METHOD_NOT_FOUND', `there is no method ${JSON.stringify(method.slice(0, 80))}`);
  const judged = table.judge('client', kind, method);
  if (judged.handling !== 'refuse') return;
  if (asked.handling === 'act' && !(isObject(params) && isObject(params.message)))
    throw new Refusal('INVALID_PARAMS', 'message is required');
  throw new Refusal('INVALID_REQUEST', judged.reason);
}

/** The SDK's layer does not check these, and puts some into its error texts: an object such as `{"toString":1}` cannot become one. */
function requireNames(params: unknown): void {
  if (!isObject(params)) return;
  requireTexts(params, ['id', 'taskId', 'contextId', 'pushNotificationConfigId']);
  const { message } = params;
  if (!isObject(message)) return;
  requireTexts(message, ['kind', 'messageId', 'role', 'taskId', 'contextId']);
  for (const part of Array.isArray(message.parts) ? message.parts : []) {
    if (isObject(part)) requireTexts(part, ['kind']);
  }
}

function requireTexts(value: JsonObject, names: readonly string[]): void {
  for (const name of names) {
    const member = own(value, name);
    if (member !== undefined && member !== null && typeof member !== 'string') {
      throw new Refusal('INVALID_PARAMS', `${name} has to be a text`);
    }
  }
}

function asParseError(thrown: unknown): never {
  const { reason, message } = toErrorReply(thrown);
  throw reason === 'INVALID_PARAMS' ? new Refusal('PARSE_ERROR', message) : thrown;
}

function isStream(value: unknown): value is AsyncGenerator<Json> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}
