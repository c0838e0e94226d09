/** From a request to the operation it means, and from a reply or a refusal back to a response. The same for every route. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Operation, type OperationId, routes } from '../../../mappings/runs.ts';
import { JSON_LIMITS, readJson } from '../../../src/transport/http/body.ts';
import { requestIdOf } from '../../../src/transport/http/server.ts';
import type { Reply } from './call.ts';
import { type RunsRefusal, toWireRefusal } from './refusal.ts';

type KnownOperation = Operation & { readonly id: OperationId };

const ID = /^[A-Za-z0-9_.-]{1,200}$/;
/** Room for the input at its limit, its tags and a plan. */
const BODY_LIMIT = 2 * 1024 * 1024;

export function match(method: string, path: string): { operation: KnownOperation; id: string } | undefined {
  const segments = path.split('/');
  for (const operation of routes.rows) {
    const pattern = operation.path.split('/');
    if (operation.method !== method || pattern.length !== segments.length) continue;
    const at = pattern.indexOf('{id}');
    if (pattern.every((word, index) => index === at || word === segments[index])) {
      const id = at < 0 ? '' : (segments[at] ?? '');
      if (at < 0 || ID.test(id)) return { operation, id };
    }
  }
  return undefined;
}

export function addressOf({ url = '/' }: IncomingMessage): { path: string; query: URLSearchParams } {
  const [path = '/', query = ''] = url.split(/\?(.*)/s, 2);
  return { path, query: new URLSearchParams(query) };
}

/** The gateway's request id, in the uuid form of this API. */
export function uuidOf(request: IncomingMessage): string {
  const hex = createHash('sha256').update(requestIdOf(request)).digest('hex');
  const variant = ((Number.parseInt(hex[16] ?? '0', 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Reads the body on the first call; later calls get the same result. */
export function bodyReader(request: IncomingMessage): () => Promise<unknown> {
  let pendingBody: Promise<unknown> | undefined;
  return () => {
    pendingBody ??= readJson(request, { ...JSON_LIMITS, bytes: BODY_LIMIT });
    return pendingBody;
  };
}

export function send(request: IncomingMessage, response: ServerResponse, { status = 200, body }: Reply): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'cache-control': 'no-store',
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
  // The rest of the body is drained, so that the client can read the answer.
  if (!request.complete) request.resume();
}

export function sendRefusal(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: RunsRefusal,
  requestId: string,
): void {
  if (response.headersSent) response.destroy();
  else send(request, response, toWireRefusal(refusal, requestId));
}
