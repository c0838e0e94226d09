/** The HTTP+JSON binding below the agent's base. 1.0 uses our own table, 0.3 the SDK's router. */

import { legacyRestRouter } from '@a2a-js/sdk/compat/v0_3/server/express';
import { ServerCallContext } from '@a2a-js/sdk/server';
import express, { type Request, type Response } from 'express';
import { OPERATIONS, type Operation, type OperationId, PROTOCOL } from '../../../mappings/a2a.ts';
import type { JsonObject } from '../../../src/index.ts';
import { asText, isObject } from '../../../src/index.ts';
import {
  answer,
  bodyOf,
  contextOf,
  type PeerRequest,
  refusing,
  requireVersion,
  sendStream,
  showExtensions,
  versionOf,
} from '../server/exchange.ts';
import { ABSENT_AGENT, Refusal, toErrorReply, toLegacyError, toRestError } from '../server/refusal.ts';
import { roomIn } from './backpressure.ts';
import { mapErrors } from './error-mapping.ts';
import type { BindingDeps } from './json-rpc.ts';
import { PERFORM } from './operations.ts';

const A2A_JSON = 'application/a2a+json';

/** The protocol's own media type, unless the client names only the general one. */
function typeFor({ headers: { accept = '' } }: PeerRequest['request']): string {
  return /application\/json/i.test(accept) && !/application\/a2a\+json/i.test(accept) ? 'application/json' : A2A_JSON;
}

interface Route extends Operation {
  readonly id: OperationId;
  readonly pattern: RegExp;
}

const ROUTES: readonly Route[] = OPERATIONS.map((operation) => ({
  ...operation,
  pattern: new RegExp(`^(?:/(?<tenant>[^/]+))?${operation.path.replace(/\{(\w+)\}/g, '(?<$1>[^/:]+)')}$`),
}));

interface Match {
  readonly route: Route;
  readonly groups: Readonly<Record<string, string | undefined>>;
}

function match(method: string, path: string): Match | 'verb' | undefined {
  let wrongVerb = false;
  for (const route of ROUTES) {
    const found = route.pattern.exec(path);
    if (!found) continue;
    if (!(route.verbs as readonly string[]).includes(method)) wrongVerb = true;
    else return { route, groups: found.groups ?? {} };
  }
  return wrongVerb ? 'verb' : undefined;
}

export function createRest(deps: BindingDeps): (incoming: PeerRequest) => Promise<void> {
  const { settings, log } = deps;
  const older = createOlder(deps);

  async function current(incoming: PeerRequest): Promise<void> {
    const { request, response, path } = incoming;
    const found = match(request.method ?? '', path);
    const context = await contextOf(incoming, 'HTTP+JSON', PROTOCOL, deps.authenticate);
    if (found === 'verb') throw new Refusal('METHOD_NOT_FOUND', `${request.method} is not for this address`);
    if (!found) throw new Refusal('METHOD_NOT_FOUND', 'there is no operation at this address');
    const { route, groups } = found;
    const params = await paramsOf(incoming, route, groups);
    const outcome = await PERFORM[route.id](deps.handler, params, context);
    if ('result' in outcome) {
      showExtensions(response, context);
      // Whatever it did, 200 and a body, an empty object for no result: the Go SDK takes 201 and 204 for errors.
      answer(response, 200, typeFor(request), outcome.result ?? {});
      return;
    }
    await sendStream(incoming, outcome.stream, { settings, context, log, wrap: (event) => event, failed: toRestError });
  }

  async function paramsOf({ request, query }: PeerRequest, route: Route, groups: Match['groups']): Promise<JsonObject> {
    const type = request.headers['content-type'];
    if (type && !/^application\/(a2a\+)?json\s*(;|$)/i.test(type)) {
      throw new Refusal('CONTENT_TYPE_NOT_SUPPORTED', `the body has to be ${A2A_JSON} or application/json`);
    }
    const body = request.method === 'POST' ? ((await bodyOf(request, settings)) ?? {}) : {};
    if (!isObject(body)) {
      throw new Refusal('INVALID_PARAMS', 'the body has to be a JSON object');
    }
    const { tenant, id, configId } = groups;
    const push = route.id.endsWith('Push');
    return {
      ...(body as JsonObject),
      ...(request.method === 'GET' && queryOf(query)),
      ...(tenant && { tenant: decode(tenant) }),
      ...(id && { [push ? 'taskId' : 'id']: decode(id) }),
      ...(configId && { id: decode(configId) }),
    };
  }

  return async (incoming) => {
    try {
      const version = versionOf(incoming);
      requireVersion(version, settings);
      if (version === PROTOCOL) await current(incoming);
      else await older(incoming, version);
    } catch (thrown) {
      refusing(incoming, thrown, log);
      const type = thrown === ABSENT_AGENT ? 'application/json' : typeFor(incoming.request);
      answer(incoming.response, toErrorReply(thrown).http, type, toRestError(thrown));
    }
  };
}

const NUMBERS = new Set(['pageSize', 'historyLength']);
const TRUTHS = new Set(['includeArtifacts']);

function queryOf(query: URLSearchParams): JsonObject {
  const params: Record<string, string | number | boolean> = {};
  for (const [name, value] of query) {
    if (name.toLowerCase() === 'a2a-version' || value === '') continue;
    if (NUMBERS.has(name)) {
      if (!/^-?\d{1,9}$/.test(value)) throw new Refusal('INVALID_PARAMS', `${name} has to be a whole number`);
      params[name] = Number(value);
    } else if (TRUTHS.has(name)) {
      if (value !== 'true' && value !== 'false') throw new Refusal('INVALID_PARAMS', `${name} is true or false`);
      params[name] = value === 'true';
    } else params[name] = value;
  }
  return params;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Refusal('INVALID_PARAMS', 'the address is not well formed');
  }
}

/** The SDK's router needs an Express request with its body and caller already set; nothing else here needs Express. */
function createOlder(deps: BindingDeps): (incoming: PeerRequest, version: string) => Promise<void> {
  const contexts = new WeakMap<object, ServerCallContext>();
  const responses = new WeakMap<object, PeerRequest['response']>();
  /** The router writes as fast as events arrive, so events are held back until there is room. */
  async function room({ user }: ServerCallContext): Promise<boolean> {
    const response = user && responses.get(user);
    const how = response ? await roomIn(response, 'close', deps.settings.stallMs) : 'room';
    if (how === 'late') {
      deps.log.warn({}, 'a stream was ended: its client stopped reading');
      response?.destroy();
    }
    return how === 'room';
  }
  const router = legacyRestRouter({
    requestHandler: mapErrors(deps.handler, { words: toLegacyError, room }),
    userBuilder: async (request) => contexts.get(request)!.user!,
    contextBuilder: ({ user, requestedVersion, tenant, extensions }) =>
      new ServerCallContext({
        user: user!,
        requestedExtensions: extensions ?? [],
        ...(requestedVersion && { requestedVersion }),
        ...(tenant && { tenant }),
      }),
  });
  const app = express().disable('x-powered-by').disable('etag').set('query parser', false).use(router);
  return async (incoming, version) => {
    const { request, response, path, query } = incoming;
    const context = await contextOf(incoming, 'HTTP+JSON', version, deps.authenticate);
    contexts.set(request, context);
    responses.set(context.user as object, response);
    const body = request.method === 'POST' ? await bodyOf(request, deps.settings) : undefined;
    request.headers['a2a-version'] = version;
    Object.assign(request, { body: configIn(path, body), url: path });
    Object.defineProperty(request, 'query', { value: Object.fromEntries(query), configurable: true, writable: true });
    heartbeat(response as Response, deps.settings.keepAliveMs);
    await new Promise<void>((resolve, reject) => {
      response.once('close', resolve);
      app(request as Request, response as Response, (thrown?: unknown) => {
        reject(thrown ?? new Refusal('METHOD_NOT_FOUND', 'there is no operation at this address'));
      });
    });
  };
}

/**
 * The protocol's own mapping says that a push configuration is the `config` of its request; its Python SDK and its test kit
 * send the whole request. Both are accepted.
 */
function configIn(path: string, body: unknown): unknown {
  const config = path.endsWith('/pushNotificationConfigs')
    ? (body as { config?: unknown } | undefined)?.config
    : undefined;
  return typeof config === 'object' && config !== null ? config : body;
}

/** The router's streams have no heartbeat, and proxies cut a quiet connection. */
function heartbeat(response: Response, everyMs: number): void {
  const flush = response.flushHeaders.bind(response);
  response.flushHeaders = () => {
    flush();
    if (!asText(response.getHeader('content-type')).startsWith('text/event-stream')) return;
    const timer = setInterval(() => response.write(': keep-alive\n\n'), everyMs).unref();
    response.once('close', () => clearInterval(timer));
  };
}
