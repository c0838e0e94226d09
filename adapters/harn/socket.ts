/**
 * Events, commands and questions over one connection. Everything that can be refused is refused before the upgrade, in
 * the words of REST; afterwards each command runs the route its REST twin has.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { faults, type OperationId, VERSION_HEADER } from '../../mappings/harn.ts';
import {
  type Actor,
  asFault,
  type Cursor,
  Fault,
  type JsonObject,
  type LoginPlace,
  PROTOCOL_VERSION,
  type Stream,
} from '../../src/index.ts';
import { addressOf, bearerOf } from '../../src/wire/bearer.ts';
import { requestIdOf } from '../../src/wire/http.ts';
import { refuseSocket } from '../../src/wire/refusal.ts';
import { createSocketServer } from '../../src/wire/websocket.ts';
import type { Desk } from './call.ts';
import { converse } from './conversation.ts';
import { beginning } from './pages.ts';
import { match } from './router.ts';
import { unsupportedVersion } from './translate.ts';

export type Perform = (
  id: OperationId,
  given: {
    readonly actor: Actor;
    readonly params: Readonly<Record<string, string>>;
    readonly body: JsonObject;
    readonly key: string | undefined;
  },
) => Promise<{ readonly status: number; readonly body: unknown }>;

export interface SocketDeps {
  readonly desk: Desk;
  readonly admit: (bearer: string | undefined, from: LoginPlace) => Promise<Actor>;
  readonly perform: Perform;
}

export interface Sockets {
  mine(path: string): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, prefix: string): void;
  close(): void;
}

/** Browsers cannot set headers on an upgrade, so version and token may come as subprotocols. */
const VERSION_PROTOCOL = `harn.${PROTOCOL_VERSION}`;
const BEARER_PROTOCOL = 'harn.bearer.';

export function createSockets({ desk, admit, perform }: SocketDeps): Sockets {
  const { settings, deps } = desk;
  const server = createSocketServer({
    frameLimit: settings.jsonLimit,
    bufferLimit: settings.bufferBytes,
    stallMs: settings.stallMs,
    // The token is never among what we agree on: an agreed protocol is echoed.
    choose: (offered) => (offered.has(VERSION_PROTOCOL) ? VERSION_PROTOCOL : false),
  });

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, prefix: string): Promise<void> {
    const requestId = requestIdOf(request);
    try {
      const at = new URL(request.url ?? '/', 'http://here');
      const found = match('GET', at.pathname.slice(prefix.length));
      const stream = found && streamOf(found.operation.id, found.params);
      const offered = protocolsOf(request);
      requireVersion(request, offered);
      const bearer = tokenOf(request, offered);
      const actor = await admit(bearer, addressOf(request));
      if (!stream) throw new Fault('not_found', 'there is nothing to follow at this path');
      const cursor = request.headersDistinct['last-event-id']?.[0] || at.searchParams.get('last_event_id') || undefined;
      const begin = await beginning(desk.bridge, actor, stream);
      const session = stream.of === 'session' ? stream.id : await sessionOf(actor, stream, begin);
      if (socket.destroyed) return;
      server.accept(request, socket, head, (peer) =>
        converse({ desk, perform, actor, bearer, stream, session, cursor, begin, peer, requestId }),
      );
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind === 'internal') deps.log.error({ err: fault.cause, request_id: requestId }, 'an upgrade failed');
      const { message, param = null, details } = fault;
      refuseSocket(socket, { ...faults[fault.kind], message, param, ...(details && { details }) }, requestId);
    }
  }

  async function sessionOf(actor: Actor, stream: Stream, after: Cursor | undefined): Promise<string | undefined> {
    for await (const { session_id } of desk.bridge.events(actor, { stream, limit: 1, ...(after && { after }) })) {
      return session_id ?? undefined;
    }
    return undefined;
  }

  return {
    mine(path) {
      const found = match('GET', path);
      return found !== undefined && streamOf(found.operation.id, found.params) !== undefined;
    },
    upgrade(request, socket, head, prefix) {
      upgrade(request, socket, head, prefix).catch((cause) => {
        deps.log.error({ err: cause }, 'an upgrade failed');
        socket.destroy();
      });
    },
    close: () => server.close(),
  };
}

function streamOf(id: OperationId, params: Readonly<Record<string, string>>): Stream | undefined {
  if (id === 'streamTaskEvents') return { of: 'task', id: params.task_id! };
  if (id === 'streamSessionEvents') return { of: 'session', id: params.session_id! };
  return undefined;
}

function protocolsOf(request: IncomingMessage): readonly string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').flatMap((word) => word.trim() || []);
}

function requireVersion(request: IncomingMessage, offered: readonly string[]): void {
  const header = request.headersDistinct[VERSION_HEADER];
  if (header ? header.length === 1 && header[0] === PROTOCOL_VERSION : offered.includes(VERSION_PROTOCOL)) return;
  throw unsupportedVersion(header?.[0] ?? offered.find((word) => word.startsWith('harn.agents-protocol-')));
}

function tokenOf(request: IncomingMessage, offered: readonly string[]): string | undefined {
  const header = bearerOf(request);
  const carried = offered.filter((word) => word.startsWith(BEARER_PROTOCOL));
  if (carried.length === 0) return header;
  if (carried.length > 1 || header !== undefined) throw new Fault('unauthenticated', 'more than one token');
  return Buffer.from(carried[0]!.slice(BEARER_PROTOCOL.length), 'base64url').toString();
}
