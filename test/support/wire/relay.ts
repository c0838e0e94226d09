/** A relay between a client and a server that can be cut, pointed elsewhere, and asked what went through it. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Relay {
  readonly url: string;
  /** `GET /v1/tasks/…`, in the order they came. */
  readonly calls: readonly {
    readonly method: string;
    readonly path: string;
    readonly headers: IncomingMessage['headers'];
  }[];
  /** Where it leads; undefined refuses every connection. */
  to(url: string | undefined): void;
  /** Breaks every open connection. */
  cut(): void;
  /** Breaks a connection once this much of an event stream has passed; undefined lets streams be. */
  breakStreamsAfter(bytes: number | undefined): void;
  /** Answers in the server's stead when it returns true. */
  answerWith(answer: (request: IncomingMessage, response: ServerResponse) => boolean): void;
}

export async function openRelay(target: string): Promise<Relay> {
  let at: string | undefined = target;
  let breakAfter: number | undefined;
  let instead: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  const calls: { method: string; path: string; headers: IncomingMessage['headers'] }[] = [];
  const sockets = new Set<Socket>();

  const server = createServer((incoming, outgoing) => {
    calls.push({ method: incoming.method ?? '', path: incoming.url ?? '', headers: incoming.headers });
    if (instead(incoming, outgoing)) return;
    if (!at) {
      incoming.socket.destroy();
      return;
    }
    const { hostname, port, host } = new URL(at);
    const onward = request(
      { hostname, port, method: incoming.method, path: incoming.url, headers: { ...incoming.headers, host } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        let passed = 0;
        const streams = answer.headers['content-type']?.startsWith('text/event-stream');
        answer.on('data', (chunk: Buffer) => {
          passed += chunk.length;
          const broken = streams && breakAfter !== undefined && passed > breakAfter;
          outgoing.write(chunk, () => {
            if (broken) setTimeout(() => incoming.socket.destroy(), 5);
          });
        });
        answer.on('end', () => outgoing.end());
        answer.on('error', () => incoming.socket.destroy());
      },
    );
    onward.on('error', () => incoming.socket.destroy());
    outgoing.once('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(async () => {
    cut();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    to(url) {
      at = url;
    },
    cut,
    breakStreamsAfter(bytes) {
      breakAfter = bytes;
    },
    answerWith(answer) {
      instead = answer;
    },
  };
}
