/**
 * The transport of 2024-11-05, for clients that support no other: one stream per session, whose first event names the address to
 * post to. Served only when it is switched on. The session belongs to the principal that opened it and ends with the stream; it
 * cannot be resumed. Requests are handled like those of any other client.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CODES } from '../../../../mappings/mcp.ts';
import { asFault, type Logger } from '../../../../src/index.ts';
import { readJson } from '../../../../src/transport/http/body.ts';
import type { WireError } from '../../../../src/transport/json-rpc/messages.ts';
import { openSse, sseFrame } from '../../../../src/transport/sse/write.ts';
import { clientFrameTrouble } from '../../frame-rules.ts';
import { type Frame, isNotice, isRequest, readFrame } from '../../frames.ts';
import { scopeOf } from '../caller.ts';
import { createLegacyClientSession, type LegacyClientSession, type Out } from './legacy-session.ts';
import { type LegacyClient, refuse } from './legacy-sessions.ts';

export interface SseSessions {
  handle(request: IncomingMessage, response: ServerResponse, who: LegacyClient, path: SsePath): Promise<void>;
  close(): void;
}

export interface SseSessionsOptions {
  readonly bodyLimit: number;
  /** The path prefix under which clients see our paths. */
  readonly prefix: () => string;
  readonly log: Logger;
  /** What ends the name of each session. */
  readonly mark: () => string;
  readonly ended: (sessionId: string) => void;
}

/** An address of the older transport, and the address of the newer one that it corresponds to. */
export interface SsePath {
  readonly at: string;
  readonly part: 'sse' | 'message';
}

/** `<address>/sse` is where a session is opened, `<address>/message` where it is spoken to. */
export function ssePath(path: string): SsePath | undefined {
  const [, at, part] = /^(.*)\/(sse|message)$/.exec(path) ?? [];
  return at === undefined ? undefined : { at, part: part as SsePath['part'] };
}

interface Open {
  readonly session: LegacyClientSession;
  readonly who: string;
  readonly out: Out;
}

const LIMITS = { depth: 100, values: 200_000 };

export function createSseSessions({ bodyLimit, prefix, log, mark, ended }: SseSessionsOptions): SseSessions {
  const sessions = new Map<string, Open>();
  const streams = new Map<string, () => void>();

  function open(response: ServerResponse, who: LegacyClient, { at }: SsePath): void {
    const id = `${randomBytes(18).toString('base64url')}${mark()}`;
    const stream = openSse(response);
    const out: Out = {
      send(frame) {
        const room = stream.write(sseFrame({ event: 'message', data: JSON.stringify(frame) }));
        // The stream cannot be resumed, so frames a client does not read are lost: one that stops reading is disconnected.
        if (!room) void stream.room().then((again) => again || stream.close());
      },
    };
    const { actor, handler } = who;
    const session = createLegacyClientSession({ id, actor, handler, standalone: out, log });
    sessions.set(id, { session, who: ownerOf(who), out });
    streams.set(id, () => stream.close());
    stream.signal.addEventListener('abort', () => {
      sessions.delete(id);
      streams.delete(id);
      session.end();
      ended(id);
    });
    stream.write(sseFrame({ event: 'endpoint', data: `${prefix()}${at}/message?sessionId=${id}` }));
  }

  async function post(request: IncomingMessage, response: ServerResponse, who: LegacyClient): Promise<void> {
    const id = new URLSearchParams((request.url ?? '').split('?', 2)[1]).get('sessionId') ?? '';
    const found = sessions.get(id);
    // Another principal's session and an unknown one get the same answer.
    if (!found || found.who !== ownerOf(who)) return refuse(response, 404, CODES.sessionGone, 'Session not found');
    if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
      return refuse(response, 415, -32000, 'Unsupported Media Type: Content-Type must be application/json');
    }
    const frame = await frameOf(request, response);
    if (!frame) return;
    const { session, out } = found;
    session.renew(who.actor);
    if (isNotice(frame) && clientFrameTrouble(frame)) {
      const { error } = (await session.receive(frame, out)) as { error: WireError };
      return refuse(response, 400, error.code, error.message);
    }
    response.writeHead(202, { 'content-type': 'text/plain' }).end('Accepted');
    const outcome = await session.receive(frame, out);
    if (outcome && isRequest(frame)) out.send({ jsonrpc: '2.0', id: frame.id, ...outcome });
  }

  async function frameOf(request: IncomingMessage, response: ServerResponse): Promise<Frame | undefined> {
    try {
      const said = await readJson(request, { ...LIMITS, bytes: bodyLimit });
      const frame = readFrame(said);
      // The revision that has batches has its own transport.
      const why = Array.isArray(said) ? 'batches are not taken over this transport' : 'this is not a JSON-RPC message';
      if (!frame) refuse(response, 400, CODES.invalidRequest, `Invalid Request: ${why}`);
      return frame;
    } catch (thrown) {
      const { kind, message } = asFault(thrown);
      if (kind === 'payload_too_large') refuse(response, 413, CODES.invalidRequest, message);
      else refuse(response, 400, CODES.parse, `Parse error: ${message}`);
      return undefined;
    }
  }

  return {
    async handle(request, response, who, path) {
      const wanted = path.part === 'sse' ? 'GET' : 'POST';
      if (request.method !== wanted) {
        response.setHeader('allow', wanted);
        return refuse(response, 405, -32000, 'Method not allowed.');
      }
      if (path.part === 'sse') open(response, who, path);
      else await post(request, response, who);
    },
    close() {
      for (const end of [...streams.values()]) end();
    },
  };
}

function ownerOf({ actor, endpoint }: LegacyClient): string {
  return `${scopeOf(actor)}@${endpoint}`;
}
