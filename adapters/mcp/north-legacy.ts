/**
 * Sessions of the legacy era over HTTP: posted requests with a stream of their own, one stream for everything else, ids to
 * come back with. A session belongs to who opened it; to anyone else it is not there.
 */

import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CODES, LEGACY } from '../../mappings/mcp.ts';
import type { Actor, Logger } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { scopeOf } from './caller.ts';
import type { Desk } from './desk.ts';
import { clientFrameTrouble } from './frame-rules.ts';
import { answerTo, type Frame, failed, isNotice, isRequest, type Request, type WireError } from './frames.ts';
import { createIdle, type Idle } from './idle.ts';
import { asksAnything, batchTrouble, takeBatch } from './north-batch.ts';
import { createNorthSession, type NorthSession } from './north-session.ts';
import { SILENCE_MS, writeJson } from './reply.ts';
import { createSessionLimit } from './session-limit.ts';
import { createStreams, type Stream, type Streams } from './streams.ts';

export interface NorthLegacy {
  post(frame: Frame, request: IncomingMessage, response: ServerResponse, who: Visitor): Promise<void>;
  /** Several messages in one. */
  postAll(batch: readonly unknown[], request: IncomingMessage, response: ServerResponse, who: Visitor): Promise<void>;
  get(request: IncomingMessage, response: ServerResponse, who: Visitor): void;
  remove(request: IncomingMessage, response: ServerResponse, who: Visitor): void;
  close(): void;
}
export interface Visitor {
  readonly actor: Actor;
  readonly endpoint: string;
  readonly desk: Desk;
  /** The session of ours it says it works in. */
  readonly home?: string | undefined;
}

interface Open {
  readonly session: NorthSession;
  readonly who: string;
  readonly actor: Actor;
  readonly streams: Streams;
  readonly standalone: Stream;
  readonly idle: Idle;
  /** Connections and requests that keep it from being idle. */
  busy: number;
}

export interface LegacyOptions {
  readonly idleMs: number;
  readonly log: Logger;
  /** A session is over. */
  readonly ended: (sessionId: string) => void;
}

export function createNorthLegacy({ idleMs, log, ended }: LegacyOptions): NorthLegacy {
  const sessions = new Map<string, Open>();
  const limit = createSessionLimit();

  function begin({ actor, desk, endpoint, home }: Visitor, response: ServerResponse): Open | undefined {
    const full = limit.open(actor);
    if (full) {
      refuse(response, 429, -32000, `Too Many Requests: ${full}`);
      return undefined;
    }
    const id = randomBytes(18).toString('base64url');
    const streams = createStreams();
    const standalone = streams.open();
    const session = createNorthSession({ id, actor, desk, standalone, log, home });
    const idle = createIdle(idleMs, () => (open.busy > 0 ? idle.used() : end(open)));
    const open: Open = { session, actor, who: owner(actor, endpoint), streams, standalone, idle, busy: 0 };
    sessions.set(id, open);
    return open;
  }

  function end(open: Open): void {
    if (sessions.delete(open.session.id)) limit.closed(open.actor);
    open.idle.stop();
    open.session.end();
    open.streams.close();
    ended(open.session.id);
  }

  function use(open: Open, response: ServerResponse): void {
    open.busy += 1;
    response.on('close', () => {
      open.busy -= 1;
      if (sessions.has(open.session.id)) open.idle.used();
    });
  }

  /** Its owner's session, or an answer that says nothing about whose it is. */
  function find(request: IncomingMessage, response: ServerResponse, { actor, endpoint }: Visitor): Open | undefined {
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
    return open;
  }

  return {
    async post(frame, request, response, who) {
      const first =
        isRequest(frame) && frame.method === 'initialize' && request.headers['mcp-session-id'] === undefined;
      const open = first ? begin(who, response) : find(request, response, who);
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
      if (!found) return refuse(response, 400, -32000, 'Bad Request: Invalid event ID');
      use(open, response);
      found.resume(response, headers);
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

/** One request and its answer. True when it went well. */
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

/** Where what was posted is answered. A stream is only made when there is more to say than the answer. */
function replyOn({ session, streams }: Open, response: ServerResponse) {
  let stream: Stream | undefined;
  const headers = { 'mcp-session-id': session.id };
  const streaming = (): Stream => {
    clearTimeout(timer);
    if (stream) return stream;
    stream = streams.open();
    if (!response.destroyed) streams.attach(stream, response, { headers, primed: primes(session) });
    return stream;
  };
  const timer = setTimeout(streaming, SILENCE_MS).unref();
  // A connection that breaks leaves the call alone: its answer waits in a stream to be fetched.
  response.on('close', () => {
    if (!response.writableFinished) streaming();
  });
  return {
    out: { send: (said: Frame) => streaming().send(said) },
    /** `whole` is what goes out where no stream has begun. */
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

/** Older clients take an event without data for a broken one. */
function primes({ revision }: NorthSession): boolean {
  return revision !== undefined && revision >= LEGACY[0];
}

function owner(actor: Actor, endpoint: string): string {
  return `${scopeOf(actor)}@${endpoint}`;
}

export function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  writeJson(response, status, JSON.stringify({ jsonrpc: '2.0', id: null, ...failed(code, message) }));
}
