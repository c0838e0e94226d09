/**
 * The four transports to a harness: a child process, a Unix socket, a WebSocket, and HTTP. A link carries text messages and
 * nothing else; when it is closed, all pending requests fail at once.
 */

import { createConnection } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { WebSocket } from 'ws';
import { anySignal, asText, isObject, type JsonObject, type Logger } from '../../../src/index.ts';
import {
  createPendingRequests,
  type OwnRequest,
  RequestAbandoned,
} from '../../../src/transport/json-rpc/pending-requests.ts';
import { lineWriter, readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { outgoingTrace, type TraceMembers } from '../../../src/transport/outbound/trace-context.ts';
import { startChild } from '../../../src/transport/process/child.ts';
import { minimalEnvironment } from '../../../src/transport/process/environment.ts';
import { HarnessError } from './harness-error.ts';

export interface HarnessLink {
  /** The whole response to a request, as received. */
  request(message: OwnRequest, signal: AbortSignal): Promise<unknown>;
  notify(message: JsonObject, signal: AbortSignal): Promise<void>;
  /** Whether the harness has sent nothing since then. Always false for HTTP, where questions share no connection. */
  silentSince(at: number): boolean;
  /** Fires when the link is closed. Never for HTTP, which has no connection to close. */
  readonly cut: AbortSignal;
  close(): Promise<void>;
}

export interface Credential {
  readonly kind: 'api_key' | 'token';
  readonly value: string;
}

export interface HarnessLocation {
  readonly url?: string | undefined;
  readonly socket?: string | undefined;
  readonly command?: readonly string[] | undefined;
  /** Variables of the child process beside the few every program needs. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

const LIMIT = 4 * 1024 * 1024;

export async function openLink(
  where: HarnessLocation,
  credential: Credential | undefined,
  log: Logger,
): Promise<HarnessLink> {
  if (where.command) return await childLink(where.command, where.env, log);
  if (where.socket) return await socketLink(where.socket);
  if (!where.url) throw new HarnessError('transport', 'nothing says where the harness is');
  return /^wss?:/i.test(where.url) ? await webSocketLink(where.url, credential) : httpLink(where.url, credential);
}

/** The common part of the three streaming transports: responses are matched by id, and a close fails all pending requests. */
function streamed(send: (text: string) => Promise<void>, end: () => void) {
  const pending = createPendingRequests<undefined>(async (message) => {
    await send(JSON.stringify(message)).catch(broken);
  });
  const cut = new AbortController();
  let receivedAt = 0;
  const broken = () => {
    cut.abort();
    pending.fail(new HarnessError('transport', 'the connection to the harness was lost'));
  };
  const link: HarnessLink = {
    cut: cut.signal,
    silentSince: (at) => receivedAt < at,
    async request(message, signal) {
      if (cut.signal.aborted) throw new HarnessError('transport', 'the connection to the harness was lost');
      return await pending.request(message, signal, undefined).catch((cause) => {
        throw cause instanceof RequestAbandoned
          ? new HarnessError('timeout', 'the harness did not answer in time')
          : cause;
      });
    },
    async notify(message, signal) {
      if (cut.signal.aborted) throw new HarnessError('transport', 'the connection to the harness was lost');
      await taken(send(JSON.stringify(message)), anySignal([signal, cut.signal]));
    },
    async close() {
      broken();
      end();
    },
  };
  const receive = (text: string) => {
    receivedAt = performance.now();
    try {
      const message: unknown = JSON.parse(text);
      if (isObject(message)) pending.deliver(message);
    } catch {
      // Not a response, so it needs no answer.
    }
  };
  return { link, receive, broken };
}

/** A harness that does not read must not block other senders. */
function taken(sent: Promise<void>, over: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new HarnessError('timeout', 'the harness does not read what is sent to it'));
    if (over.aborted) return stop();
    over.addEventListener('abort', stop, { once: true });
    sent.then(resolve, reject).finally(() => over.removeEventListener('abort', stop));
  });
}

/** Lines over any two streams. */
export function lineLink(input: Readable, output: Writable, end: () => void): HarnessLink {
  const { link, receive } = streamed(lineWriter(output), end);
  // A stream that has ended is closed: until then an exited program counts as a running one.
  const over = () => void link.close();
  (async () => {
    for await (const line of readLines(input, { limit: LIMIT })) receive(line);
  })().then(over, over);
  return link;
}

async function childLink(command: readonly string[], more: HarnessLocation['env'], log: Logger): Promise<HarnessLink> {
  const [program] = command;
  const env = { ...minimalEnvironment(), ...more };
  // Its standard error is its log.
  const onStderr = (line: string) => log.info({ program }, line);
  const child = await startChild({ command, env, onStderr }).catch((cause) => {
    log.warn({ err: cause, program }, 'a harness could not be started');
    throw new HarnessError('transport', 'the harness could not be started');
  });
  return lineLink(child.stdout, child.stdin, () => {
    child.close().catch((cause) => log.warn({ err: cause, program }, 'a harness could not be ended'));
  });
}

async function socketLink(path: string): Promise<HarnessLink> {
  const socket: Duplex = await new Promise((resolve, reject) => {
    const opened = createConnection(path, () => resolve(opened));
    opened.once('error', () => reject(new HarnessError('transport', 'no process listens at the socket')));
  });
  return lineLink(socket, socket, () => socket.destroy());
}

async function webSocketLink(url: string, credential: Credential | undefined): Promise<HarnessLink> {
  const target = new URL(url);
  if (credential) target.searchParams.append(credential.kind, credential.value);
  const socket = new WebSocket(target, { maxPayload: LIMIT, perMessageDeflate: false, handshakeTimeout: 10_000 });
  const send = (text: string) =>
    new Promise<void>((resolve, reject) => socket.send(text, (cause) => (cause ? reject(cause) : resolve())));
  const { link, receive, broken } = streamed(send, () => socket.terminate());
  socket.on('message', (data, binary) => {
    if (!binary) receive(asText(data));
  });
  socket.on('close', broken);
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve());
    socket.on('error', () => reject(new HarnessError('transport', 'the harness cannot be reached')));
  });
  return link;
}

/** The trace of the event, where it has one. */
function traceIn({ params }: JsonObject): TraceMembers {
  const { event = params } = (params ?? {}) as { event?: unknown };
  const { metadata } = (event ?? {}) as { metadata?: { [member: string]: unknown } };
  const { trace_id, tracestate, trace_flags } = metadata ?? {};
  if (typeof trace_id !== 'string') return {};
  return {
    trace_id,
    ...(typeof tracestate === 'string' && { tracestate }),
    ...(trace_flags === '00' && { trace_flags }),
  };
}

function httpLink(url: string, credential: Credential | undefined): HarnessLink {
  const proof: Record<string, string> = {};
  if (credential?.kind === 'api_key') proof['x-api-key'] = credential.value;
  if (credential?.kind === 'token') proof.authorization = `Bearer ${credential.value}`;
  const post = async (message: JsonObject, signal: AbortSignal) => {
    try {
      const headers = { 'content-type': 'application/json', ...outgoingTrace(traceIn(message)), ...proof };
      const answer = await fetch(url, {
        method: 'POST',
        redirect: 'error',
        headers,
        body: JSON.stringify(message),
        signal,
      });
      return { status: answer.status, text: await answer.text() };
    } catch {
      throw new HarnessError(
        'transport',
        signal.aborted ? 'the harness did not answer in time' : 'the harness cannot be reached',
      );
    }
  };
  return {
    cut: new AbortController().signal,
    silentSince: () => false,
    async request(message, signal) {
      const { status, text } = await post(message, signal);
      // The body is not repeated: it may contain anything.
      if (status < 200 || status > 299) throw new HarnessError('transport', `the harness answered with HTTP ${status}`);
      try {
        return JSON.parse(text) as unknown;
      } catch {
        throw new HarnessError('protocol', 'the answer is not JSON');
      }
    },
    async notify(message, signal) {
      await post(message, signal);
    },
    async close() {},
  };
}
