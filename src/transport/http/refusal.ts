/**
 * Refusals of requests that never reach a door: a wrong Host, a malformed request, a body too large. They use the error
 * envelope of the canonical protocol; for everything else each door uses its own protocol's errors.
 */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export interface HttpRefusal {
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly message: string;
  readonly param?: string | null;
  readonly details?: object;
}

export const REFUSALS = {
  forbidden: { status: 403, code: 'permission_denied', type: 'permission_error' },
  malformed: { status: 400, code: 'invalid_request', type: 'request_error' },
  absent: { status: 404, code: 'resource_not_found', type: 'not_found_error' },
  wrongMethod: { status: 405, code: 'method_not_allowed', type: 'request_error' },
  tooLarge: { status: 413, code: 'payload_too_large', type: 'request_error' },
  headersTooLarge: { status: 431, code: 'payload_too_large', type: 'request_error' },
  tooSlow: { status: 408, code: 'deadline_exceeded', type: 'request_error' },
  crowded: { status: 503, code: 'service_unavailable', type: 'server_error' },
  draining: { status: 503, code: 'service_unavailable', type: 'server_error' },
  elsewhere: { status: 503, code: 'service_unavailable', type: 'server_error' },
  unproven: { status: 401, code: 'unauthenticated', type: 'auth_error' },
  internal: { status: 500, code: 'internal_error', type: 'server_error' },
} as const;

export function refusal(kind: keyof typeof REFUSALS, message: string): HttpRefusal {
  return { ...REFUSALS[kind], message };
}

function envelope(refused: HttpRefusal, requestId: string | null): string {
  const { code, type, message, param = null, details = {} } = refused;
  return JSON.stringify({ error: { code, message, type, param, request_id: requestId, details } });
}

/** Ends the response without waiting for the rest of the body. */
export function refuse(response: ServerResponse, refused: HttpRefusal, requestId: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = envelope(refused, requestId);
  response.writeHead(refused.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(!response.req.complete && { connection: 'close' }),
  });
  response.end(body);
}

/** The same on a bare socket: before an upgrade, or when the request could not be parsed. */
export function refuseSocket(socket: Duplex, refused: HttpRefusal, requestId: string | null): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = envelope(refused, requestId);
  const head = [
    `HTTP/1.1 ${refused.status} ${PHRASES[refused.status] ?? 'Refused'}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...(requestId ? [`X-Request-Id: ${requestId}`] : []),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  408: 'Request Timeout',
  410: 'Gone',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};
