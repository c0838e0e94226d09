import { EventEmitter, once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { openSse, type SseOptions, type SseStream, sseFrame } from '../../../src/transport/sse/write.ts';
import {
  CLOSE,
  createSocketServer,
  type SocketOptions,
  type TextSocket,
} from '../../../src/transport/websocket/websocket.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function sseServer(options: SseOptions, use: (stream: SseStream, response: ServerResponse) => void) {
  const server = createServer((_request, response) => use(openSse(response, options), response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test('a frame is id, event and one line of data, ended by two line feeds', () => {
  expect(sseFrame({ id: 'evt_1', event: 'task.started', data: '{"a":"x\\ny"}' })).toBe(
    'id: evt_1\nevent: task.started\ndata: {"a":"x\\ny"}\n\n',
  );
  expect(sseFrame({ data: '1' })).toBe('data: 1\n\n');
});

test('nothing comes before the first event; comments come after it', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  let stream: SseStream | undefined;
  const port = await sseServer({ keepAliveMs: 20 }, (opened) => {
    stream = opened;
  });
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  vi.advanceTimersByTime(80);
  stream!.write(sseFrame({ id: '1', event: 'a', data: '{}' }));
  let text = '';
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (stream!.signal.aborted) continue;
    if (text.includes('keep-alive')) stream!.close('data: last\n\n');
    else vi.advanceTimersByTime(20);
  }
  expect(text.startsWith('id: 1\nevent: a\ndata: {}\n\n: keep-alive\n\n')).toBe(true);
  expect(text.endsWith('data: last\n\n')).toBe(true);
  expect(text).not.toContain('\r');
});

test('a comment follows a frame after one interval of silence, however the interval began', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const response = Object.assign(new EventEmitter(), {
    writeHead() {},
    flushHeaders() {},
    write: (text: string) => written.push(text),
    writableLength: 0,
  });
  const stream = openSse(response as unknown as ServerResponse, { keepAliveMs: 15_000 });
  vi.advanceTimersByTime(10_000);
  stream.write('data: 1\n\n');
  vi.advanceTimersByTime(14_999);
  expect(written).toEqual(['data: 1\n\n']);
  vi.advanceTimersByTime(1);
  expect(written).toEqual(['data: 1\n\n', ': keep-alive\n\n']);
  vi.advanceTimersByTime(15_000);
  expect(written).toHaveLength(3);
});

test('a reader that does not read is cut off at the bound; its signal fires', async () => {
  let written = 0;
  let over: SseStream | undefined;
  const finished = new Promise<void>((resolve) => {
    sseServer({ bufferLimit: 64 * 1024, stallMs: 200 }, async (stream) => {
      const frame = sseFrame({ data: 'x'.repeat(8000) });
      for (;;) {
        const room = stream.write(frame) || (await stream.room());
        if (!room) break;
        written += frame.length;
      }
      over = stream;
      stream.close(sseFrame({ event: 'error', data: '{}' }));
      resolve();
    }).then((port) => {
      const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
      socket.pause();
      closers.push(() => socket.destroy());
    });
  });
  await finished;
  expect(over!.stalled).toBe(true);
  expect(over!.signal.aborted).toBe(true);
  // What the two kernels hold between them, and our bound; nothing grows with what there would be to send.
  expect(written).toBeLessThan(32 * 1024 * 1024);
});

test('a reader that goes away is noticed', async () => {
  let stream: SseStream | undefined;
  const port = await sseServer({}, (opened) => {
    stream = opened;
  });
  const stop = new AbortController();
  await fetch(`http://127.0.0.1:${port}/`, { signal: stop.signal });
  stop.abort();
  if (!stream!.signal.aborted) await once(stream!.signal, 'abort');
  expect(await stream!.room()).toBe(false);
  expect(stream!.write('data: 1\n\n')).toBe(false);
});

async function socketServer(options: SocketOptions, open: (socket: TextSocket) => { message(text: string): void }) {
  const sockets = createSocketServer(options);
  const server = createServer();
  server.on('upgrade', (request, socket, head) => sockets.accept(request, socket, head, open));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    sockets.close();
    server.closeAllConnections();
    server.close();
  });
  return { sockets, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const closed = async (peer: WebSocket) => {
  const [code, reason] = (await once(peer, 'close')) as [number, Buffer];
  return [code, String(reason)];
};

test('text goes both ways; the subprotocol is the one chosen, never one merely offered', async () => {
  const { url } = await socketServer({ choose: (choices) => (choices.has('good') ? 'good' : false) }, (socket) => ({
    message: (text) => void socket.send(`you said ${text}`),
  }));
  const peer = new WebSocket(url, ['good', 'secret.abc']);
  await once(peer, 'open');
  expect(peer.protocol).toBe('good');
  peer.send('hello');
  const [data] = await once(peer, 'message');
  expect(String(data)).toBe('you said hello');
  peer.close();
});

test('binary frames, frames too large, and silence each have their own end', async () => {
  const { url } = await socketServer({ frameLimit: 100, pingMs: 60, pongMs: 60 }, () => ({ message() {} }));
  const binary = new WebSocket(url);
  await once(binary, 'open');
  binary.send(Buffer.from('x'));
  expect(await closed(binary)).toEqual([CLOSE.unsupportedData, 'text frames only']);

  const large = new WebSocket(url);
  await once(large, 'open');
  large.send('x'.repeat(101));
  expect((await closed(large))[0]).toBe(1009);

  const silent = new WebSocket(url, { autoPong: false });
  await once(silent, 'open');
  expect(await closed(silent)).toEqual([4408, 'no answer to a ping']);

  const alive = new WebSocket(url);
  await once(alive, 'open');
  for (let pings = 0; pings < 3; pings += 1) await once(alive, 'ping');
  expect(alive.readyState).toBe(WebSocket.OPEN);
  alive.close();
});

test('a peer that does not read is noticed at the bound', async () => {
  const ended = new Promise<{ room: boolean }>((resolve) => {
    socketServer({ bufferLimit: 64 * 1024, stallMs: 200 }, (socket) => {
      (async () => {
        for (;;) {
          if (socket.send('x'.repeat(8000))) continue;
          if (await socket.room()) continue;
          socket.close(CLOSE.overloaded, 'too slow');
          resolve({ room: false });
          return;
        }
      })();
      return { message() {} };
    }).then(({ url }) => {
      const peer = new WebSocket(url);
      peer.on('error', () => {});
      peer.once('open', () => peer.pause());
      closers.push(() => peer.terminate());
    });
  });
  expect(await ended).toEqual({ room: false });
});

test('closing tells every peer to come back later', async () => {
  const { sockets, url } = await socketServer({}, () => ({ message() {} }));
  const peer = new WebSocket(url);
  await once(peer, 'open');
  const end = closed(peer);
  sockets.close();
  expect(await end).toEqual([1012, 'the gateway is shutting down']);
});
