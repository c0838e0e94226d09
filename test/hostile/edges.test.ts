/** Requests to the built gateway from outside with wrong names, origins, tokens, sizes, streams and ids: none of them reaches a tool. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { mcpHeaders, PROTOCOL_VERSION, type Serving, serving } from '../support/process/served.ts';
import { rawHttp } from '../support/wire/raw-http.ts';

/** One address of every door, and of everything that tells about the gateway. */
const ROUTES = [
  '/v1/tasks',
  '/v1/permission-requests',
  '/v1/runs',
  '/v1/events/stream',
  '/mcp',
  '/mcp/box',
  '/mcp/box/sse',
  '/a2a/demo',
  '/ahp',
  '/acp',
  '/metrics',
  '/openapi.json',
  '/.well-known/agent-card.json',
];
const SOCKETS = ['/v1/sessions/session_1/socket', '/acp', '/ahp'];

/** Every refusal: nothing reached the tools, and a bystander is served as before. */
async function unharmed(gateway: Serving): Promise<void> {
  expect(gateway.contacts()).toEqual([]);
  const { text } = await gateway.call('echo', { text: 'still here' });
  expect(text).toContain('still here');
  expect(await gateway.violations()).toEqual([]);
}

function refusedUpgrade(url: string, headers: Record<string, string>): Promise<number> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers });
  return new Promise((resolve) => {
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
    socket.on('open', () => {
      socket.terminate();
      resolve(101);
    });
    socket.on('error', () => {});
  });
}

describe('H1, H2, H3: names and origins', () => {
  test('a foreign Host is refused at every address before it is read, over HTTP and upgrades', async () => {
    const gateway = await serving();
    for (const path of ROUTES) {
      const bytes = `POST ${path} HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer ${gateway.token}\r\nContent-Length: 5\r\n\r\n{nope`;
      const answer = await rawHttp(gateway.url, bytes, { settleMs: 50 });
      expect([path, answer.status]).toEqual([path, 403]);
    }
    for (const path of SOCKETS) {
      const headers = { host: 'evil.example', authorization: `Bearer ${gateway.token}` };
      expect([path, await refusedUpgrade(`${gateway.url}${path}`, headers)]).toEqual([path, 403]);
    }
    await unharmed(gateway);
  });

  test('a foreign, null or other port’s Origin is refused at every address, over HTTP and upgrades', async () => {
    const gateway = await serving();
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
      for (const path of ROUTES) {
        const { status } = await gateway.send(path, { headers: { origin } });
        expect([origin, path, status]).toEqual([origin, path, 403]);
      }
      for (const path of SOCKETS) {
        const headers = { origin, authorization: `Bearer ${gateway.token}` };
        expect([origin, path, await refusedUpgrade(`${gateway.url}${path}`, headers)]).toEqual([origin, path, 403]);
      }
    }
    await unharmed(gateway);
  });

  test('two Origin headers are refused', async () => {
    const gateway = await serving();
    const { host } = new URL(gateway.url);
    const bytes = `GET /v1/tasks HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${gateway.url}\r\nOrigin: https://evil.example\r\n\r\n`;
    expect((await rawHttp(gateway.url, bytes)).status).toBe(403);
    await unharmed(gateway);
  });
});

describe('H4, H6: who is there', () => {
  test('without a token nothing but public descriptions is answered', async () => {
    const gateway = await serving();
    const open = ['/openapi.json', '/.well-known/agent-card.json'];
    for (const path of ROUTES.filter((route) => !open.includes(route))) {
      for (const authorization of ['', 'Bearer ', 'Bearer nope', `Basic ${btoa('a:b')}`]) {
        const { status, text } = await gateway.send(path, { headers: { authorization } });
        expect([path, authorization, [401, 403, 404, 405].includes(status)]).toEqual([path, authorization, true]);
        expect(text).not.toContain(gateway.token);
        expect(text).not.toMatch(/at .*\.(js|ts):\d+/);
      }
    }
    await unharmed(gateway);
  });

  test('headers that name a tenant, a principal or a hop do not count', async () => {
    const gateway = await serving();
    const headers = {
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-user': 'system:gateway',
      'x-tenant-id': 'other',
      'tollbridge-actor': 'system:gateway',
    };
    const session = await gateway.send('/v1/sessions', {
      method: 'POST',
      headers,
      body: { workspace_id: 'workspace_default' },
    });
    expect(session.status).toBe(201);
    const [created] = await gateway.events('session.created');
    expect(created?.actor).not.toContain('system:');
    const forged = await gateway.send('/v1/tasks', { headers: { ...headers, authorization: 'Bearer nope' } });
    expect(forged.status).toBe(401);
  });
});

describe('H8, H9: sizes and characters', () => {
  const BODIES = [
    ['nested 20,000 deep', `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`],
    ['a million members', `{${Array.from({ length: 1_000_000 }, (_, at) => `"k${at}":1`).join(',')}}`],
    ['12 MiB', JSON.stringify({ a: 'x'.repeat(12 * 1024 * 1024) })],
    ['half a character', '{"\\ud800":1}'],
    ['not JSON', '{"a":'],
    ['a NUL after it', '{"a":"b"}\u0000'],
  ] as const;

  test('a body too deep, too wide, too long or unreadable is refused at every door that takes one', async () => {
    const gateway = await serving();
    for (const [what, body] of BODIES) {
      for (const path of ['/v1/sessions', '/v1/runs', '/mcp/box', '/a2a/demo', '/ahp']) {
        const answer = await gateway
          .send(path, { method: 'POST', headers: mcpHeaders('tools/call', 'echo'), body })
          .catch(() => ({ status: 413, text: '' }));
        expect([what, path, answer.status < 500]).toEqual([what, path, true]);
        expect([what, path, /"result"/.test(answer.text)]).toEqual([what, path, false]);
      }
    }
    await unharmed(gateway);
  });

  test('a chunked body without an end is cut off at its limit', async () => {
    const gateway = await serving();
    const { host, port } = new URL(gateway.url);
    const socket = connect(Number(port), '127.0.0.1');
    let received = '';
    socket.on('data', (data) => {
      received += String(data);
    });
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    socket.on('error', () => {});
    socket.write(
      `POST /v1/sessions HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${gateway.token}\r\nHarn-Agents-Protocol-Version: ${PROTOCOL_VERSION}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`;
    for (let sent = 0; sent < 256 && !socket.destroyed && !received; sent += 1) {
      await new Promise<void>((resolve) => socket.write(chunk, () => resolve()));
    }
    await expect.poll(() => received).toContain('413');
    socket.destroy();
    await closed;
    await unharmed(gateway);
  });
});

describe('H16, H18, H21, H22: ids, cursors, states, repeats', () => {
  test('an id that is guessed, foreign or gone answers like one that never was', async () => {
    const gateway = await serving();
    const paths = ['/v1/tasks/X', '/v1/sessions/X', '/v1/artifacts/X', '/v1/receipts/X', '/v1/permission-requests/X'];
    for (const path of paths) {
      const answers = [];
      for (const id of ['task_01JABCDEFGHJKMNPQRSTVWXYZ0', '..%2f..%2fadmin', '%00', '__proto__', 'constructor']) {
        const { status, json } = await gateway.send(path.replace('X', id));
        answers.push([status, (json.error as { code?: string } | undefined)?.code]);
      }
      expect([path, new Set(answers.map(([status]) => status))]).toEqual([path, new Set([404])]);
    }
    await unharmed(gateway);
  });

  test('a stream goes on from a cursor, and says when it cannot', async () => {
    const gateway = await serving();
    await gateway.call('echo', { text: 'one' });
    const [first, second] = await gateway.events();
    const resumed = await receivedFrom(gateway, first!.id);
    expect(resumed.text).toContain(second!.id);
    expect(resumed.text).not.toContain(`id: ${first!.id}\n`);
    for (const cursor of ['evt_9999999999999999', 'garbage', 'evt_-1', '__proto__']) {
      const answer = await receivedFrom(gateway, cursor);
      expect([cursor, answer.status]).toEqual([cursor, 200]);
      const [kind, data] = ['event', 'data'].map((name) => new RegExp(`^${name}: (.*)$`, 'm').exec(answer.text)?.[1]);
      expect([cursor, kind, JSON.parse(data ?? '{}').error?.code]).toEqual([cursor, 'error', 'cursor_expired']);
    }
  });

  test('H30: a cursor of several lines puts no event into the stream', async () => {
    const gateway = await serving();
    await gateway.call('echo', { text: 'one' });
    const forged = ['event: task.completed', 'data: {"forged":true}', '', ''];
    for (const end of ['\n', '\r', '\r\n']) {
      const cursor = encodeURIComponent(['evt_1', ...forged].join(end));
      const { status, text } = await receivedFrom(gateway, undefined, `?last_event_id=${cursor}`);
      expect(status).toBe(200);
      // What it says of the cursor is one line of JSON.
      const lines = text.split(/\r\n|\r|\n/).filter(Boolean);
      expect(lines).toEqual(['event: error', expect.stringContaining('"cursor_expired"')]);
    }
  });

  test('a task that has ended is not canceled, messaged or ended again', async () => {
    const gateway = await serving();
    const { json: session } = await gateway.send('/v1/sessions', {
      method: 'POST',
      body: { workspace_id: 'workspace_default' },
    });
    const { json: task } = await gateway.send('/v1/tasks', {
      method: 'POST',
      body: { session_id: session.id, input: { text: 'hello' } },
    });
    const path = `/v1/tasks/${String(task.id)}`;
    await expect.poll(async () => (await gateway.send(path)).json.status, { timeout: 10_000 }).toBe('COMPLETED');
    const canceled = await gateway.send(`${path}/cancel`, { method: 'POST', body: {} });
    expect([400, 409]).toContain(canceled.status);
    expect((await gateway.send(path)).json.status).toBe('COMPLETED');
  });

  test('one idempotency key, a hundred times at once: one resource; another body: 409', async () => {
    const gateway = await serving();
    const create = (workspace_id: string) =>
      gateway.send('/v1/sessions', {
        method: 'POST',
        headers: { 'idempotency-key': 'same' },
        body: { workspace_id, metadata: {} },
      });
    const made = await Promise.all(Array.from({ length: 100 }, () => create('workspace_default')));
    expect(new Set(made.map(({ json }) => json.id)).size).toBe(1);
    const other = await gateway.send('/v1/sessions', {
      method: 'POST',
      headers: { 'idempotency-key': 'same' },
      body: { workspace_id: 'workspace_default', metadata: { other: true } },
    });
    expect(other.status).toBe(409);
    expect(await gateway.events('session.created')).toHaveLength(1);
  });
});

/** What a stream of all events says first, from a cursor on. */
async function receivedFrom(gateway: Serving, cursor?: string, query = ''): Promise<{ status: number; text: string }> {
  const stop = new AbortController();
  const response = await fetch(`${gateway.url}/v1/events/stream${query}`, {
    headers: {
      authorization: `Bearer ${gateway.token}`,
      'harn-agents-protocol-version': PROTOCOL_VERSION,
      accept: 'text/event-stream',
      ...(cursor !== undefined && { 'last-event-id': cursor }),
    },
    signal: stop.signal,
  });
  let text = '';
  const reading = (async () => {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      if (text.includes('\n\n')) return;
    }
  })().catch(() => {});
  await Promise.race([reading, sleep(2_000)]);
  stop.abort();
  return { status: response.status, text };
}
