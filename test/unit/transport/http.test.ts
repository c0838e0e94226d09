import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { HttpHandler } from '../../../src/ports/index.ts';
import type { HttpHostOptions } from '../../../src/transport/http/host/options.ts';
import { isLoopback } from '../../../src/transport/http/origin.ts';
import { createHttpHost, type ListeningHost, requestIdOf } from '../../../src/transport/http/server.ts';
import { rawHttp } from '../../support/wire/raw-http.ts';

const open: ListeningHost[] = [];
afterEach(async () => {
  for (const host of open.splice(0)) await host.close();
});

interface Seen {
  readonly host: ListeningHost;
  readonly url: string;
  readonly port: number;
  /** Paths a door was shown. */
  readonly shown: string[];
  readonly errors: unknown[];
}

async function listen(options: Partial<HttpHostOptions> = {}): Promise<Seen> {
  let count = 0;
  const errors: unknown[] = [];
  const shown: string[] = [];
  const host = createHttpHost({
    requestId: () => `req_${++count}`,
    log: { info() {}, warn() {}, error: (fields) => errors.push(fields) },
    graceMs: 200,
    ...options,
  });
  host.claim('door', [
    {
      path: '/door/*',
      handler(request, response) {
        shown.push(request.url ?? '');
        if (request.url === '/door/throws') throw new Error('a secret detail');
        if (request.url === '/door/silent') return;
        if (request.url === '/door/stream') {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write('data: 1\n\n');
          return;
        }
        response.end(`hello from ${requestIdOf(request)}`);
      },
    },
    {
      path: '/door/socket',
      upgrade(_request, socket) {
        shown.push('upgrade');
        socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n');
      },
    },
  ]);
  const { url } = await host.listen();
  open.push(host);
  return { host, url, port: Number(new URL(url).port), shown, errors };
}

const get = (headers: readonly string[], path = '/door/x') => `GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`;
const upgrade = (headers: readonly string[]) =>
  get([...headers, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'], '/door/socket');

describe('names and origins', () => {
  test('loopback names with the right port are ours; anything else is refused before a door sees it', async () => {
    const { url, port, shown } = await listen();
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]) {
      expect((await rawHttp(url, get([`Host: ${host}`]))).status, host).toBe(200);
    }
    expect(shown).toHaveLength(4);
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost',
      'localhost:1',
      `127.0.0.1.evil.example:${port}`,
      `127.1:${port}`,
      `2130706433:${port}`,
      `0x7f.0.0.1:${port}`,
      `localhost.:${port}`,
      `user@localhost:${port}`,
      `localhost:${port}/x`,
      `localhost:${port} `.concat('x'),
      '',
    ]) {
      const answer = await rawHttp(url, get([`Host: ${host}`]));
      expect([400, 403], host).toContain(answer.status);
      expect((await rawHttp(url, upgrade([`Host: ${host}`]))).status, host).toBeGreaterThanOrEqual(400);
    }
    expect(shown).toHaveLength(4);
  });

  test('a foreign, null, repeated or unreadable Origin is refused over HTTP and over an upgrade', async () => {
    const { url, port, shown } = await listen();
    const host = `Host: localhost:${port}`;
    for (const origins of [
      ['https://evil.example'],
      ['null'],
      ['http://localhost:1'],
      [`https://localhost:${port}`],
      [`http://localhost:${port}.evil.example`],
      [`http://localhost:${port}/`],
      [''],
      [`http://localhost:${port}`, 'https://evil.example'],
      [`http://localhost:${port}`, `http://localhost:${port}`],
    ]) {
      const headers = [host, ...origins.map((origin) => `Origin: ${origin}`)];
      const answer = await rawHttp(url, get(headers));
      expect(answer.status, origins.join(' + ')).toBe(403);
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'permission_denied', type: 'permission_error' } });
      expect((await rawHttp(url, upgrade(headers))).status, origins.join(' + ')).toBe(403);
    }
    expect(shown).toEqual([]);
    for (const origin of [`http://localhost:${port}`, `http://127.0.0.1:${port}`, `http://[::1]:${port}`]) {
      expect((await rawHttp(url, get([host, `Origin: ${origin}`]))).status).toBe(200);
    }
    expect((await rawHttp(url, upgrade([host, `Origin: http://localhost:${port}`]))).status).toBe(101);
    expect((await rawHttp(url, upgrade([host]))).status).toBe(101);
  });

  test('names and origins can be added; a page of an added origin gets what a browser asks for', async () => {
    const { url } = await listen({
      allowedHosts: ['gateway.example'],
      allowedOrigins: ['https://console.example'],
    });
    expect((await rawHttp(url, get(['Host: gateway.example']))).status).toBe(200);
    expect(
      (await rawHttp(url, get(['Host: gateway.example:8443', 'Origin: https://gateway.example:8443']))).status,
    ).toBe(200);
    const plain = await rawHttp(url, get(['Host: gateway.example', 'Origin: https://console.example']));
    expect(plain.head).toContain('access-control-allow-origin: https://console.example');
    const preflight = await rawHttp(
      url,
      'OPTIONS /door/x HTTP/1.1\r\nHost: gateway.example\r\nOrigin: https://console.example\r\n' +
        'Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n\r\n',
    );
    expect(preflight.status).toBe(204);
    expect(preflight.head).toContain('access-control-allow-headers: authorization');
  });

  test('two Host headers are no name at all', async () => {
    const { url, port, shown } = await listen();
    const answer = await rawHttp(url, get([`Host: localhost:${port}`, 'Host: evil.example']));
    expect([400, 403]).toContain(answer.status);
    expect(shown).toEqual([]);
  });

  test('which interfaces only this machine can reach', () => {
    for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]'])
      expect(isLoopback(host), host).toBe(true);
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'example.com', '128.0.0.1', 'localhost.example']) {
      expect(isLoopback(host), host).toBe(false);
    }
  });

  test('another interface is not listened on unless the doors authenticate', async () => {
    const host = createHttpHost({ host: '0.0.0.0', requestId: () => 'req', log: { info() {}, warn() {}, error() {} } });
    await expect(host.listen()).rejects.toMatchObject({ kind: 'permission_denied' });
    await host.close();
    const { url } = await listen({ host: '0.0.0.0', authenticated: true });
    const port = new URL(url).port;
    const at = `http://127.0.0.1:${port}`;
    expect((await rawHttp(at, get([`Host: 127.0.0.1:${port}`]))).status).toBe(200);
    expect((await rawHttp(at, get([`Host: evil.example:${port}`]))).status).toBe(403);
  });
});

describe('bounds', () => {
  test('an announced body over the limit is refused without being read', async () => {
    const { url, port, shown } = await listen({ bodyLimit: 1000 });
    const answer = await rawHttp(
      url,
      `POST /door/x HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: 1001\r\n\r\n`,
    );
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'payload_too_large', request_id: 'req_1' } });
    expect(answer.head.toLowerCase()).toContain('connection: close');
    expect(shown).toEqual([]);
  });

  test('headers over the limit and bytes that are no HTTP get an answer and the end of the connection', async () => {
    const { url, port } = await listen({ headerLimit: 2048 });
    expect((await rawHttp(url, get([`Host: localhost:${port}`, `X: ${'x'.repeat(4000)}`]))).status).toBe(431);
    expect((await rawHttp(url, 'this is not http\r\n\r\n')).status).toBe(400);
    expect((await rawHttp(url, `GET http://evil.example/ HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`)).status).toBe(
      400,
    );
    expect((await rawHttp(url, `GET //evil.example/ HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`)).status).toBe(400);
    expect((await fetch(`${url}/door/x`)).status).toBe(200);
  });

  test('a peer that sends its headers a byte at a time is let go', async () => {
    const { url } = await listen({ headersTimeoutMs: 300, requestTimeoutMs: 600 });
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    const drip = setInterval(() => socket.write('G'), 50);
    await new Promise((resolve) => socket.once('close', resolve));
    clearInterval(drip);
    expect((await fetch(`${url}/door/x`)).status).toBe(200);
  });

  test('a peer that never finishes its body is let go', async () => {
    const { url, port } = await listen({ headersTimeoutMs: 300, requestTimeoutMs: 600 });
    const answer = await rawHttp(
      url,
      `POST /door/silent HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: 10\r\n\r\nabc`,
      { settleMs: 5000 },
    );
    expect([0, 408]).toContain(answer.status);
  });
});

describe('order', () => {
  test('every request has an id of ours, whatever the client calls it', async () => {
    const { url } = await listen();
    const answer = await fetch(`${url}/door/x`, { headers: { 'x-request-id': 'mine' } });
    expect(answer.headers.get('x-request-id')).toBe('req_1');
    expect(await answer.text()).toBe('hello from req_1');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('x-powered-by')).toBe(null);
  });

  test('a door that throws is an answer without detail, and a line in our log', async () => {
    const { url, errors } = await listen();
    const answer = await fetch(`${url}/door/throws`);
    expect(answer.status).toBe(500);
    const text = await answer.text();
    expect(JSON.parse(text)).toEqual({
      error: {
        code: 'internal_error',
        message: 'something went wrong inside the gateway',
        type: 'server_error',
        param: null,
        request_id: 'req_1',
        details: {},
      },
    });
    expect(errors).toHaveLength(1);
  });

  test('an offer of another protocol is ignored, and the request is answered with its body', async () => {
    const { host, url, port } = await listen();
    host.claim('echo', [
      {
        path: '/echo',
        handler(request, response) {
          let text = '';
          request.on('data', (chunk) => {
            text += chunk;
          });
          request.on('end', () => response.end(`${request.method} ${text} ${request.headers.upgrade ?? 'plain'}`));
        },
      },
    ]);
    // As Java's client sends its first request over plain HTTP.
    const offer = [
      `Host: localhost:${port}`,
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
    ].join('\r\n');
    const whole = await rawHttp(url, `POST /echo HTTP/1.1\r\n${offer}\r\nContent-Length: 5\r\n\r\nhello`);
    expect([whole.status, whole.body]).toEqual([200, 'POST hello plain']);
    const chunked = `POST /echo HTTP/1.1\r\n${offer}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n`;
    // Two requests on one connection, both with the offer.
    const both = await rawHttp(url, `${chunked}GET /echo HTTP/1.1\r\n${offer}\r\n\r\n`);
    expect(both.body).toContain('POST hello plain');
    expect(both.body).toContain('GET  plain');
    // It is a request like any other: names and origins are checked.
    expect((await rawHttp(url, `GET /echo HTTP/1.1\r\n${offer.replace('localhost', 'evil')}\r\n\r\n`)).status).toBe(
      403,
    );
  });

  test('clients are told the configured address, and never the one that stands for every interface', async () => {
    const there = await listen({ publicUrl: 'https://gateway.example/agents' });
    expect(there.host.url).toBe('https://gateway.example/agents');
    const everywhere = { host: '0.0.0.0', authenticated: true };
    const named = await listen({ ...everywhere, allowedHosts: ['gateway.example', 'other.example'] });
    expect([named.host.url, named.url]).toEqual([
      `http://gateway.example:${named.port}`,
      `http://0.0.0.0:${named.port}`,
    ]);
    const unnamed = await listen(everywhere);
    expect(unnamed.host.url).toBe(`http://127.0.0.1:${unnamed.port}`);
  });

  test('what no door has is absent', async () => {
    const { url, port } = await listen();
    expect((await fetch(`${url}/elsewhere`)).status).toBe(404);
    expect((await rawHttp(url, upgrade([`Host: localhost:${port}`]).replace('/door/socket', '/else'))).status).toBe(
      404,
    );
  });

  test('closing ends streams cleanly, lets idle connections go, and refuses what comes after', async () => {
    const { host, url, port } = await listen();
    const idle = connect(port, '127.0.0.1');
    await new Promise((resolve) => idle.once('connect', resolve));
    const streaming = await fetch(`${url}/door/stream`);
    const gone = new Promise((resolve) => idle.once('close', resolve));
    idle.on('error', () => {});
    idle.resume();
    await host.close();
    expect(await streaming.text()).toBe('data: 1\n\n');
    await gone;
    await expect(fetch(`${url}/door/x`)).rejects.toThrow();
  });

  test('a peer that resets its connection takes nothing with it', async () => {
    const { url, port } = await listen();
    for (let at = 0; at < 20; at += 1) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      await new Promise((resolve) => socket.once('connect', resolve));
      socket.write(at % 2 ? get([`Host: localhost:${port}`], '/door/stream') : upgrade([`Host: localhost:${port}`]));
      socket.resetAndDestroy();
    }
    expect((await fetch(`${url}/door/x`)).status).toBe(200);
  });
});

describe('routes', () => {
  const says =
    (text: string): HttpHandler =>
    (_request, response) =>
      void response.end(text);
  const asked = async (url: string, method = 'GET') => await fetch(url, { method });

  test('the narrower claim wins, whichever door opened first, and a door sees the path whole', async () => {
    const { host, url } = await listen();
    host.claim('wide', [{ path: '/v1/*', handler: (request, response) => void response.end(`wide ${request.url}`) }]);
    host.claim('narrow', [{ path: '/v1/runs/*', handler: says('narrow') }]);
    host.claim('console', [
      { path: '/', handler: says('page') },
      { path: '/assets/*', handler: says('file') },
    ]);
    const said = async (path: string) => await (await asked(`${url}${path}`)).text();
    expect(await said('/v1/runs')).toBe('narrow');
    expect(await said('/v1/runs/x')).toBe('narrow');
    expect(await said('/v1/runs?x')).toBe('narrow');
    expect(await said('/v1/runsx')).toBe('wide /v1/runsx');
    expect(await said('/v1/a?b=1')).toBe('wide /v1/a?b=1');
    expect(await said('/v1')).toBe('wide /v1');
    expect(await said('/')).toBe('page');
    expect(await said('/?x')).toBe('page');
    expect(await said('/assets/a.js')).toBe('file');
    for (const path of ['/V1/runs', '/v1x', '//', '/assetsx', '/index.html']) {
      expect([path, (await asked(`${url}${path}`)).status]).toEqual([path, path === '//' ? 400 : 404]);
    }
  });

  test('two doors that claim one path are reported when the second opens, and it claims nothing', async () => {
    const { host, url } = await listen();
    host.claim('acp', [{ path: '/acp', handler: says('acp') }]);
    for (const path of ['/acp', '/acp/*']) {
      const twice = [
        { path: '/free', handler: says('free') },
        { path, handler: says('mcp') },
      ];
      expect(() => host.claim('mcp', twice)).toThrow(
        /^\/acp is claimed by the doors acp and mcp: give one of them another/,
      );
    }
    expect((await asked(`${url}/free`)).status).toBe(404);
    expect(await (await asked(`${url}/acp`)).text()).toBe('acp');
  });

  test('no door can claim every path, or a pattern', () => {
    const host = createHttpHost({ requestId: () => 'req', log: { info() {}, warn() {}, error() {} } });
    for (const path of ['/*', '*', '', 'x', '/a/', '/a//b', '/a*', '/:name', '/(.*)', '/a?b', '/a/*/b']) {
      expect(() => host.claim('greedy', [{ path, handler: says('all') }]), path).toThrow(/the door greedy claims/);
    }
  });

  test('a path no door has gets one answer, in JSON, that names the doors', async () => {
    const { url } = await listen();
    const answer = await asked(`${url}/nothing<b>`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'application/json']);
    const { error } = (await answer.json()) as { error: unknown };
    expect(error).toMatchObject({
      code: 'resource_not_found',
      message: 'no door has this path; the doors here: door',
      details: { doors: [{ door: 'door', paths: ['/door/socket', '/door/*'] }] },
    });
    expect(JSON.stringify(error)).not.toContain('nothing');
  });

  test('a method that a route does not list gets 405, with those it does', async () => {
    const { host, url } = await listen();
    host.claim('post', [{ path: '/post', methods: ['POST', 'DELETE'], handler: says('posted') }]);
    expect(await (await asked(`${url}/post`, 'POST')).text()).toBe('posted');
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT']) {
      const answer = await asked(`${url}/post`, method);
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'POST, DELETE']);
      if (method === 'GET') expect(await answer.json()).toMatchObject({ error: { code: 'method_not_allowed' } });
    }
  });

  test('a shared path: one door before its owner, one where there is no owner', async () => {
    const { host, url } = await listen();
    host.claim(
      'last',
      ['/health/deps', '/health/live', '/alone'].map((path) => ({
        path,
        shared: 'last' as const,
        handler: says('last'),
      })),
    );
    host.claim('owner', [{ path: '/health/*', handler: says('owner') }]);
    host.claim('first', [
      {
        path: '/health/deps',
        shared: 'first',
        handler: (request, response, next) => (request.headers.authorization ? next() : void response.end('first')),
      },
    ]);
    const said = async (path: string, headers = {}) => await (await fetch(`${url}${path}`, { headers })).text();
    expect(await said('/health/deps')).toBe('first');
    expect(await said('/health/deps', { authorization: 'Bearer x' })).toBe('owner');
    expect(await said('/health/live')).toBe('owner');
    expect(await said('/alone')).toBe('last');
    expect(() => host.claim('another', [{ path: '/alone', shared: 'last', handler: says('x') }])).toThrow(
      /last and another/,
    );
  });

  test('a part that is opened before its predecessor is closed takes over its path, and no other door does', async () => {
    const { host, url } = await listen();
    const route = (text: string) => ({ path: '/back/*', handsOver: true as const, handler: says(text) });
    const giveBack = host.claim('tools', [route('old')]);
    const giveUp = host.claim('tools', [route('new')]);
    const body = async () => await (await asked(`${url}/back/x`)).text();
    expect(await body()).toBe('new');
    expect(() => host.claim('other', [route('other')])).toThrow(/claimed by the doors/);
    // One that could not open after all leaves the path to the one before.
    giveUp();
    expect(await body()).toBe('old');
    giveBack();
    expect((await asked(`${url}/back/x`)).status).toBe(404);
  });

  test('a path that is claimed while the port listens is served from then on, until it is given back', async () => {
    const { host, url } = await listen();
    expect((await asked(`${url}/late/x`)).status).toBe(404);
    const giveBack = host.claim('late', [{ path: '/late/*', handler: says('late'), listed: false }]);
    expect(await (await asked(`${url}/late/x`)).text()).toBe('late');
    expect(await (await asked(`${url}/nothing`)).text()).not.toContain('late');
    giveBack();
    expect((await asked(`${url}/late/x`)).status).toBe(404);
    host.claim('later', [{ path: '/late/*', handler: says('later') }]);
    expect(await (await asked(`${url}/late/x`)).text()).toBe('later');
  });
});

test('what every answer carries is there however the door writes its head', async () => {
  const { host, url } = await listen();
  const handler: HttpHandler = (request, response) => {
    if (request.url === '/heads/list') response.writeHead(200, ['content-type', 'text/plain', 'x-a', '1']).end();
    else if (request.url === '/heads/reason') response.writeHead(200, 'Fine', { 'x-a': '1' }).end();
    else if (request.url === '/heads/set') response.setHeader('x-a', '1').writeHead(200, { 'x-b': '2' }).end();
    else response.setHeader('x-a', '1').end('implicit');
  };
  host.claim('heads', [{ path: '/heads/*', handler }]);
  for (const way of ['list', 'reason', 'set', 'implicit']) {
    const answer = await fetch(`${url}/heads/${way}`);
    expect(answer.headers.get('x-a')).toBe('1');
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    if (way === 'reason') expect(answer.statusText).toBe('Fine');
    if (way === 'set') expect(answer.headers.get('x-b')).toBe('2');
  }
});
