/**
 * The door for remote editors: one address, over WebSocket or over HTTP messages and event streams. Every request is
 * authenticated; Host and Origin were checked before. A connection id is a name, not a credential.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { faults } from '../../../mappings/acp.ts';
import {
  type Actor,
  asFault,
  type Bridge,
  type Closable,
  type Deps,
  Fault,
  type FaultKind,
  type FrontDoor,
} from '../../../src/index.ts';
import { addressOf, bearerOf } from '../../../src/transport/http/bearer.ts';
import { parseJson, readBytes } from '../../../src/transport/http/body.ts';
import { refuseSocket } from '../../../src/transport/http/refusal.ts';
import { requestIdOf } from '../../../src/transport/http/server.ts';
import { openSse } from '../../../src/transport/sse/write.ts';
import { CLOSE, createSocketServer } from '../../../src/transport/websocket/websocket.ts';
import type { AcpSettings } from '../config.ts';
import { objectOf, textOf, within } from '../shapes.ts';
import { createConnection } from './connection.ts';
import { createRemote, ownerOf, type RemoteClient } from './remote-connection.ts';
import { serveStreams } from './stdio.ts';

export const CONNECTION = 'acp-connection-id';
export const SESSION = 'acp-session-id';

export function acpDoor(settings: AcpSettings, deps: Deps): FrontDoor {
  return {
    name: 'acp',
    carries: ['approval', 'input'],
    async open(bridge) {
      return openDoor(settings, deps, bridge);
    },
    serve: (bridge, client) => serveStreams(settings, deps, bridge, client),
  };
}

/** HTTP status codes for errors before a message is read. */
const STATUS: Readonly<Partial<Record<FaultKind, number>>> = {
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  conflict: 409,
  cursor_expired: 410,
  payload_too_large: 413,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
};

/** A WebSocket connection. */
interface OpenConnection {
  readonly owner: string;
  readonly bearer: string | undefined;
  /** Sends the reason and closes the connection. */
  refuse(): void;
  end(): Promise<void>;
}

function openDoor(settings: AcpSettings, deps: Deps, bridge: Bridge): Closable {
  const { log } = deps;
  const remotes = new Map<string, RemoteClient>();
  const connections = new Set<OpenConnection>();
  const names = new WeakMap<IncomingMessage, string>();
  const sockets = createSocketServer({
    frameLimit: settings.lineLimit,
    bufferLimit: settings.lineLimit,
    binary: 'ignore',
    headers: (request) => [`Acp-Connection-Id: ${names.get(request) ?? ''}`],
  });

  async function admit(request: IncomingMessage): Promise<Actor> {
    return { ...(await deps.authenticate(bearerOf(request), addressOf(request))), door: 'acp' };
  }

  function requireRoom(actor: Actor): void {
    const owner = ownerOf(actor);
    const held = [...remotes.values(), ...connections].filter((each) => each.owner === owner).length;
    if (held >= settings.connections) throw new Fault('rate_limited', 'too many connections are open already');
  }

  /** Another caller's connection is absent. */
  function remoteOf(request: IncomingMessage, actor: Actor): RemoteClient {
    const id = single(request, CONNECTION);
    if (!id) throw new Fault('invalid_request', 'say which connection: Acp-Connection-Id');
    const found = remotes.get(id);
    if (found?.owner !== ownerOf(actor)) throw new Fault('not_found', 'there is no such connection');
    found.bearer = bearerOf(request);
    return found;
  }

  async function post(request: IncomingMessage, response: ServerResponse, actor: Actor): Promise<void> {
    if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
      return answer(response, 415, new Fault('invalid_request', 'the body must be application/json'));
    }
    const bytes = await readBytes(request, settings.lineLimit);
    const message = objectOf(parseJson(bytes, { bytes: settings.lineLimit, depth: 64, values: 200_000 }));
    if (!message) throw new Fault('invalid_request', 'one JSON-RPC object at a time');
    const text = Buffer.from(bytes).toString('utf8');
    if (single(request, CONNECTION) === undefined) {
      if (message.method !== 'initialize' || message.id === undefined) {
        throw new Fault('invalid_request', 'initialize opens a connection; everything else names one');
      }
      return await greet(response, actor, text, bearerOf(request));
    }
    const remote = remoteOf(request, actor);
    const session = textOf(within(message, 'params', 'sessionId'));
    if (session !== undefined && single(request, SESSION) !== session) {
      throw new Fault('invalid_request', 'Acp-Session-Id must be the session the message names');
    }
    // The response only acknowledges receipt; results go to a stream.
    remote.post(text).catch((cause) => log.warn({ err: cause, connection: remote.id }, 'a message failed'));
    response.writeHead(202, { 'content-length': 0 });
    response.end();
  }

  async function greet(
    response: ServerResponse,
    actor: Actor,
    text: string,
    bearer: string | undefined,
  ): Promise<void> {
    requireRoom(actor);
    const id = `${deps.ids.next('conn')}${deps.http.mark ?? ''}`;
    const ended = () => remotes.delete(id);
    const remote = createRemote({ id, bridge, actor, settings, log, ended: () => void ended() });
    remote.bearer = bearer;
    remotes.set(id, remote);
    const said = await remote.greet(text);
    if ('error' in (objectOf(JSON.parse(said)) ?? {})) await remote.close();
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(said),
      'Acp-Connection-Id': id,
      'cache-control': 'no-store',
    });
    response.end(said);
  }

  function read(request: IncomingMessage, response: ServerResponse, actor: Actor): void {
    if (!/text\/event-stream|\*\/\*/i.test(request.headers.accept ?? '')) {
      answer(response, 406, new Fault('invalid_request', 'this is read as text/event-stream'));
      return;
    }
    const remote = remoteOf(request, actor);
    const session = single(request, SESSION);
    const last = single(request, 'last-event-id');
    const after = last === undefined || !/^\d{1,15}$/.test(last) ? undefined : Number(last);
    const headers = { 'Acp-Connection-Id': remote.id, ...(session && { 'Acp-Session-Id': session }) };
    remote.read(session, () => openSse(response, { headers }), after);
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const actor = await admit(request);
      switch (request.method) {
        case 'POST':
          return await post(request, response, actor);
        case 'GET':
          return read(request, response, actor);
        case 'DELETE':
          await remoteOf(request, actor).close();
          response.writeHead(202, { 'content-length': 0 });
          response.end();
      }
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind === 'internal')
        log.error({ err: fault.cause, request_id: requestIdOf(request) }, 'a request failed');
      answer(response, STATUS[fault.kind] ?? 400, fault);
    }
  }

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    let actor: Actor;
    try {
      actor = await admit(request);
      requireRoom(actor);
    } catch (thrown) {
      const { kind, message } = asFault(thrown);
      const status = STATUS[kind] ?? 503;
      const type = status === 401 ? 'auth_error' : 'server_error';
      return refuseSocket(socket, { status, code: faults[kind].word, type, message }, requestIdOf(request));
    }
    if (socket.destroyed) return;
    const id = deps.ids.next('conn');
    names.set(request, id);
    sockets.accept(request, socket, head, (peer) => {
      const connection = createConnection({
        bridge,
        actor,
        settings,
        log,
        async send(text) {
          if (!peer.send(text)) await peer.room();
        },
        // Harn's own sockets put the log position beside each frame.
        stamp: (client) => (client.harn ? (at) => ({ _harn: { ...at } }) : undefined),
      });
      const open: OpenConnection = {
        owner: ownerOf(actor),
        bearer: bearerOf(request),
        refuse: () => peer.close(CLOSE.unauthenticated, 'the token no longer holds'),
        async end() {
          connections.delete(open);
          await connection.close(settings.onDisconnect ?? 'continue');
        },
      };
      connections.add(open);
      peer.signal.addEventListener('abort', () => {
        open.end().catch((cause) => log.warn({ err: cause, connection: id }, 'a connection did not close well'));
      });
      let turn: Promise<void> = Promise.resolve();
      return {
        message(text) {
          turn = turn
            .then(() => connection.receive(text))
            .catch((cause) => log.warn({ err: cause, connection: id }, 'a message failed'));
        },
      };
    });
  }

  deps.http.claim('acp', [
    {
      path: settings.path,
      methods: ['GET', 'POST', 'DELETE'],
      names: [{ header: CONNECTION }],
      handler: (request, response, next) => void serve(request, response).catch(next),
      upgrade: (request, socket, head) => {
        upgrade(request, socket, head).catch((cause) => {
          log.error({ err: cause }, 'an upgrade failed');
          socket.destroy();
        });
      },
    },
  ]);

  /** Only a definite denial ends a connection; an unavailable authenticator is asked again. */
  async function holds(bearer: string | undefined): Promise<boolean> {
    try {
      await deps.authenticate(bearer);
      return true;
    } catch (thrown) {
      return asFault(thrown).kind !== 'unauthenticated';
    }
  }

  async function sweep(): Promise<void> {
    const now = performance.now();
    for (const remote of remotes.values()) {
      if (remote.forgotten(now) || !(await holds(remote.bearer))) await remote.close();
    }
    for (const open of connections) if (!(await holds(open.bearer))) open.refuse();
  }

  const sweeping = setInterval(
    () => {
      sweep().catch((cause) => log.warn({ err: cause }, 'connections could not be looked after'));
    },
    Math.min(settings.lingerMs, settings.recheckMs),
  ).unref();

  return {
    async close() {
      clearInterval(sweeping);
      await Promise.allSettled([...remotes.values()].map((remote) => remote.close()));
      await Promise.allSettled([...connections].map((open) => open.end()));
      sockets.close();
    },
  };
}

/** A header that is present twice is ignored: either value could be the one that was meant. */
function single(request: IncomingMessage, name: string): string | undefined {
  const values = request.headersDistinct[name] ?? [];
  if (values.length > 1) throw new Fault('invalid_request', `more than one ${name} header`);
  return values[0] || undefined;
}

function answer(response: ServerResponse, status: number, { kind, message }: Fault): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { code, word } = faults[kind];
  const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message, data: { code: word } } });
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(!response.req.complete && { connection: 'close' }),
  });
  response.end(body);
}
