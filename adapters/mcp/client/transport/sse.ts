/**
 * One server over the transport of 2024-11-05: a stream whose first event names the address to post to, and which carries all
 * answers. The address must be at the configured origin, because our credentials go there. The session ends with the stream.
 */
import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { Fault } from '../../../../src/index.ts';
import { outgoingTrace } from '../../../../src/transport/outbound/trace-context.ts';
import { readSse } from '../../../../src/transport/sse/read.ts';
import { framesIn } from '../../frames.ts';
import type { HttpUpstream } from './http.ts';
import { createSharedConnection } from './shared-connection.ts';
import type { Unasked, Wire } from './transport.ts';

/** How long a server may take to name the address to post to. */
const TIMEOUT_MS = 10_000;

export async function openSseTransport(remote: HttpUpstream, unasked: Unasked): Promise<Wire> {
  const cut = new AbortController();
  const message = await listening(remote, cut.signal);
  let named: (address: URL) => void = () => {};
  let refused: (cause: Error) => void = () => {};
  const endpoint = new Promise<URL>((resolve, reject) => {
    [named, refused] = [resolve, reject];
  });
  endpoint.catch(() => {});
  const late = setTimeout(() => refused(broken('it does not say where to post')), TIMEOUT_MS).unref();
  const connection = createSharedConnection(
    async (frame) => await post(remote, await endpoint, frame, cut.signal),
    unasked,
  );

  const readLoop = (async () => {
    for await (const { event, data } of readSse(message)) {
      if (event === 'endpoint') named(endpointIn(data, remote.url));
      if (event === 'message') for (const frame of framesIn(data)) connection.take(frame);
    }
  })()
    .catch((cause) => refused(cause))
    .finally(() => {
      clearTimeout(late);
      const over = broken('it has ended the stream');
      refused(over);
      connection.over(over);
    });

  const close = async () => {
    cut.abort();
    message.destroy();
    await readLoop;
  };
  await endpoint.catch(async (cause) => {
    await close();
    throw cause;
  });
  clearTimeout(late);
  return { gone: readLoop, request: connection.request, notify: connection.notify, respond: connection.respond, close };
}

async function listening(remote: HttpUpstream, signal: AbortSignal): Promise<IncomingMessage> {
  for (let again = false; ; again = true) {
    const headers = { ...(await remote.headers()), accept: 'text/event-stream' };
    const message = await get(remote.url, headers, signal);
    const { statusCode: status = 0, headers: said } = message;
    if (status === 200 && said['content-type']?.startsWith('text/event-stream')) return message;
    message.resume();
    const unknown = status === 401 || status === 403;
    if (unknown && !again && (await remote.refused?.(status, said['www-authenticate']))) continue;
    const why = unknown ? 'does not accept our credentials' : `answered ${status} and no stream`;
    throw new Fault('upstream_unavailable', `the server ${why}`, { details: { status } });
  }
}

function get(url: URL, headers: Record<string, string>, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const make = url.protocol === 'https:' ? secureRequest : plainRequest;
    // A separate connection: it stays open for as long as the session does.
    const out = make(url, { method: 'GET', headers, signal, agent: false }, (message) => {
      message.on('error', () => {});
      resolve(message);
    });
    out.once('error', (cause) => reject(new Fault('upstream_unavailable', 'the server cannot be reached', { cause })));
    out.end();
  });
}

async function post(remote: HttpUpstream, to: URL, frame: object, signal: AbortSignal): Promise<void> {
  for (let again = false; ; again = true) {
    const headers = { ...(await remote.headers()), ...outgoingTrace(), 'content-type': 'application/json' };
    const body = JSON.stringify(frame);
    const answer = await fetch(to, { method: 'POST', headers, body, redirect: 'manual', signal }).catch((cause) => {
      throw new Fault('upstream_unavailable', 'the server cannot be reached', { cause });
    });
    await answer.body?.cancel();
    if (answer.ok) return;
    const { status } = answer;
    const unknown = status === 401 || status === 403;
    if (unknown && !again && (await remote.refused?.(status, answer.headers.get('www-authenticate') ?? undefined))) {
      continue;
    }
    throw new Fault('upstream_unavailable', `the server answered ${status} to a message`, { details: { status } });
  }
}

/** At any other origin, another party would receive our credentials. */
function endpointIn(said: string, url: URL): URL {
  const to = URL.canParse(said, url.href) ? new URL(said, url) : undefined;
  if (to?.origin !== url.origin) throw broken('it names an address to post to that is not its own');
  return to;
}

function broken(why: string): Fault {
  return new Fault('upstream_unavailable', `the server cannot be used: ${why}`);
}
