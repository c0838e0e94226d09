/**
 * Sessions of the legacy era over HTTP: each posted request has a stream of its own, one stream carries everything else, and
 * event ids allow a client to resume. A session belongs to the principal that opened it; for others it does not exist.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { CODES, LEGACY } from '../../../../mappings/mcp.ts';
import type { Actor, HttpHost, JsonObject, Logger } from '../../../../src/index.ts';
import { asText } from '../../../../src/index.ts';
import type { WireError } from '../../../../src/transport/json-rpc/messages.ts';
import { createIdle, type Idle } from '../../client/idle.ts';
import { clientFrameTrouble } from '../../frame-rules.ts';
import { answerTo, type Frame, failed, isNotice, isRequest, type Request } from '../../frames.ts';
import { scopeOf } from '../caller.ts';
import type { EndpointHandler } from '../endpoint.ts';
import { asksAnything, batchTrouble, takeBatch } from './batch.ts';
import { createLegacyClientSession, type LegacyClientSession } from './legacy-session.ts';
import { createSessionLimit } from './session-limit.ts';
import type { SessionNames } from './session-name.ts';
import { createStreams, type FrameStream, type Streams } from './streams.ts';

export interface LegacySessions {
  post(frame: Frame, request: IncomingMessage, response: ServerResponse, who: LegacyClient): Promise<void>;
  /** Handles a batch. */
  postAll(
    batch: readonly unknown[],
    request: IncomingMessage,
    response: ServerResponse,
    who: LegacyClient,
  ): Promise<void>;
  get(request: IncomingMessage, response: ServerResponse, who: LegacyClient): void;
  /**
   * Goes on with a session whose replica is gone, if the request names one, or hands the request on to the replica that goes on with it.
   * True: it was handed on.
   */
  adopt(request: IncomingMessage, response: ServerResponse, who: LegacyClient): Promise<boolean>;
  remove(request: IncomingMessage, response: ServerResponse, who: LegacyClient): void;
  close(): void;
}
export interface LegacyClient {
  readonly actor: Actor;
  readonly endpoint: string;
  readonly handler: EndpointHandler;
  /** The gateway session the client says it works in. */
  readonly home?: string | undefined;
}

interface Open {
  readonly session: LegacyClientSession;
  readonly who: string;
  readonly actor: Actor;
  readonly streams: Streams;
  readonly standalone: FrameStream;
  readonly idle: Idle;
  readonly silenceMs: number;
  /** It began at a replica that is gone. */
  readonly adopted: boolean;
  /** Connections and requests that keep it from being idle. */
  busy: number;
  /** The client's connections, also those it keeps for its next request. */
  readonly sockets: Set<Socket>;
  /** Runs while the client holds no connection. */
  away: NodeJS.Timeout | undefined;
}

export interface LegacyOptions {
  readonly silenceMs: number;
  readonly idleMs: number;
  readonly awayMs: number;
  readonly log: Logger;
  readonly names: SessionNames;
  /** The mark of the replica that goes on with the session of this name; ours, if it was free. */
  readonly hold: (name: string) => Promise<string>;
  readonly handOn: NonNullable<HttpHost['handOn']>;
  /** Ends the names of sessions that began here. */
  readonly mark: () => string;
  /** A session is over. */
  readonly ended: (sessionId: string) => void;
}

export function createLegacySessions(options: LegacyOptions): LegacySessions {
  const { silenceMs, idleMs, awayMs, log, names, hold, handOn, mark, ended } = options;
  const sessions = new Map<string, Open>();
  const adopting = new Map<string, Promise<boolean>>();
  const limit = createSessionLimit();
  /** The sessions of each connection that have not ended. A program may open many over one. */
  const carried = new WeakMap<Socket, Set<Open>>();

  function begin(client: LegacyClient, response: ServerResponse, said: JsonObject | undefined): Open | undefined {
    const { actor, endpoint } = client;
    let full = limit.open(actor);
    if (full && letGo(actor)) full = limit.open(actor);
    if (full) {
      refuse(response, 429, -32000, `Too Many Requests: ${full}`);
      return undefined;
    }
    return opened(names.make(said, owner(actor, endpoint)), client);
  }

  function opened(id: string, { actor, handler, endpoint, home }: LegacyClient, adopted = false): Open {
    const streams = createStreams();
    const standalone = streams.open();
    const session = createLegacyClientSession({ id, actor, handler, standalone, log, home });
    const idle = createIdle(idleMs, () => (open.busy > 0 ? idle.used() : end(open)));
    const who = owner(actor, endpoint);
    const connections = { busy: 0, sockets: new Set<Socket>(), away: undefined };
    const open: Open = { session, actor, who, streams, standalone, idle, silenceMs, adopted, ...connections };
    sessions.set(id, open);
    return open;
  }

  /** Opens it again under its name, with what its client said when it began. False: that cannot be done. */
  async function openAgain(id: string, who: LegacyClient, said: JsonObject): Promise<boolean> {
    if (limit.open(who.actor)) return false;
    const open = opened(id, who, true);
    const first = { jsonrpc: '2.0' as const, id: 'tollbridge-again', method: 'initialize', params: said };
    const outcome = await open.session.receive(first, open.standalone);
    if (!outcome || 'error' in outcome) {
      end(open);
      return false;
    }
    await open.session.receive({ jsonrpc: '2.0', method: 'notifications/initialized' }, open.standalone);
    log.info({ client: who.actor.id }, 'a session goes on whose replica is gone');
    return true;
  }

  /** Ends the oldest session of this caller whose client holds no connection; false when there is none. */
  function letGo({ id, tenant_id }: Actor): boolean {
    const same = ({ actor }: Open) => actor.id === id && actor.tenant_id === tenant_id;
    const left = [...sessions.values()].find((open) => same(open) && open.away !== undefined && open.busy === 0);
    if (left) end(left);
    return left !== undefined;
  }

  function end(open: Open): void {
    clearInterval(open.away);
    if (sessions.delete(open.session.id)) limit.closed(open.actor);
    open.idle.stop();
    open.session.end();
    open.streams.close();
    for (const socket of open.sockets) carried.get(socket)?.delete(open);
    ended(open.session.id);
  }

  /** A client that holds no connection for a while has left: most that leave do not say so. */
  function connected(open: Open, socket: Socket): void {
    clearInterval(open.away);
    open.away = undefined;
    if (open.sockets.has(socket)) return;
    open.sockets.add(socket);
    const known = carried.get(socket);
    if (known) return void known.add(open);
    const all = new Set([open]);
    carried.set(socket, all);
    socket.once('close', () => {
      for (const each of all) {
        each.sockets.delete(socket);
        if (each.sockets.size === 0) leave(each);
      }
    });
  }

  /** Again and again, because a call that is under way keeps what it needs. A function of its own: the timer keeps no socket in memory. */
  function leave(open: Open): void {
    open.away = setInterval(() => open.session.leave(), awayMs).unref();
  }

  function use(open: Open, response: ServerResponse): void {
    open.busy += 1;
    if (response.socket) connected(open, response.socket);
    response.on('close', () => {
      open.busy -= 1;
      if (sessions.has(open.session.id)) open.idle.used();
    });
  }

  /** The caller's session; otherwise answers in a way that does not reveal whether another principal has it. */
  function find(
    request: IncomingMessage,
    response: ServerResponse,
    { actor, endpoint }: LegacyClient,
  ): Open | undefined {
    const id = request.headers['mcp-session-id'];
    if (id === undefined) {
      refuse(response, 400, -32000, 'Bad Request: Mcp-Session-Id header is required');
      return undefined;
    }
    const open = sessions.get(asText(id));
    if (!open || open.who !== owner(actor, endpoint)) {
      refuse(response, 404, CODES.sessionGone, 'Session not found');
      return undefined;
    }
    const version = request.headers['mcp-protocol-version'];
    if (version !== undefined && !(LEGACY as readonly unknown[]).includes(version)) {
      refuse(response, 400, -32000, 'Bad Request: Unsupported protocol version');
      return undefined;
    }
    open.session.renew(actor);
    return open;
  }

  return {
    async post(frame, request, response, who) {
      const first =
        isRequest(frame) && frame.method === 'initialize' && request.headers['mcp-session-id'] === undefined;
      const open = first ? begin(who, response, frame.params) : find(request, response, who);
      if (!open) return;
      use(open, response);
      if (isNotice(frame) && clientFrameTrouble(frame)) {
        const { error } = (await open.session.receive(frame, open.standalone)) as { error: WireError };
        return refuse(response, 400, error.code, error.message);
      }
      if (!isRequest(frame)) {
        response.writeHead(202).end();
        await open.session.receive(frame, open.standalone);
        return;
      }
      const opened = await exchange(open, frame, response, first);
      if (first && !opened) end(open);
    },
    async postAll(batch, request, response, who) {
      const outside = request.headers['mcp-session-id'] === undefined;
      const open = outside ? undefined : find(request, response, who);
      if (!open && !outside) return;
      const trouble = batchTrouble(batch, open?.session.revision);
      if (trouble || !open) return refuse(response, 400, CODES.invalidRequest, trouble ?? 'Invalid Request');
      use(open, response);
      if (asksAnything(batch)) {
        const reply = replyOn(open, response);
        const answers = await takeBatch(batch, (frame) => open.session.receive(frame, reply.out));
        reply.finish(answers, answers);
        return;
      }
      response.writeHead(202).end();
      await takeBatch(batch, (frame) => open.session.receive(frame, open.standalone));
    },
    get(request, response, who) {
      const open = find(request, response, who);
      if (!open) return;
      const headers = { 'mcp-session-id': open.session.id };
      const last = request.headers['last-event-id'];
      if (last === undefined) {
        use(open, response);
        open.streams.attach(open.standalone, response, { headers, primed: primes(open.session) });
        return;
      }
      const found = open.streams.find(asText(last));
      if (!found && open.adopted) {
        // The events of the replica that is gone are gone with it.
        use(open, response);
        open.streams.attach(open.standalone, response, { headers, primed: primes(open.session) });
        return;
      }
      if (!found) return refuse(response, 400, -32000, 'Bad Request: Invalid event ID');
      use(open, response);
      found.resume(response, headers);
    },
    async adopt(request, response, who) {
      const id = request.headers['mcp-session-id'];
      if (typeof id !== 'string' || sessions.has(id) || id.endsWith(mark())) return false;
      const said = names.read(id, owner(who.actor, who.endpoint));
      if (!said) return false;
      let holder = await hold(id);
      if (holder !== mark()) {
        if (await handOn(holder, request, response)) return true;
        // That one is gone as well, or thinks that the session is ours.
        holder = await hold(id);
      }
      if (holder !== mark() || sessions.has(id)) return false;
      const again = adopting.get(id) ?? openAgain(id, who, said).finally(() => adopting.delete(id));
      adopting.set(id, again);
      await again;
      return false;
    },
    remove(request, response, who) {
      const open = find(request, response, who);
      if (!open) return;
      end(open);
      response.writeHead(200).end();
    },
    close() {
      for (const open of [...sessions.values()]) end(open);
    },
  };
}

/** One request and its answer. True when it succeeded. */
async function exchange(open: Open, frame: Request, response: ServerResponse, first: boolean): Promise<boolean> {
  const reply = replyOn(open, response);
  const outcome = await open.session.receive(frame, reply.out);
  if (!outcome) {
    reply.finish([], undefined);
    return true;
  }
  const answer = answerTo(frame.id, outcome);
  reply.finish([answer], answer);
  return !first || 'result' in answer;
}

/** The reply to a post. A stream is opened only when there is more to send than the answer. */
function replyOn({ session, streams, silenceMs }: Open, response: ServerResponse) {
  let stream: FrameStream | undefined;
  const headers = { 'mcp-session-id': session.id };
  const streaming = (): FrameStream => {
    clearTimeout(timer);
    if (stream) return stream;
    stream = streams.open();
    if (!response.destroyed) streams.attach(stream, response, { headers, primed: primes(session) });
    return stream;
  };
  const timer = setTimeout(streaming, silenceMs).unref();
  // A connection that breaks leaves the call alone: its answer waits in a stream to be fetched.
  response.on('close', () => {
    if (!response.writableFinished) streaming();
  });
  return {
    out: { send: (said: Frame) => streaming().send(said) },
    /** `whole` is the body that is sent where no stream has been opened. */
    finish(answers: readonly Frame[], whole: Frame | readonly Frame[] | undefined): void {
      clearTimeout(timer);
      if (stream) {
        for (const answer of answers) stream.send(answer);
        stream.finish();
      } else if (answers.length === 0) response.writeHead(202).end();
      else writeJson(response, 200, JSON.stringify(whole), headers);
    },
  };
}

/** Older clients treat an event without data as malformed. */
function primes({ revision }: LegacyClientSession): boolean {
  return revision !== undefined && revision >= LEGACY[0];
}

function owner(actor: Actor, endpoint: string): string {
  return `${scopeOf(actor)}@${endpoint}`;
}

export function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  writeJson(response, status, JSON.stringify({ jsonrpc: '2.0', id: null, ...failed(code, message) }));
}

export function writeJson(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
    ...(!response.req.complete && { connection: 'close' }),
  });
  response.end(text);
}
