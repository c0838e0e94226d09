/** Single attempts against the built process that fit no other page: encodings, framings, places for a credential, names of members,
 * and a link that is used many times at once. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MCP_META, mcpHeaders, PROTOCOL_VERSION, type Serving, serving } from '../support/process/served.ts';
import { rawHttp } from '../support/wire/raw-http.ts';

const CONFIG = 'default_agent: recorder\n';
const call = (text: string) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text }, _meta: MCP_META },
});
const message = {
  jsonrpc: '2.0',
  id: 1,
  method: 'SendMessage',
  params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] } },
};

async function unharmed(gateway: Serving): Promise<void> {
  expect(gateway.input()).toEqual([]);
  expect(gateway.contacts()).toEqual([]);
  expect((await gateway.call('echo', { text: 'still here' })).text).toContain('still here');
  expect(await gateway.violations()).toEqual([]);
}

/** A body of bytes, at each door that takes JSON. */
async function everywhere(gateway: Serving, encode: (text: string) => Buffer, more: Record<string, string> = {}) {
  const post = async (path: string, body: object, headers: Record<string, string>) => {
    const answer = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.token}`,
        'harn-agents-protocol-version': PROTOCOL_VERSION,
        'content-type': 'application/json',
        ...headers,
        ...more,
      },
      body: new Uint8Array(encode(JSON.stringify(body))),
    });
    const text = await answer.text();
    return answer.status >= 400 || text.includes('"error"');
  };
  const event = {
    event_type: 'pre_action',
    session_id: 's',
    agent_id: 'a',
    timestamp: '2026-05-01T00:00:00Z',
    depth: 0,
  };
  const params = { ...event, payload: { tool: 'echo', arguments: {} } };
  return {
    mcp: await post('/mcp/box', call('x'), mcpHeaders('tools/call', 'echo')),
    a2a: await post('/a2a/recorder', message, { 'a2a-version': '1.0' }),
    ahp: await post('/ahp', { jsonrpc: '2.0', id: 1, method: 'ahp/event', params }, {}),
    runs: await post(
      '/v1/runs',
      { input: { user_query: 'go' }, metadata: {} },
      { authorization: `Bearer local:${gateway.token}`, 'idempotency-key': 'attempt-1' },
    ),
    harn: await post('/v1/sessions', { workspace_id: 'w' }, {}),
  };
}
const REFUSED = { mcp: true, a2a: true, ahp: true, runs: true, harn: true };

describe('attempts', { timeout: 60_000 }, () => {
  const ENCODINGS: readonly (readonly [string, (text: string) => Buffer, Record<string, string>])[] = [
    ['UTF-16', (text) => Buffer.from(text, 'utf16le'), {}],
    [
      'UTF-16 that says so',
      (text) => Buffer.from(`\ufeff${text}`, 'utf16le'),
      { 'content-type': 'application/json; charset=utf-16' },
    ],
    ['a mark in front', (text) => Buffer.from(`\ufeff${text}`), {}],
    ['packed', (text) => gzipSync(text), { 'content-encoding': 'gzip' }],
    [
      'overlong letters',
      (text) => Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xc0, 0xae, 0x7d])]),
      {},
    ],
    ['half a surrogate', (text) => Buffer.from(text.replace('{', '{"\\ud800":1,')), {}],
    ['a second value behind', (text) => Buffer.from(`${text}\n${text}`), {}],
    ['a comment', (text) => Buffer.from(`/* */${text}`), {}],
  ];
  test('texts in another encoding than UTF-8, packed, or with more than one value are refused at every door', async () => {
    const gateway = await serving({ config: CONFIG });
    for (const [what, encode, more] of ENCODINGS) {
      expect([what, await everywhere(gateway, encode, more)]).toEqual([what, REFUSED]);
    }
    await unharmed(gateway);
  });

  test('two lengths, a smuggled request and an absolute address of another host', async () => {
    const gateway = await serving({ config: CONFIG });
    const { host } = new URL(gateway.url);
    const head = `Host: ${host}\r\nAuthorization: Bearer ${gateway.token}\r\nContent-Type: application/json\r\n`;
    const body = JSON.stringify(call('smuggled'));
    const requests = [
      `POST /mcp/box HTTP/1.1\r\n${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${body}`,
      `POST /mcp/box HTTP/1.1\r\n${head}Content-Length: 2\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      `POST /mcp/box HTTP/1.1\r\n${head}Transfer-Encoding: xchunked\r\n\r\n${body}`,
      `POST /mcp/box HTTP/1.1\r\n${head}Content-Length: +5\r\n\r\n${body}`,
      `POST /mcp/box HTTP/1.1\n${head.replaceAll('\r', '')}Content-Length: ${body.length}\n\n${body}`,
      `POST http://evil.example/mcp/box HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer ${gateway.token}\r\nContent-Length: 2\r\n\r\n{}`,
    ];
    for (const request of requests) {
      const { status } = await rawHttp(gateway.url, request, { settleMs: 100 });
      expect([request.slice(0, 60), status >= 400 || status === 0]).toEqual([request.slice(0, 60), true]);
    }
    await unharmed(gateway);
  });

  test('a token anywhere but in its header is no token', async () => {
    const gateway = await serving({ config: CONFIG });
    const { token, url } = gateway;
    const version = { 'harn-agents-protocol-version': PROTOCOL_VERSION };
    const basic = Buffer.from(`local:${token}`).toString('base64');
    const tries: readonly [string, Record<string, string>][] = [
      [`/v1/tasks?access_token=${token}`, {}],
      [`/v1/tasks?token=${token}`, {}],
      ['/v1/tasks', { cookie: `token=${token}` }],
      ['/v1/tasks', { 'x-api-key': token }],
      ['/v1/tasks', { authorization: `Basic ${basic}` }],
      ['/v1/tasks', { authorization: token }],
      ['/v1/tasks', { authorization: `Bearer  ${token} x` }],
      ['/v1/tasks', { 'proxy-authorization': `Bearer ${token}` }],
      ['/v1/tasks', { 'x-forwarded-user': 'local', 'x-tollbridge-principal': 'local' }],
    ];
    for (const [path, headers] of tries) {
      const { status } = await fetch(`${url}${path}`, { headers: { ...version, ...headers } });
      expect([path, headers, status]).toEqual([path, headers, 401]);
    }
    await unharmed(gateway);
  });

  test('names of the language as tools', async () => {
    const gateway = await serving({ config: CONFIG });
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']) {
      expect((await gateway.call(name, { text: 'x' })).text).toMatch(/"error"|"isError":true/);
    }
    expect(gateway.contacts()).toEqual([]);
    await unharmed(gateway);
  });
});

/** Members as the bytes spell them: an object of ours could not hold two of one name. */
describe('members of a call', { timeout: 60_000 }, () => {
  const RULES = `
  - { id: echoes, when: { tool: echo }, then: allow }
  - { id: pays, when: { tool: pay }, then: allow }
  - { id: only-bo, when: { tool: pay }, unless: { arguments: { to: bo } }, then: block, say: only to him }
  - { id: big, when: { tool: pay, arguments: { amount: { above: 100 } } }, then: block, say: too much }
`;
  const frame = (args: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":${args},"_meta":${JSON.stringify(MCP_META)}}}`;
  const pay = (gateway: Serving, args: string) =>
    gateway.send('/mcp/box', { method: 'POST', headers: mcpHeaders('tools/call', 'pay'), body: frame(args) });

  const REFUSED_CALLS: readonly (readonly [string, string])[] = [
    ['blocked by its name', '{"to":"eve","amount":1}'],
    ['spelled with escapes', '{"\\u0074\\u006f":"\\u0065ve","amount":1}'],
    ['twice', '{"to":"bo","to":"eve","amount":1}'],
    ['twice, the other order', '{"to":"eve","to":"bo","amount":1}'],
    ['twice, one with escapes', '{"to":"bo","t\\u006f":"eve","amount":1}'],
    ['twice inside another', '{"to":"bo","amount":1,"more":{"a":1,"\\u0061":2}}'],
    ['twice as a name of the language', '{"to":"bo","amount":1,"__proto__":{},"__prot\\u006f__":{}}'],
    ['allowed, and a prototype', '{"to":"bo","amount":1,"__proto__":{"to":"eve","amount":1000}}'],
    ['allowed, and an escaped prototype', '{"to":"bo","amount":1,"\\u005f_proto__":{"to":"eve"}}'],
    ['only behind the prototype', '{"amount":1,"__proto__":{"to":"bo"}}'],
    ['only behind the constructor', '{"amount":1,"constructor":{"prototype":{"to":"bo"}}}'],
    ['of another letter case', '{"To":"bo","amount":1}'],
    ['of look-alike letters', '{"t\\u043e":"bo","amount":1}'],
    ['with an invisible letter', '{"to\\u200b":"bo","amount":1}'],
    ['a list', '{"to":["bo"],"amount":1}'],
    ['a number as text', '{"to":"bo","amount":"1"}'],
    ['a number beyond all', '{"to":"bo","amount":1e999}'],
    ['half a pair of letters', '{"to":"bo","amount":1,"note":"\\ud800"}'],
  ];
  test('of a spelling that could be read in two ways, or that no rule allows: nothing is paid', async () => {
    const gateway = await serving({ config: CONFIG, rules: RULES });
    for (const [what, args] of REFUSED_CALLS) {
      const { text } = await pay(gateway, args);
      expect([what, text]).toEqual([what, expect.stringMatching(/"error"|"isError":true/)]);
      expect([what, gateway.contacts()]).toEqual([what, []]);
    }
    await unharmed(gateway);
  });

  const ALLOWED_CALLS: readonly (readonly [string, string])[] = [
    ['a constructor', '{"to":"bo","amount":1,"constructor":{"prototype":{"to":"eve"}}}'],
    [
      'methods every object has',
      '{"to":"bo","amount":1,"toString":"eve","hasOwnProperty":"eve","valueOf":"eve","toJSON":"eve"}',
    ],
    ['a name with escapes', '{"t\\u006f":"bo","amount":1}'],
  ];
  test('with odd names beside what the rule allows: the server sees what was decided, whole and nothing else', async () => {
    const gateway = await serving({ config: CONFIG, rules: RULES });
    for (const [at, [what, args]] of ALLOWED_CALLS.entries()) {
      const { text } = await pay(gateway, args);
      expect([what, text]).toEqual([what, expect.stringContaining('done')]);
      const [tool, input] = [gateway.contacts().at(-1)?.tool, gateway.contacts().at(-1)?.arguments];
      expect([tool, JSON.stringify(input)]).toEqual(['pay', JSON.stringify(JSON.parse(args))]);
      // Nothing of it has stayed with the process.
      expect((await pay(gateway, '{"amount":1}')).text).toContain('only to him');
      expect(gateway.contacts()).toHaveLength(at + 1);
    }
    expect(await gateway.violations()).toEqual([]);
  });
});

/** A channel that keeps the links it is sent. */
async function channel(): Promise<{ readonly url: string; link(): Promise<string> }> {
  const links: string[] = [];
  const server = createServer(async (request, response) => {
    const { data } = (await json(request)) as { data: { decide_url?: string } };
    if (data.decide_url) links.push(data.decide_url);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async link() {
      await expect.poll(() => links.length, { timeout: 20_000 }).toBeGreaterThan(0);
      return links.shift() as string;
    },
  };
}

test('H36: a link that is looked at, prefetched or called with anything but its form decides nothing', async () => {
  const duty = await channel();
  const gateway = await serving({
    config: `approvals: { webhooks: { duty: { url: "${duty.url}", secret: duty, links: true } } }\n`,
    env: { TOLLBRIDGE_SECRET_duty: 'a key of the duty channel' },
  });
  const called = gateway.call('pay', { to: 'bo', amount: 1 });
  const link = await duty.link();
  const yes = 'decision=approve&approved=true';
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const looks: readonly [string, RequestInit][] = [
    ['', {}],
    ['', { method: 'HEAD' }],
    [`?${yes}`, {}],
    [`?${yes}`, { method: 'HEAD' }],
    [`?${yes}`, { headers: { purpose: 'prefetch', 'x-http-method-override': 'POST' } }],
    [`?${yes}`, { method: 'OPTIONS' }],
    ['', { method: 'PUT', body: yes, headers: form }],
    ['', { method: 'PATCH', body: yes, headers: form }],
    ['', { method: 'DELETE' }],
    [`?${yes}`, { method: 'POST' }],
    ['', { method: 'POST', body: yes, headers: { ...form, origin: 'https://evil.example' } }],
    ['', { method: 'POST', body: yes, headers: { ...form, origin: 'null' } }],
    ['', { method: 'POST', body: '{"decision":"approve"}', headers: { 'content-type': 'application/json' } }],
    ['', { method: 'POST', body: 'decision=deny&decision=approve', headers: { ...form, origin: gateway.url } }],
    ['', { method: 'POST', body: 'decision=approve&d%65cision=deny', headers: { ...form, origin: gateway.url } }],
    ['', { method: 'POST', body: 'decision=Approve', headers: { ...form, origin: gateway.url } }],
  ];
  for (const [query, init] of looks) {
    await (await fetch(`${link}${query}`, { ...init, redirect: 'manual' })).text();
    const closed = await gateway.events('vendor.tollbridge.ask_closed');
    expect([query, init, closed.map(({ payload }) => payload.state)]).toEqual([query, init, []]);
  }
  expect(gateway.contacts()).toEqual([]);
  const decided = await fetch(link, {
    method: 'POST',
    body: new URLSearchParams({ decision: 'deny' }),
    headers: { origin: gateway.url },
  });
  expect(decided.status).toBe(200);
  expect((await called).text).not.toContain('done');
  expect(gateway.contacts()).toEqual([]);
}, 60_000);

test('a link used many times at once: one answer counts, and the act runs once or not at all', async () => {
  const duty = await channel();
  const gateway = await serving({
    config: `approvals: { webhooks: { duty: { url: "${duty.url}", secret: duty, links: true } } }\n`,
    env: { TOLLBRIDGE_SECRET_duty: 'a key of the duty channel' },
  });
  let paid = 0;
  for (const decisions of [['approve'], ['deny'], ['approve', 'deny'], ['deny', 'approve']]) {
    const called = gateway.call('pay', { to: 'bo', amount: 1 });
    const link = await duty.link();
    const uses = Array.from({ length: 12 }, (_, at) => decisions[at % decisions.length] as string);
    const answers = await Promise.all(
      uses.map(async (decision) => {
        const body = new URLSearchParams({ decision });
        const answer = await fetch(link, { method: 'POST', body, headers: { origin: gateway.url } });
        return [decision, answer.status] as const;
      }),
    );
    const counted = answers.filter(([, status]) => status === 200);
    expect(counted).toHaveLength(1);
    expect(answers.filter(([, status]) => status === 409)).toHaveLength(uses.length - 1);
    if (counted[0]?.[0] === 'approve') paid += 1;
    expect((await called).text.includes('done')).toBe(counted[0]?.[0] === 'approve');
    expect(gateway.contacts()).toHaveLength(paid);
  }
  expect(await gateway.events('vendor.tollbridge.ask_closed')).toHaveLength(4);
  expect(await gateway.violations()).toEqual([]);
}, 90_000);
