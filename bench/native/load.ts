/**
 * The other end of the wire, in a process of its own, the same for both contenders: sockets that follow streams to their
 * end, or ask and wait for the answer, over and over. Reads as little of what it gets as it can.
 */
import { connect, type Socket } from 'node:net';

export type Wanted =
  | {
      readonly do: 'follow';
      readonly port: number;
      readonly path: string;
      readonly headers: string;
      readonly sockets: number;
    }
  | {
      readonly do: 'post';
      readonly port: number;
      /** The next request goes to the next of them. */
      readonly paths: readonly string[];
      readonly callers: number;
      readonly headers: string;
      readonly body: string;
      readonly requests: number;
    };
export type Report =
  | { readonly said: 'ready' }
  /** Body bytes as they travelled, all sockets together. */
  | {
      readonly said: 'done';
      readonly bytes: number;
      readonly least: number;
      readonly ms: number;
      readonly bad: number;
    };

const send = (report: Report) => process.send?.(report);
let rounds = 0;

process.on('message', (wanted: Wanted) => {
  if (wanted.do === 'follow') follow(wanted);
  else post(wanted);
});

/** Ready once every socket has begun to receive; done when the last stream has ended. */
function follow({ port, path, headers, sockets }: Extract<Wanted, { do: 'follow' }>): void {
  let begun = 0;
  let open = sockets;
  let bytes = 0;
  let least = Number.POSITIVE_INFINITY;
  for (let count = 0; count < sockets; count += 1) {
    const socket = connect(port, '127.0.0.1');
    let mine = 0;
    let started = false;
    socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: close\r\n${headers}\r\n`);
    socket.on('data', (chunk) => {
      mine += chunk.length;
      if (started || !chunk.includes('id: ')) return;
      started = true;
      begun += 1;
      if (begun === sockets) send({ said: 'ready' });
    });
    socket.on('error', () => {});
    socket.once('close', () => {
      bytes += mine;
      least = Math.min(least, mine);
      open -= 1;
      if (open === 0) send({ said: 'done', bytes, least, ms: 0, bad: sockets - begun });
    });
  }
}

/** One connection per caller, one request at a time on each, until all requests are answered. */
function post({ port, paths, callers, headers, body, requests }: Extract<Wanted, { do: 'post' }>): void {
  const round = ++rounds;
  let sent = 0;
  let answered = 0;
  let bytes = 0;
  let bad = 0;
  let began = 0;
  let connected = 0;
  const all: Socket[] = [];
  const next = (socket: Socket) => {
    if (sent === requests) return;
    const path = paths[sent % paths.length];
    sent += 1;
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n` +
        `idempotency-key: ${process.pid}-${round}-${sent}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`,
    );
  };
  for (let caller = 0; caller < callers; caller += 1) {
    const socket = connect(port, '127.0.0.1');
    let held = '';
    all.push(socket);
    socket.setNoDelay(true);
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      held += chunk;
      const end = held.indexOf('\r\n\r\n');
      const length = end < 0 ? undefined : /content-length: (\d+)/i.exec(held)?.[1];
      if (length === undefined || held.length < end + 4 + Number(length)) return;
      bytes += held.length;
      if (!/^HTTP\/1.1 20\d/.test(held)) bad += 1;
      held = '';
      answered += 1;
      if (answered < requests) return next(socket);
      send({ said: 'done', bytes, least: 0, ms: performance.now() - began, bad });
      for (const each of all) each.destroy();
    });
    socket.on('error', () => {});
    socket.once('connect', () => {
      connected += 1;
      if (connected < callers) return;
      began = performance.now();
      for (const each of all) next(each);
    });
  }
}
