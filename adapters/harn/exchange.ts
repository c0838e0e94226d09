/** A request read into a call, and a reply written out: bounds, keys, queries and envelopes, the same for every route. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type QueryName, VERSION_HEADER } from '../../mappings/harn.ts';
import { type Actor, check, Fault, PROTOCOL_VERSION } from '../../src/index.ts';
import { JSON_LIMITS, readBytes, readJson } from '../../src/wire/body.ts';
import { requestIdOf } from '../../src/wire/http.ts';
import { traceParentOf } from '../../src/wire/trace-context.ts';
import type { Call, Reply } from './call.ts';
import type { HarnSettings } from './config.ts';
import type { KnownOperation } from './router.ts';
import { SCHEMAS } from './schemas.ts';
import { asciiJson, toWireFault, unsupportedVersion } from './translate.ts';

/** Behind the operations anyone may call; it may see nothing. */
export const NOBODY: Actor = { id: 'anonymous', kind: 'service', scopes: [], workspaces: [] };

/** What is served without the bridge is held to its scope here; everything else the bridge asks about itself. */
export function requireOwnScope({ scope, tag }: KnownOperation, actor: Actor): void {
  if (scope !== null && tag === 'Runtime') requireScope(actor, scope);
}

export function requireScope(actor: Actor, scope: string): void {
  if (!holds(actor, scope)) throw new Fault('permission_denied', `${actor.id} does not have the scope ${scope}`);
}

export function holds(actor: Actor, scope: string): boolean {
  const [family] = scope.split(':');
  return ['*', scope, `${family}:*`].some((word) => actor.scopes.includes(word));
}

export function requireVersion(request: IncomingMessage): void {
  const given = request.headersDistinct[VERSION_HEADER] ?? [];
  if (given.length !== 1 || given[0] !== PROTOCOL_VERSION) throw unsupportedVersion(given[0]);
}

export async function readCall(
  request: IncomingMessage,
  response: ServerResponse,
  found: Pick<Call, 'operation' | 'params' | 'actor' | 'prefix'>,
  settings: HarnSettings,
): Promise<Call> {
  const { operation } = found;
  const trace = traceParentOf(request);
  return {
    ...found,
    query: queryOf(request, operation),
    once: { ...(operation.key && onceOf(request)), ...(trace && { trace_id: trace.trace_id }) },
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
  // Strangers are not given room for more than a JSON body.
  const bytes = operation.scope === null ? settings.jsonLimit : settings.uploadLimit;
  if (operation.body === 'Bytes') return await readBytes(request, bytes);
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

export function send(
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

export function complain(request: IncomingMessage, response: ServerResponse, fault: Fault): void {
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
  if (request.complete) response.end(text);
  else hearOut(request, response, text);
}

/** How long a peer may go on sending what is no longer read. */
const LAST_WORDS_MS = 1000;

/** A peer still sending when the line is closed never gets to read why: the rest of its body is let run out first. */
function hearOut(request: IncomingMessage, response: ServerResponse, text: string): void {
  const end = () => {
    clearTimeout(patience);
    request.off('end', end).off('close', end);
    response.end();
  };
  const patience = setTimeout(end, LAST_WORDS_MS);
  request.once('end', end).once('close', end);
  response.write(text);
  request.resume();
}

export function shown(method: string | undefined): string {
  return /^[A-Z]{1,10}$/.test(method ?? '') ? method! : 'of this kind';
}
