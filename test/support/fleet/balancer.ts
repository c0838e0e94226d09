/**
 * A load balancer without stickiness: each request goes to the next target in turn, whatever connection it came on. Requests and
 * answers pass unchanged and unbuffered. It can leave out targets, as one does that checks readiness.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';

export interface Balancer {
  readonly url: string;
  /** From now on these are the targets, by their URLs. */
  to(urls: readonly string[]): void;
  /** How many requests each target got. */
  readonly counts: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

export async function openBalancer(urls: readonly string[] = []): Promise<Balancer> {
  let targets = urls.map((url) => new URL(url));
  let turn = 0;
  const counts = new Map<string, number>();
  const open = new Set<Duplex>();

  function next(): URL | undefined {
    const target = targets[turn % Math.max(targets.length, 1)];
    turn += 1;
    if (target) counts.set(target.origin, (counts.get(target.origin) ?? 0) + 1);
    return target;
  }

  function serve(incoming: IncomingMessage, answer: ServerResponse): void {
    const target = next();
    if (!target) {
      answer.writeHead(503).end('no target');
      return;
    }
    const { hostname, port } = target;
    const { method, url, rawHeaders } = incoming;
    const outgoing = request({ hostname, port, method, path: url, agent: false, setHost: false });
    for (const [name, values] of grouped(rawHeaders)) if (name !== 'connection') outgoing.setHeader(name, values);
    outgoing.on('response', (response) => {
      answer.writeHead(response.statusCode ?? 502, response.rawHeaders.filter(endToEnd));
      answer.flushHeaders();
      response.on('error', () => answer.destroy());
      response.on('aborted', () => answer.destroy());
      response.pipe(answer);
    });
    outgoing.on('error', (cause) => {
      if (answer.headersSent) answer.destroy();
      else answer.writeHead(502).end(cause.message);
    });
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }

  const server = createServer({ keepAliveTimeout: 60_000 }, serve);
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('upgrade', ({ method, url, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer) => {
    const target = next();
    const upstream = target && connect(Number(target.port), target.hostname);
    socket.on('error', () => upstream?.destroy());
    if (!upstream) {
      socket.destroy();
      return;
    }
    const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
    upstream.write(`${method} ${url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    upstream.write(head);
    upstream.on('error', () => socket.destroy());
    upstream.on('close', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
    upstream.pipe(socket);
    socket.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    to(urls) {
      targets = urls.map((url) => new URL(url));
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

function grouped(raw: readonly string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    found.set(name, [...(found.get(name) ?? []), raw[at + 1] as string]);
  }
  return found;
}

/** What concerns one connection is not passed on. */
function endToEnd(_: string, at: number, all: readonly string[]): boolean {
  const name = (all[at - (at % 2)] as string).toLowerCase();
  return name !== 'connection' && name !== 'keep-alive' && name !== 'transfer-encoding';
}
