/**
 * The direction away from us: a peer on HTTP that is given work by the gateway, writes down every act it sees, and makes its own
 * answers wrong in kind, id, members, nesting, encoding, order, length, status and content type. Each protocol brings what a
 * sound peer would answer.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '../../../src/model/schema.ts';
import { readings } from '../json-readings.ts';
import { type Step, steps } from '../mutations.ts';

export interface Asked {
  /** Which of the agents asks: the first segment of the path. */
  readonly agent: string;
  readonly method: string;
  /** Below the agent's own address, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: JsonObject;
}

export interface Frame {
  readonly id?: string;
  readonly event?: string;
  readonly data: JsonObject;
}

/** What a sound peer says. `about`: the work it is about, which receives the truth in the end. */
export interface Said {
  readonly about?: string;
  readonly status?: number;
  readonly body?: JsonObject;
  readonly stream?: readonly Frame[];
}

/** An act as a question of the peer describes it. */
export interface Question {
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonObject;
}

export interface PeerHooks {
  answer(asked: Asked): Said;
  /** Questions for a yes that a reader would find in a frame of the peer. */
  questionsIn(frame: unknown, about: string): readonly Question[];
}

export interface Peer {
  readonly url: string;
  /** How many frames were sent. */
  readonly frames: number;
  /** What was asked under this id, as each frame with one reading said it; whether another frame said it in two ways. */
  asked(id: string): { readonly variants: readonly Question[]; readonly ambiguous: boolean };
  /** Resolves once no request has come for a while: one that was given up by its sender may still be on its way. */
  quiet(): Promise<void>;
  close(): Promise<void>;
}

/** After so many answers about one task the peer tells the truth, so that each task can end. */
const TIMEOUT = 6;
const QUIET_MS = 600;
const STATUSES = [204, 205, 301, 400, 401, 403, 404, 409, 410, 418, 422, 429, 500, 502, 503, 504, 599];
const TYPES = ['text/html', 'application/octet-stream', '', 'text/event-stream', 'application/json; charset=utf-16'];

export async function openFuzzedPeer({ answer, questionsIn }: PeerHooks, seed: number): Promise<Peer> {
  const next = endless(seed);
  const random = randomOf(seed);
  const reported = new Map<string, number>();
  const asked = new Map<string, { variants: Question[]; ambiguous: boolean }>();
  const silent = new Set<ServerResponse>();
  let frames = 0;
  let lastAsked = performance.now();

  /** What was asked in this frame, as anyone could read it. */
  function remember(bytes: Buffer, about: string): void {
    const byId = new Map<string, Map<string, Question>>();
    for (const reading of readings(bytes.toString('utf8'))) {
      for (const question of questionsIn(reading, about)) {
        const same = byId.get(question.id) ?? new Map<string, Question>();
        byId.set(question.id, same.set(JSON.stringify([question.tool, question.arguments]), question));
      }
    }
    for (const [id, variants] of byId) {
      const known = asked.get(id) ?? { variants: [], ambiguous: false };
      // A frame with two readings asks nothing: the question counts once another frame says it in one way.
      if (variants.size > 1) known.ambiguous = true;
      else known.variants.push(...variants.values());
      asked.set(id, known);
    }
  }

  function spoiled(frame: JsonObject, honest: boolean, about = ''): { readonly bytes: Buffer; readonly times: number } {
    frames += 1;
    const { mutation, times }: Step = honest
      ? { frame: 0, times: 1, mutation: (it) => Buffer.from(JSON.stringify(it)) }
      : next();
    const bytes = mutation(frame);
    remember(bytes, about);
    return { bytes, times };
  }

  function stream(response: ServerResponse, said: readonly Frame[], honest: boolean, about?: string): void {
    const order = [...said];
    if (!honest && order.length > 1 && random(6) === 0) {
      const [one, other] = [random(order.length), random(order.length)];
      [order[one], order[other]] = [order[other] as Frame, order[one] as Frame];
    }
    const cut = !honest && random(8) === 0 ? random(order.length) : order.length;
    for (const { id, event, data } of order.slice(0, cut)) {
      const { bytes, times } = spoiled(data, honest, about);
      const one = bytes.toString('latin1').replace(/\n/g, ' ');
      const spelled = `${id === undefined ? '' : `id: ${id}\n`}${event ? `event: ${event}\n` : ''}data: ${one}\n\n`;
      for (let time = 0; time < times; time += 1) response.write(spelled, 'latin1');
      if (!honest && random(30) === 0) response.write(ODD_LINES[random(ODD_LINES.length)] as string);
    }
    if (cut < order.length && random(2) === 0) response.write('data: {"half');
    if (cut < order.length && random(2) === 0) response.destroy();
    else response.end();
  }

  function say(response: ServerResponse, { about, status = 200, body, stream: said }: Said): void {
    const times = about === undefined ? 0 : (reported.get(about) ?? 0) + 1;
    if (about !== undefined) reported.set(about, times);
    const honest = times > TIMEOUT;
    const kind = honest ? -1 : random(60);
    if (kind === 0) return void silent.add(response);
    if (kind === 1) return void response.destroy();
    if (kind <= 3 && kind >= 0) status = STATUSES[random(STATUSES.length)] as number;
    const type = kind === 4 ? (TYPES[random(TYPES.length)] as string) : undefined;
    const more = status === 429 ? { 'retry-after': '0' } : status === 301 ? { location: 'http://127.0.0.1:9/' } : {};
    if (said) {
      response.writeHead(status, { 'content-type': type ?? 'text/event-stream', ...more });
      stream(response, said, honest, about);
      return;
    }
    if (status === 204 || status === 205) {
      frames += 1;
      return void response.writeHead(status, more).end();
    }
    const { bytes } = spoiled(body ?? {}, honest, about);
    const headers = { 'content-type': type ?? 'application/json', ...more };
    if (kind === 5) {
      response.writeHead(status, { ...headers, 'content-length': String(bytes.length + 10) });
      response.write(bytes);
      return void response.destroy();
    }
    if (kind === 6)
      return void response.writeHead(status, { ...headers, 'content-encoding': 'gzip' }).end(gzipSync(bytes));
    if (kind === 7) return void response.writeHead(status, { ...headers, 'content-encoding': 'gzip' }).end(bytes);
    response.writeHead(status, headers).end(bytes);
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('error', () => response.destroy());
    response.once('error', () => {});
    response.once('close', () => silent.delete(response));
    request.once('end', () => {
      lastAsked = performance.now();
      const url = new URL(request.url ?? '/', 'http://peer');
      const [, agent = '', ...rest] = url.pathname.split('/');
      const text = Buffer.concat(chunks).toString();
      const about = { agent, method: request.method ?? 'GET', path: `/${rest.join('/')}`, query: url.searchParams };
      say(response, answer({ ...about, headers: request.headers, body: text === '' ? {} : JSON.parse(text) }));
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get frames() {
      return frames;
    },
    asked: (id) => asked.get(id) ?? { variants: [], ambiguous: false },
    async quiet() {
      while (performance.now() - lastAsked < QUIET_MS) await sleep(QUIET_MS / 4);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const ODD_LINES = [
  '\ufeff',
  ':\n\n',
  'data\n\n',
  'retry: 1e9\n\n',
  'id: \u0000\n\n',
  '\r\r',
  'event: error\ndata: {}\n\n',
];

function endless(seed: number): () => Step {
  let from = seed;
  let left: Step[] = [];
  return () => {
    if (left.length === 0) {
      left = [...steps(1_000, from)];
      from += 1_000;
    }
    return left.pop() as Step;
  };
}

/** A number below `limit`, the same each time for the same seed and order. */
export function randomOf(seed: number): (limit: number) => number {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}
