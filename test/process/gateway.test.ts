/** The whole program, as it is started: who is let in where, and what the configuration opens. */
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openApiKeys } from '../../src/auth/api-keys.ts';
import { createKey } from '../../src/cli/commands/keys/keys.ts';
import { systemClock } from '../../src/core/clock.ts';
import { type Gateway, startGateway } from '../../src/runtime/gateway.ts';
import { text } from '../support/harn/gateway.ts';
import { PROGRAM } from '../support/process/cli.ts';
import { configIn } from '../support/process/config-in.ts';
import { openSocket } from '../support/wire/socket-client.ts';

const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

async function location(yaml = '') {
  const dir = await mkdtemp(join(tmpdir(), 'tb-gateway-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, 'tollbridge.yaml'), yaml);
  return dir;
}

async function start(dir: string, more: { host?: string } = {}): Promise<Gateway> {
  const config = await configIn(dir, { data: join(dir, 'data'), port: 0, ...more });
  const gateway = await startGateway(config);
  onTestFinished(() => gateway.close());
  return gateway;
}

function get(gateway: Gateway, token: string | undefined, path = '/v1/tasks', host = '127.0.0.1') {
  const url = new URL(path, gateway.url.replace('0.0.0.0', host));
  return fetch(url, { headers: { ...VERSION, ...(token && { authorization: `Bearer ${token}` }) } });
}

const wanted = { name: 'bot', actor: { id: 'bot', kind: 'service' as const, scopes: ['tasks:read'] } };

test('on loopback the printed token is everything, and nothing else is anything', async () => {
  const gateway = await start(await location());
  expect((await get(gateway, gateway.token)).status).toBe(200);
  expect((await get(gateway, undefined)).status).toBe(401);
  expect((await get(gateway, 'guess')).status).toBe(401);
});

test('it does not listen where unauthenticated callers are while it cannot tell who they are, and says what to do', async () => {
  const dir = await location();
  await expect(start(dir, { host: '0.0.0.0' })).rejects.toThrow(
    '0.0.0.0 can be reached by others and there is no way to tell who they are: make a key with "tollbridge keys create NAME --scope ...", or configure auth.oauth, or listen on 127.0.0.1',
  );
  const keys = openApiKeys(join(dir, 'data'), systemClock);
  const { record } = await keys.create(wanted);
  await keys.revoke(record.id);
  await expect(start(dir, { host: '0.0.0.0' })).rejects.toThrow('can be reached by others');
});

test('elsewhere there is no printed token; keys are what counts', async () => {
  const dir = await location();
  const { key } = await openApiKeys(join(dir, 'data'), systemClock).create(wanted);
  const gateway = await start(dir, { host: '0.0.0.0' });
  expect(gateway.token).toBeUndefined();
  expect((await get(gateway, key)).status).toBe(200);
  expect((await get(gateway, key, '/v1/sessions')).status).toBe(403);
  expect((await get(gateway, 'undefined')).status).toBe(401);
});

test('an authorization server is enough to listen elsewhere', async () => {
  const dir = await location('auth: { oauth: { issuer: x, audience: y, jwks_uri: "http://127.0.0.1:9/keys" } }');
  const gateway = await start(dir, { host: '0.0.0.0' });
  expect(gateway.token).toBeUndefined();
  expect((await get(gateway, 'nonsense')).status).toBe(401);
});

test('names and origins beyond our own are those that were configured', async () => {
  const gateway = await start(await location('listen: { allowed_origins: ["https://console.example"] }'));
  const from = (origin: string) => fetch(new URL('/v1', gateway.url), { headers: { origin } });
  expect((await from('https://console.example')).headers.get('access-control-allow-origin')).toBe(
    'https://console.example',
  );
  expect((await from('https://evil.example')).status).toBe(403);
});

test('a door can be left shut', async () => {
  const gateway = await start(await location('doors: { harn: false }'));
  expect((await get(gateway, gateway.token)).status).toBe(404);
});

test('files of workspaces are served where the configuration names a directory, and nowhere else', async () => {
  const dir = await location();
  const home = join(dir, 'home');
  await mkdir(home);
  await writeFile(join(home, 'note.txt'), 'hello');
  const read = async (gateway: Gateway) => {
    const headers = { ...VERSION, authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' };
    const made = await fetch(new URL('/v1/workspaces', gateway.url), {
      method: 'POST',
      headers,
      body: JSON.stringify({ name: 'home', root: home }),
    });
    const { id } = (await made.json()) as { id: string };
    return await get(gateway, gateway.token, `/v1/workspaces/${id}/files?path=note.txt`);
  };
  const closed = await start(dir);
  expect((await read(closed)).status).toBe(501);
  await closed.close();
  await writeFile(join(dir, 'tollbridge.yaml'), `doors: { harn: { files: [${JSON.stringify(home)}] } }`);
  const open = await read(await start(dir));
  expect(open.status).toBe(200);
  expect(await open.text()).toContain('hello');
});

test('a client of the socket runs the tool it offered for a task of its session', async () => {
  const rules = 'rules: [{ id: clipboard, when: { server: host, tool: clipboard }, then: allow }]';
  const gateway = await start(await location(rules));
  const headers = { ...VERSION, authorization: `Bearer ${gateway.token}` };
  const [workspace] = (
    (await (await get(gateway, gateway.token, '/v1/workspaces')).json()) as { data: { id: string }[] }
  ).data;
  const made = await fetch(new URL('/v1/sessions', gateway.url), {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ workspace_id: workspace?.id }),
  });
  const { id } = (await made.json()) as { id: string };
  const socket = await openSocket(`${gateway.url}/v1/sessions/${id}/events/stream`, { headers });
  await socket.command({ type: 'tools.offer', tools: [{ name: 'clipboard', description: 'copies a text' }] });
  await socket.command({ type: 'task.submit', session_id: id, input: text('use clipboard some words') });
  const { request_id, payload } = await socket.next(({ type }) => type === 'request');
  expect(payload).toMatchObject({ tool: 'clipboard', arguments: { text: 'some words' } });
  await socket.command({ type: 'response', request_id, answer: 'copied' });
  const { event } = await socket.next(({ type, event }) => type === 'event' && event.event === 'tool.completed');
  expect(event.payload).toMatchObject({ name: 'clipboard', status: 'ok', output: 'copied' });
});

function run(dir: string, args: readonly string[], input = '') {
  const all = [PROGRAM, '--data', join(dir, 'data'), '--config', join(dir, 'tollbridge.yaml'), ...args];
  const child = spawn(process.execPath, all, { stdio: 'pipe' });
  child.stdin.end(input);
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  return new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, out, err }));
  });
}

test('a key made at the command line is shown once, listed without itself, works, and is revoked', async () => {
  const dir = await location();
  await expect(createKey('ci', { data: join(dir, 'data') })).rejects.toThrow('say what the key is for');
  await expect(createKey('ci', { data: join(dir, 'data'), scope: ['all'] })).rejects.toThrow('all is not a scope');
  await expect(createKey('ci', { data: join(dir, 'data'), scope: ['*'], expires: '2020-01-01' })).rejects.toThrow(
    '2020-01-01 is no time to come',
  );
  const made = await run(dir, [
    'keys',
    'create',
    'ci',
    '--json',
    '--actor',
    'ci-bot',
    '--tenant',
    'acme',
    '--workspace',
    'workspace_1',
    '--expires',
    '30d',
    '--scope',
    'tasks:read',
    'tasks:write',
  ]);
  const { key, id, hash, ...record } = JSON.parse(made.out);
  expect(hash).toBeUndefined();
  expect(record).toMatchObject({
    name: 'ci',
    state: 'active',
    actor: {
      id: 'ci-bot',
      kind: 'service',
      tenant_id: 'acme',
      workspaces: ['workspace_1'],
      scopes: ['tasks:read', 'tasks:write'],
    },
  });
  const listed = await run(dir, ['keys', 'list']);
  expect(listed.out).toContain(id);
  expect(listed.out).not.toContain(key.slice(-43));
  const gateway = await start(dir);
  expect((await get(gateway, key)).status).toBe(200);
  expect((await run(dir, ['keys', 'revoke', id])).out).toBe(`Revoked: ${id} (ci)\n`);
  expect((await get(gateway, key)).status).toBe(401);
}, 60_000);

test('a secret given at the command line opens a connector, and is found in no answer and no file', async () => {
  const dir = await location();
  const value = 'whsec-correct-horse-battery';
  expect((await run(dir, ['vault', 'set', 'hook'], `${value}\n`)).out).toBe('Kept: local:hook\n');
  const listed = await run(dir, ['vault', 'list', '--json']);
  expect(JSON.parse(listed.out.split('\n')[0]!)).toMatchObject({ vault: 'local', name: 'hook', provider: 'file' });
  expect(listed.out).not.toContain(value);

  const gateway = await start(dir);
  const headers = { ...VERSION, authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' };
  const connector = await fetch(new URL('/v1/connectors', gateway.url), {
    method: 'POST',
    headers,
    body: JSON.stringify({
      provider: 'forge',
      workspace_id: 'workspace_default',
      event_kinds: ['ping'],
      auth: { scheme: 'hmac-sha256', secret_name: 'local:hook' },
      webhook: { deliveries: true },
    }),
  });
  const { id } = (await connector.json()) as { id: string };
  const deliver = (secret: string, body: string) =>
    fetch(new URL(`/v1/connectors/${id}/deliveries`, gateway.url), {
      method: 'POST',
      headers: {
        ...VERSION,
        'content-type': 'application/json',
        'x-harn-delivery': 'd1',
        'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      },
      body,
    });
  const body = JSON.stringify({ type: 'ping', note: `it is ${value}` });
  expect((await deliver('guess-guess-guess', body)).status).toBe(401);
  const delivered = await deliver(value, body);
  expect(delivered.status).toBe(202);
  expect(await delivered.text()).not.toContain(value);
  await gateway.close();
  for (const file of ['log.db', 'log.db-wal', 'vaults/local.json']) {
    const bytes = await readFile(join(dir, 'data', file)).catch(() => Buffer.alloc(0));
    expect(bytes.includes(value)).toBe(false);
  }
  expect(await run(dir, ['vault', 'remove', 'other'])).toMatchObject({ code: 3, out: '' });
  expect((await run(dir, ['vault', 'remove', 'hook'])).out).toBe('Removed: local:hook\n');
}, 60_000);
