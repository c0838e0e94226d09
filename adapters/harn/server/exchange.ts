/** A request read into a call, and a reply written out: bounds, keys, queries and envelopes, the same for every route. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type QueryName, VERSION_HEADER } from '../../../mappings/harn.ts';
import { type Actor, check, Fault, type TSchema } from '../../../src/index.ts';
import { JSON_LIMITS, readBytes, readJson } from '../../../src/transport/http/body.ts';
import { requestIdOf } from '../../../src/transport/http/server.ts';
import { traceMembers, traceParentOf } from '../../../src/transport/outbound/trace-context.ts';
import type { HarnSettings } from '../config.ts';
import { type KnownOperation, type Revision, revisionNamed } from '../revisions/revisions.ts';
import { asciiJson, toWireFault, unsupportedVersion } from '../translate.ts';
import type { Call, Reply } from './call.ts';

/** The actor of the public operations; it may see nothing. */
export const ANONYMOUS: Actor = { id: 'anonymous', kind: 'service', scopes: [], workspaces: [] };

/** Operations that are served without the bridge are checked for their scope here; the bridge checks all others itself. */
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

/**
 * The revision this request names; undefined when it names none that we support. Exactly one name is accepted: two headers, or a
 * list in one, do not say in which of them the sender reads the answer.
 */
export function namedRevision(request: IncomingMessage): Revision | undefined {
  const versions = request.headersDistinct[VERSION_HEADER] ?? [];
  return versions.length === 1 ? revisionNamed(versions[0]) : undefined;
}

export function requireRevision(request: IncomingMessage): Revision {
  const revision = namedRevision(request);
  if (!revision) throw unsupportedVersion(request.headersDistinct[VERSION_HEADER]?.[0]);
  return revision;
}

export async function readCall(
  request: IncomingMessage,
  response: ServerResponse,
  found: Pick<Call, 'revision' | 'operation' | 'params' | 'actor' | 'prefix'>,
  settings: HarnSettings,
): Promise<Call> {
  const { operation, revision } = found;
  const trace = traceParentOf(request);
  return {
    ...found,
    query: queryOf(request, operation),
    once: { ...allowedKey(revision, operation, () => onceOf(request)), ...traceMembers(trace) },
    body: await bodyOf(request, found, settings),
    http: { request, response },
  };
}

function queryOf(request: IncomingMessage, { query: names = [] }: KnownOperation): Call['query'] {
  const at = request.url?.indexOf('?') ?? -1;
  if (at < 0 || names.length === 0) return {};
  const params = new URLSearchParams(request.url!.slice(at + 1));
  const query: Partial<Record<QueryName, string>> = {};
  for (const name of names) {
    const values = params.getAll(name);
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

/** The key where the operation takes one. For other operations the revision decides whether a key is allowed. */
export function allowedKey(
  { strayKey, version }: Revision,
  { key, id }: KnownOperation,
  once: () => Call['once'],
): Call['once'] {
  if (key) return once();
  if (strayKey === 'refused' && once().idempotency) {
    throw new Fault('invalid_request', `${id} takes no idempotency key in ${version}`, {
      param: 'idempotency-key',
      details: { code: 'idempotency_not_supported' },
    });
  }
  return {};
}

function onceOf(request: IncomingMessage): Call['once'] {
  const keys = request.headersDistinct['idempotency-key'];
  if (!keys) return {};
  if (keys.length > 1) {
    throw new Fault('invalid_request', 'more than one idempotency key', { param: 'idempotency-key' });
  }
  return requireKey(keys[0]);
}

async function bodyOf(
  request: IncomingMessage,
  { operation, revision }: Pick<Call, 'operation' | 'revision'>,
  settings: HarnSettings,
): Promise<unknown> {
  if (!operation.body) return undefined;
  // Unauthenticated callers may send no more than a JSON body.
  const bytes = operation.scope === null ? settings.jsonLimit : settings.uploadLimit;
  if (operation.body === 'Bytes') return await readBytes(request, bytes);
  const body = await readJson(request, { ...JSON_LIMITS, bytes: settings.jsonLimit });
  return checkBody(revision, operation, body);
}

/** The same check for a REST body and a WebSocket frame. */
export function checkBody({ schemas }: Revision, operation: KnownOperation, value: unknown): unknown {
  const schema = schemas.get(operation.body ?? '') as TSchema;
  const body = value === undefined && operation.bodyOptional ? {} : value;
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
  // The rest of an unread body is discarded.
  if (!request.complete) request.resume();
}

export function sendFault(request: IncomingMessage, response: ServerResponse, fault: Fault): void {
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
  else drain(request, response, text);
}

/** How long a client may continue to send a body that is no longer read. */
const LAST_WORDS_MS = 1000;

/** A client that is still sending when the connection is closed never reads the answer: its body is drained first. */
function drain(request: IncomingMessage, response: ServerResponse, text: string): void {
  const end = () => {
    clearTimeout(timer);
    request.off('end', end).off('close', end);
    response.end();
  };
  const timer = setTimeout(end, LAST_WORDS_MS);
  request.once('end', end).once('close', end);
  response.write(text);
  request.resume();
}

export function shown(method: string | undefined): string {
  return /^[A-Z]{1,10}$/.test(method ?? '') ? method! : 'of this kind';
}
