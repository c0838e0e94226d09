/**
 * Events, commands and questions over one connection. Every refusal that can be made before the upgrade is made there, as a
 * REST error; afterwards each command runs the route of its REST operation.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { faults, VERSION_HEADER } from '../../../../mappings/harn.ts';
import {
  type Actor,
  asFault,
  type Cursor,
  Fault,
  fieldName,
  type JsonObject,
  type LoginSource,
  type Stream,
} from '../../../../src/index.ts';
import { addressOf, bearerOf } from '../../../../src/transport/http/bearer.ts';
import { refuseSocket } from '../../../../src/transport/http/refusal.ts';
import { requestIdOf } from '../../../../src/transport/http/server.ts';
import { createSocketServer } from '../../../../src/transport/websocket/websocket.ts';
import { type OperationId, REVISIONS, type Revision } from '../../revisions/revisions.ts';
import { unsupportedVersion } from '../../translate.ts';
import type { RouteContext } from '../call.ts';
import { requireRevision } from '../exchange.ts';
import { beginning, readable } from '../pages.ts';
import { converse } from './socket-session.ts';

export type Perform = (
  id: OperationId,
  handshake: {
    readonly revision: Revision;
    readonly actor: Actor;
    readonly params: Readonly<Record<string, string>>;
    readonly body: JsonObject;
    readonly key: string | undefined;
  },
) => Promise<{ readonly status: number; readonly body: unknown }>;

export interface SocketDeps {
  readonly context: RouteContext;
  readonly admit: (bearer: string | undefined, from: LoginSource) => Promise<Actor>;
  readonly perform: Perform;
}

export interface Sockets {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, prefix: string): void;
  close(): void;
}

/** Browsers cannot set headers on an upgrade, so version and token may come as subprotocols. */
const VERSION_PROTOCOL = 'harn.agents-protocol-';
const BEARER_PROTOCOL = 'harn.bearer.';

export function createSockets({ context, admit, perform }: SocketDeps): Sockets {
  const { settings, deps } = context;
  const server = createSocketServer({
    frameLimit: settings.jsonLimit,
    bufferLimit: settings.bufferBytes,
    stallMs: settings.stallMs,
    // The token is never chosen as the subprotocol, because the chosen one is echoed.
    choose: (protocols) => {
      const revision = newestRevision([...protocols]);
      return revision ? `harn.${revision.version}` : false;
    },
  });

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, prefix: string): Promise<void> {
    const requestId = requestIdOf(request);
    try {
      const at = new URL(request.url ?? '/', 'http://here');
      const protocols = protocolsOf(request);
      const revision = revisionOf(request, protocols);
      const found = revision.match('GET', at.pathname.slice(prefix.length));
      const stream = found && streamOf(found.operation.id, found.params);
      const bearer = tokenOf(request, protocols);
      const actor = await admit(bearer, addressOf(request));
      if (!stream) throw new Fault('not_found', 'there is nothing to follow at this path');
      const cursor = request.headersDistinct['last-event-id']?.[0] || at.searchParams.get('last_event_id') || undefined;
      const { after: begin, expired } = await startOf(actor, stream);
      if (expired && !cursor) throw expired;
      const session = stream.of === 'session' ? stream.id : await sessionOf(actor, stream, begin);
      if (socket.destroyed) return;
      server.accept(request, socket, head, (peer) =>
        converse({ context, perform, revision, actor, bearer, stream, session, cursor, begin, peer, requestId }),
      );
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind === 'internal') deps.log.error({ err: fault.cause, request_id: requestId }, 'an upgrade failed');
      const { message, details } = fault;
      const param = fieldName(fault.param);
      refuseSocket(socket, { ...faults[fault.kind], message, param, ...(details && { details }) }, requestId);
    }
  }

  /** A stream across sessions begins now, as its event stream does: its past would be the whole log. */
  async function startOf(
    actor: Actor,
    stream: Stream,
  ): Promise<{ after?: Cursor | 'now' | undefined; expired?: Fault | undefined }> {
    if (stream.of !== 'all') return await beginning(context.bridge, actor, stream);
    await readable(context.bridge, actor, stream, 'now');
    return { after: 'now' };
  }

  async function sessionOf(
    actor: Actor,
    stream: Stream,
    after: Cursor | 'now' | undefined,
  ): Promise<string | undefined> {
    if (after === 'now') return undefined;
    for await (const { session_id } of context.bridge.events(actor, { stream, limit: 1, ...(after && { after }) })) {
      return session_id ?? undefined;
    }
    return undefined;
  }

  return {
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
  if (id === 'streamEvents') return { of: 'all' };
  return undefined;
}

function protocolsOf(request: IncomingMessage): readonly string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').flatMap((word) => word.trim() || []);
}

/** The header or a subprotocol names it; where both do, they have to agree, because the subprotocol is echoed. */
function revisionOf(request: IncomingMessage, protocols: readonly string[]): Revision {
  const words = protocols.filter((word) => word.startsWith(VERSION_PROTOCOL));
  if (request.headersDistinct[VERSION_HEADER] === undefined) {
    const newest = newestRevision(words);
    if (newest) return newest;
    throw unsupportedVersion(words[0]);
  }
  const revision = requireRevision(request);
  if (words.length > 0 && newestRevision(words) !== revision) throw unsupportedVersion(words[0]);
  return revision;
}

/** The newest supported revision among those offered. */
function newestRevision(protocols: readonly string[]): Revision | undefined {
  return REVISIONS.findLast(({ version }) => protocols.includes(`harn.${version}`));
}

function tokenOf(request: IncomingMessage, protocols: readonly string[]): string | undefined {
  const header = bearerOf(request);
  const carried = protocols.filter((word) => word.startsWith(BEARER_PROTOCOL));
  if (carried.length === 0) return header;
  if (carried.length > 1 || header !== undefined) throw new Fault('unauthenticated', 'more than one token');
  return Buffer.from(carried[0]!.slice(BEARER_PROTOCOL.length), 'base64url').toString();
}
