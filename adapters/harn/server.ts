/**
 * The door: REST, event streams and WebSocket in the canonical protocol's own words. Frames in, frames out; no policy and
 * no state here. Every failure leaves in the same envelope, and a wrong version is told before anything else is asked.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type QueryName, VERSION_HEADER } from '../../mappings/harn.ts';
import {
  type Actor,
  asFault,
  type Bridge,
  type Closable,
  check,
  type Deps,
  Fault,
  type FrontDoor,
  PROTOCOL_VERSION,
} from '../../src/index.ts';
import { bearerOf } from '../../src/wire/bearer.ts';
import { JSON_LIMITS, readBytes, readJson } from '../../src/wire/body.ts';
import { requestIdOf } from '../../src/wire/http.ts';
import type { Call, Desk, Reply } from './call.ts';
import type { HarnSettings } from './config.ts';
import { createFollowers } from './followers.ts';
import { createMetrics } from './metrics.ts';
import { isOurs, type KnownOperation, match } from './router.ts';
import { createRoutes } from './routes/index.ts';
import { SCHEMAS } from './schemas.ts';
import { asciiJson, toWireFault, unsupportedVersion } from './translate.ts';

export function harnDoor(settings: HarnSettings, deps: Deps): FrontDoor {
  return {
    name: 'harn',
    carries: ['approval', 'input'],
    async open(bridge) {
      return openDoor(settings, deps, bridge);
    },
  };
}

function openDoor(settings: HarnSettings, deps: Deps, bridge: Bridge): Closable {
  const metrics = createMetrics();
  const followers = createFollowers(deps.authenticate, metrics, settings.recheckMs);
  const desk: Desk = { bridge, deps, settings, followers, metrics, openedAt: deps.clock.now() };
  const routes = createRoutes(desk);

  async function serve(request: IncomingMessage, response: ServerResponse, path: string, prefix: string) {
    const began = performance.now();
    let operation = 'unknown';
    response.setHeader(VERSION_HEADER, PROTOCOL_VERSION);
    try {
      const found = match(request.method ?? '', path);
      const versioned = found ? !found.operation.unversioned : path.startsWith('/v1/');
      if (versioned) requireVersion(request);
      const actor = found?.operation.scope === null ? NOBODY : await authenticate(request, deps);
      if (!found) throw new Fault('not_found', `there is no operation ${shown(request.method)} at this path`);
      operation = found.operation.id;
      const call = await readCall(request, response, { ...found, actor, prefix }, settings);
      const reply = await routes[found.operation.id](call);
      if (reply === 'answered') return;
      send(request, response, reply, found.operation);
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind === 'internal') {
        deps.log.error({ err: fault.cause ?? fault, request_id: requestIdOf(request), operation }, 'a request failed');
      }
      complain(request, response, fault);
    } finally {
      metrics.answered(operation, response.statusCode, (performance.now() - began) / 1000);
    }
  }

  const mounts = settings.suitePrefix ? ['', settings.suitePrefix] : [''];
  for (const prefix of mounts) {
    deps.http.mount('/', (request, response, next) => {
      const path = request.url?.split('?', 1)[0] ?? '/';
      if (!path.startsWith(`${prefix}/`)) return next();
      const own = path.slice(prefix.length);
      if (!isOurs(own)) return next();
      serve(request, response, own, prefix).catch(next);
    });
  }

  return {
    async close() {
      followers.close();
    },
  };
}

/** Behind the operations anyone may call; it may see nothing. */
const NOBODY: Actor = { id: 'anonymous', kind: 'service', scopes: [], workspaces: [] };

async function authenticate(request: IncomingMessage, deps: Deps): Promise<Actor> {
  return { ...(await deps.authenticate(bearerOf(request))), door: 'harn' };
}

function requireVersion(request: IncomingMessage): void {
  const given = request.headersDistinct[VERSION_HEADER] ?? [];
  if (given.length !== 1 || given[0] !== PROTOCOL_VERSION) throw unsupportedVersion(given[0]);
}

async function readCall(
  request: IncomingMessage,
  response: ServerResponse,
  found: Pick<Call, 'operation' | 'params' | 'actor' | 'prefix'>,
  settings: HarnSettings,
): Promise<Call> {
  const { operation } = found;
  return {
    ...found,
    query: queryOf(request, operation),
    once: operation.key ? onceOf(request) : {},
    body: await bodyOf(request, operation, settings),
    http: { request, response },
  };
}

function queryOf(request: IncomingMessage, { query: names = [] }: KnownOperation): Call['query'] {
  const at = request.url?.indexOf('?') ?? -1;
  if (at < 0 || names.length === 0) return {};
  const given = new URLSearchParams(request.url!.slice(at + 1));
  const query: Partial<Record<QueryName, string>> = {};
  for (const name of names) {
    const values = given.getAll(name);
    if (values.length > 1) throw new Fault('invalid_request', `${name} is given more than once`, { param: name });
    if (values[0]) query[name] = values[0];
    if (values[0] === '' && name === 'limit') throw new Fault('invalid_request', 'limit is empty', { param: name });
  }
  return query;
}

export function requireKey(key: unknown): { idempotency: { key: string } } {
  if (typeof key !== 'string' || key.length < 1 || key.length > 255) {
    throw new Fault('invalid_request', 'an idempotency key has 1 to 255 characters', { param: 'idempotency-key' });
  }
  return { idempotency: { key } };
}

function onceOf(request: IncomingMessage): Call['once'] {
  const keys = request.headersDistinct['idempotency-key'];
  if (!keys) return {};
  if (keys.length > 1) {
    throw new Fault('invalid_request', 'more than one idempotency key', { param: 'idempotency-key' });
  }
  return requireKey(keys[0]);
}

async function bodyOf(request: IncomingMessage, operation: KnownOperation, settings: HarnSettings): Promise<unknown> {
  if (!operation.body) return undefined;
  if (operation.body === 'Bytes') return await readBytes(request, settings.uploadLimit);
  const given = await readJson(request, { ...JSON_LIMITS, bytes: settings.jsonLimit });
  return checkBody(operation, given);
}

/** The same check for a REST body and a WebSocket frame. */
export function checkBody(operation: KnownOperation, given: unknown): unknown {
  const schema = SCHEMAS[operation.body as keyof typeof SCHEMAS];
  const body = given === undefined && operation.bodyOptional ? {} : given;
  if (body === undefined) throw new Fault('invalid_request', 'a JSON body is needed', { param: '/' });
  return check(schema, body, 'body');
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  reply: Exclude<Reply, 'answered'>,
  operation: KnownOperation,
) {
  const status = reply.status ?? operation.success;
  const headers = { 'cache-control': 'no-store', ...reply.headers };
  if ('bytes' in reply) {
    const bytes = typeof reply.bytes === 'string' ? Buffer.from(reply.bytes) : reply.bytes;
    response.writeHead(status, { ...headers, 'content-type': reply.type, 'content-length': bytes.byteLength });
    response.end(bytes);
  } else if (reply.body === undefined) {
    response.writeHead(status, headers);
    response.end();
  } else {
    const text = JSON.stringify(reply.body);
    const length = Buffer.byteLength(text);
    response.writeHead(status, { ...headers, 'content-type': 'application/json', 'content-length': length });
    response.end(text);
  }
  // What of a body nobody asked for is still on its way is not kept.
  if (!request.complete) request.resume();
}

function complain(request: IncomingMessage, response: ServerResponse, fault: Fault): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, headers, body } = toWireFault(fault, requestIdOf(request));
  const text = asciiJson(body);
  response.writeHead(status, {
    ...headers,
    'cache-control': 'no-store',
    'content-type': 'application/json',
    'content-length': text.length,
    // The rest of a body that was not read would be taken for the next request.
    ...(!request.complete && { connection: 'close' }),
  });
  response.end(text);
}

function shown(method: string | undefined): string {
  return /^[A-Z]{1,10}$/.test(method ?? '') ? method! : 'of this kind';
}
