/**
 * The door: agents send events over HTTP, WebSocket and a Unix socket. The caller is authenticated before anything is read, and
 * its credential never reaches a log. Every answer of the protocol is a 200.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import {
  type Actor,
  asFault,
  type Closable,
  type Deps,
  Fault,
  type FrontDoor,
  isObject,
  type JsonObject,
} from '../../../src/index.ts';
import { addressOf, bearerOf } from '../../../src/transport/http/bearer.ts';
import { parseJson, readBytes } from '../../../src/transport/http/body.ts';
import { refuseSocket } from '../../../src/transport/http/refusal.ts';
import { requestIdOf } from '../../../src/transport/http/server.ts';
import { listenUnix } from '../../../src/transport/process/unix-socket.ts';
import { createSocketServer } from '../../../src/transport/websocket/websocket.ts';
import type { AhpSettings } from '../config.ts';
import { createHarness, type Harness } from './harness.ts';
import { converse, JSON_BOUNDS, serveLines, spelled } from './streams.ts';
import { scopeOf } from './supervised-tasks.ts';

export function ahpDoor(settings: AhpSettings, deps: Deps): FrontDoor {
  return {
    name: 'ahp',
    // Agents ask here; no client of this door answers for a person.
    carries: [],
    async open(bridge) {
      return await openHarnessDoor(createHarness(bridge, settings, deps), settings, deps);
    },
    async serve(bridge, { input, output, actor }) {
      const harness = createHarness(bridge, settings, deps);
      try {
        await serveLines(harness, { input, output }, { actor, log: deps.log, limit: settings.lineLimit });
        await harness.left(actor);
      } finally {
        await harness.close();
      }
    },
  };
}

/** A client that may open the socket or start us as a child is an agent of this machine's owner. */
export const LOCAL_AGENT: Actor = { id: 'agent:local', kind: 'agent', scopes: ['*'], door: 'ahp' };

/** Serves any harness at this door and closes it with the door. */
export async function openHarnessDoor(harness: Harness, settings: AhpSettings, deps: Deps): Promise<Closable> {
  // An overlong frame gets a refusal; only one of more than twice the limit costs the connection.
  const sockets = createSocketServer({ frameLimit: 2 * settings.lineLimit, binary: 'ignore' });

  async function admit(request: IncomingMessage, query: string): Promise<Actor> {
    const [key, ...more] = request.headersDistinct['x-api-key'] ?? [];
    if (more.length > 0) throw new Fault('unauthenticated', 'more than one X-API-Key header');
    const bearer = key ?? (request.headers.authorization ? bearerOf(request) : credentialIn(query));
    return { ...(await deps.authenticate(bearer, addressOf(request))), door: 'ahp' };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let actor: Actor;
    try {
      actor = await admit(request, '');
    } catch (thrown) {
      const { kind, message } = asFault(thrown);
      return answer(response, kind === 'unauthenticated' ? 401 : 503, { error: message });
    }
    if (!/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
      return say(response, 415, 'the body must be application/json');
    }
    let bytes: Buffer;
    try {
      bytes = await readBytes(request, settings.bodyLimit);
    } catch (thrown) {
      const { kind, message: why } = asFault(thrown);
      return say(response, kind === 'payload_too_large' ? 413 : 400, why);
    }
    let message: unknown;
    try {
      message = parseJson(bytes, JSON_BOUNDS);
      if (message === undefined) throw new Fault('invalid_request', 'the body is empty');
    } catch (thrown) {
      return say(response, 400, asFault(thrown).message);
    }
    if (await isElsewhere(sessionKey(message, actor), request, response, bytes)) return;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const outcome = await harness.receive(message, { actor, gone: gone.signal });
    switch (outcome.kind) {
      case 'reply':
        return answerIn(response, 200, spelled(outcome.response, bytes));
      case 'taken':
        response.writeHead(204);
        response.end();
        return;
      case 'rejected': {
        const { code, message: why } = outcome;
        return answer(response, 200, { jsonrpc: '2.0', id: '', error: { code, message: why } });
      }
    }
  }

  /** What is known of a session besides the log is in one process. True: the request was handed on to it. */
  async function isElsewhere(
    key: string | undefined,
    request: IncomingMessage,
    response: ServerResponse,
    bytes: Buffer,
  ): Promise<boolean> {
    if (key === undefined || !deps.hold || !deps.http.handOn) return false;
    if (await deps.http.handOn(await deps.hold(key), request, response, bytes)) return true;
    // Where its holder is gone, this takes it over.
    await deps.hold(key);
    return false;
  }

  deps.http.claim('ahp', [
    {
      path: settings.path,
      methods: ['POST'],
      handler: (request, response, next) => void serve(request, response).catch(next),
      upgrade: (request, socket, head) => {
        upgrade(request, socket, head).catch((cause) => {
          deps.log.error({ err: cause }, 'a connection failed');
          socket.destroy();
        });
      },
    },
  ]);

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const query = /\?(.*)$/s.exec(request.url ?? '')?.[1] ?? '';
    let actor: Actor;
    try {
      actor = await admit(request, query);
    } catch (thrown) {
      const { kind, message } = asFault(thrown);
      const [status, code, type] =
        kind === 'unauthenticated'
          ? ([401, 'unauthenticated', 'auth_error'] as const)
          : ([503, 'service_unavailable', 'server_error'] as const);
      return refuseSocket(socket, { status, code, type, message }, requestIdOf(request));
    }
    sockets.accept(request, socket, head, (peer) => {
      const { log } = deps;
      const send = async (text: string) => {
        if (!peer.send(text)) await peer.room();
      };
      const talk = converse(harness, { actor, gone: peer.signal, send, log });
      return {
        message(text) {
          const long = text.length > settings.lineLimit && `a frame is longer than ${settings.lineLimit} bytes`;
          const done = long ? talk.passOver(text.slice(0, 4096), long) : talk.receive(text);
          done.catch((cause) => log.error({ err: cause }, 'a message failed'));
        },
      };
    });
  }

  const unix = settings.socket ? await serveUnix(settings.socket, harness, settings, deps) : undefined;
  return {
    async close() {
      sockets.close();
      await unix?.close();
      await harness.close();
    },
  };
}

export async function serveUnix(
  path: string,
  harness: Harness,
  { lineLimit: limit }: Pick<AhpSettings, 'lineLimit'>,
  { log }: Pick<Deps, 'log'>,
): Promise<Closable> {
  return await listenUnix(path, (socket) => {
    serveLines(harness, { input: socket, output: socket }, { actor: LOCAL_AGENT, log, limit })
      .catch((cause) => log.error({ err: cause }, 'a connection failed'))
      .finally(() => socket.destroy());
  });
}

/** The session a message is about. A message without one is refused by the harness of any replica. */
function sessionKey(message: unknown, actor: Actor): string | undefined {
  const { params } = isObject(message) ? message : {};
  const [first] = isObject(params) && Array.isArray(params.events) ? params.events : [params];
  const id = isObject(first) ? first.session_id : undefined;
  return typeof id === 'string' ? JSON.stringify(['ahp-session', scopeOf(actor), id]) : undefined;
}

/** Clients append it to any existing query; older ones with a second question mark. */
function credentialIn(query: string): string | undefined {
  const found = /(?:^|[&?])(?:api_key|token)=([^&?]*)/.exec(query)?.[1];
  if (found === undefined) return undefined;
  try {
    return decodeURIComponent(found.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

function answer(response: ServerResponse, status: number, body: JsonObject): void {
  answerIn(response, status, JSON.stringify(body));
}

function answerIn(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function say(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...(!response.req.complete && { connection: 'close' }),
  });
  response.end(text);
}
