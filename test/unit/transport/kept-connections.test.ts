/** Requests over kept connections: used again, within bounds, given up when asked to, and closed with their last user. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { keepConnections, TooMuch } from '../../../src/transport/outbound/kept-connections.ts';
import { eventually } from '../../support/eventually.ts';

const NEVER = new AbortController().signal;
const GET = { method: 'GET', path: '/', headers: {} } as const;
let server: Server | undefined;
let sockets: Set<Socket>;

async function remote(handler: (request: IncomingMessage, response: ServerResponse) => void, limit = 1024) {
  const all = new Set<Socket>();
  sockets = all;
  const made = createServer({ keepAliveTimeout: 60_000 }, handler).on('connection', (socket) => {
    all.add(socket);
    socket.once('close', () => all.delete(socket));
  });
  server = made;
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
  return keepConnections(`http://127.0.0.1:${(made.address() as AddressInfo).port}`, limit);
}

/** Resolves when the client has read the response under way to its end, and its connection is free again. */
async function wholeResponse(): Promise<void> {
  await new Promise<void>((resolve) => {
    const read = () => {
      unsubscribe('undici:request:trailers', read);
      resolve();
    };
    subscribe('undici:request:trailers', read);
  });
  await nextTurn();
}

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

test('a text is read whole, with its status, type and headers, and the connection is used again', async () => {
  const seen: unknown[] = [];
  const line = await (
    await remote((request, response) => {
      seen.push(request.headersDistinct['x-mine']?.[0]);
      request.resume().once('end', () => {
        response.writeHead(201, { 'content-type': 'Application/JSON; charset=utf-8', 'x-theirs': 'two' });
        response.write('{"a":"ü');
        response.end('"}');
      });
    })
  ).open();
  for (let turn = 0; turn < 3; turn += 1) {
    const sent = { method: 'POST', path: '/', headers: { 'x-mine': 'one' }, body: '{}' } as const;
    const { status, type, text, header, stream } = await line.send(sent, NEVER);
    expect([status, type, text, header('x-theirs'), stream]).toEqual([
      201,
      'application/json',
      '{"a":"ü"}',
      'two',
      undefined,
    ]);
  }
  expect(seen).toEqual(['one', 'one', 'one']);
  // One may not be free again at once; a third is never needed.
  expect(sockets.size).toBeLessThan(3);
  line.cut();
});

test('more than the limit is refused while it comes', async () => {
  const line = await (await remote((_, response) => void response.end('x'.repeat(200_000)), 100_000)).open();
  await expect(line.send(GET, NEVER)).rejects.toBeInstanceOf(TooMuch);
  line.cut();
});

test('a redirect is not followed', async () => {
  const line = await (await remote((_, response) => void response.writeHead(302, { location: '/else' }).end())).open();
  expect((await line.send(GET, NEVER)).status).toBe(302);
  line.cut();
});

test('a stream comes as it is sent; a reader that leaves leaves the connection to the next one', async () => {
  /** Sends the rest of the answer under way; resolves when all of it is sent. */
  let finish: () => Promise<unknown> = async () => {};
  const line = await (
    await remote((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
      finish = () => new Promise<void>((sent) => response.end('data: 2\n\n', sent));
    })
  ).open();
  for (let turn = 0; turn < 2; turn += 1) {
    const { stream } = await line.send(GET, NEVER);
    for await (const chunk of stream!) {
      expect(Buffer.from(chunk).toString()).toBe('data: 1\n\n');
      break;
    }
    const read = wholeResponse();
    await finish();
    await read;
  }
  const { stream } = await line.send(GET, NEVER);
  const parts: string[] = [];
  for await (const chunk of stream!) {
    if (parts.length === 0) void finish();
    parts.push(Buffer.from(chunk).toString());
  }
  expect(parts.join('')).toBe('data: 1\n\ndata: 2\n\n');
  expect(sockets.size).toBe(1);
  line.cut();
});

test('a stream that goes on after its reader left is let go', async () => {
  let ended = false;
  const line = await (
    await remote((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const more = setInterval(() => response.write('data: 1\n\n'), 50);
      response.once('close', () => {
        ended = true;
        clearInterval(more);
      });
    })
  ).open();
  const { stream } = await line.send(GET, NEVER);
  for await (const _ of stream!) break;
  expect(ended).toBe(false);
  await expect.poll(() => ended, { timeout: 5_000 }).toBe(true);
  line.cut();
});

test('a reader that does not read keeps the remote waiting', async () => {
  let written = 0;
  const line = await (
    await remote((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = Buffer.alloc(64 * 1024, 'x');
      const fill = () => {
        let room = true;
        while (room && written < 200 * 1024 * 1024) {
          room = response.write(chunk);
          written += chunk.length;
        }
        response.once('drain', fill);
      };
      fill();
    })
  ).open();
  const { stream } = await line.send(GET, NEVER);
  // Nothing tells that a remote is waiting but that it writes nothing for a while.
  const waits = async () => {
    const before = written;
    await pause(200);
    return before > 0 && written === before;
  };
  await eventually(waits, 'a remote that writes no more');
  expect(written).toBeLessThan(100 * 1024 * 1024);
  stream!.cancel();
  line.cut();
});

test('a caller that gives up gets its reason at once, before and after there is a connection; other requests go on', async () => {
  const waiting: ServerResponse[] = [];
  const connections = await remote((_, response) => void waiting.push(response));
  const line = await connections.open();
  const stop = new AbortController();
  const reason = new Error('enough');
  const early = line.send(GET, stop.signal);
  stop.abort(reason);
  await expect(early).rejects.toBe(reason);
  await expect(line.send(GET, stop.signal)).rejects.toBe(reason);

  const [first, second] = [new AbortController(), new AbortController()];
  const one = line.send(GET, first.signal);
  const other = line.send(GET, second.signal);
  await expect.poll(() => waiting.length).toBeGreaterThanOrEqual(2);
  first.abort(reason);
  await expect(one).rejects.toBe(reason);
  for (const response of waiting) response.end('still here');
  expect((await other).text).toBe('still here');
  line.cut();
});

test('cutting one line leaves the other; connections go with the last', async () => {
  const waiting: ServerResponse[] = [];
  const connections = await remote((_, response) => void waiting.push(response));
  const [one, other] = [await connections.open(), await connections.open()];
  const cut = one.send(GET, NEVER);
  const kept = other.send(GET, NEVER);
  await expect.poll(() => waiting.length).toBe(2);
  one.cut();
  await expect(cut).rejects.toThrow('cut');
  await expect(one.send(GET, NEVER)).rejects.toThrow('cut');
  for (const response of waiting) response.end('kept');
  expect((await kept).text).toBe('kept');
  other.cut();
  await expect.poll(() => sockets.size).toBe(0);
  // A later caller opens new ones.
  const later = await connections.open();
  const asked = later.send(GET, NEVER);
  await expect.poll(() => waiting.length).toBe(3);
  waiting[2]!.end('new');
  expect((await asked).text).toBe('new');
  later.cut();
});
