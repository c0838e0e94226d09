/** A server that cannot be spoken with is reported in words, whatever the connection calls it. */

import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { openHttp } from '../../../../adapters/mcp/client/transport/http.ts';
import { asFault } from '../../../../src/model/faults.ts';
import { keepConnections } from '../../../../src/transport/outbound/kept-connections.ts';

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) server.close();
});

async function reported(
  received: (socket: Socket) => void,
  { gone = false, signal = new AbortController().signal } = {},
): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => received(socket));
  });
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  if (gone) await new Promise((resolve) => server.close(resolve));
  const remote = { url, limit: 1000, connections: keepConnections(url.origin, 1000), headers: () => ({}) };
  const wire = openHttp(remote, { revision: undefined }, () => {});
  try {
    await wire.request('1', 'tools/list', {}, { signal, received() {} });
    return 'fine';
  } catch (thrown) {
    const { kind, message } = asFault(thrown);
    return `${kind}: ${message}`;
  } finally {
    await wire.close();
  }
}

test('one that is not there', async () => {
  expect(await reported(() => {}, { gone: true })).toBe(
    'upstream_unavailable: the server cannot be reached (ECONNREFUSED)',
  );
});

test('one that hangs up, before and in the middle of its answer', async () => {
  const broken = 'upstream_unavailable: the server broke off the connection';
  expect(await reported((socket) => socket.end())).toBe(broken);
  const half = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{';
  expect(await reported((socket) => socket.end(half))).toBe(broken);
});

test('one that speaks something else', async () => {
  expect(await reported((socket) => socket.end('SSH-2.0-OpenSSH\r\n'))).toBe(
    'upstream_unavailable: the server does not answer in HTTP',
  );
});

test('one that says more than anyone wants to hear', async () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n';
  expect(await reported((socket) => socket.end(`${head}${'x'.repeat(5000)}`))).toBe(
    'upstream_unavailable: the server answered with more than 1000 bytes',
  );
});

test('one whose caller gave up', async () => {
  const stop = new AbortController();
  expect(await reported(() => stop.abort(), { signal: stop.signal })).toBe('client_closed: the request was given up');
});

test('frames on lines of one body are frames, as they arrive', async () => {
  const frames = [
    { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'first' } },
    { jsonrpc: '2.0', id: '1', result: { ok: true } },
  ];
  const lines = frames.map((frame) => `${JSON.stringify(frame)}\n`);
  const server = createHttpServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(lines[0]);
    // The answer to a long request comes when the first frame has been seen.
    if (request.headers['mcp-method'] === 'subscriptions/listen') seen.then(() => response.end(lines[1]));
    else response.end(lines[1]);
  });
  let noted = () => {};
  const seen = new Promise<void>((resolve) => {
    noted = resolve;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const remote = { url, limit: 1000, connections: keepConnections(url.origin, 1000), headers: () => ({}) };
  const wire = openHttp(remote, { revision: undefined }, () => {});
  const ask = async (method: string) => {
    const received: unknown[] = [];
    const params = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };
    const outcome = await wire.request('1', method, params, {
      signal: new AbortController().signal,
      received(frame) {
        received.push(frame);
        noted();
      },
    });
    return [...received, outcome];
  };
  const expected = [frames[0], { result: { ok: true } }];
  expect(await ask('subscriptions/listen')).toEqual(expected);
  expect(await ask('tools/call')).toEqual(expected);
  await wire.close();
});
