/** `serve --workers N`, as it is typed: one port, several processes, one of which may die; and nothing is left when it ends. */
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { exchange } from '../../support/mcp/wire-client.ts';
import { createDatabase, PASSWORD } from '../../support/postgres/server.ts';
import { aDirectory, program, ran } from '../../support/process/cli.ts';

/** The processes whose parent this is. */
function childrenOf(pid: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      return parent === pid ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

function alive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

test.each(['a file', 'PostgreSQL'])(
  'workers on %s share a port, a token and their sessions; one that is killed is replaced; a stop ends them all',
  {
    timeout: 120_000,
  },
  async (where) => {
    const dir = await aDirectory();
    const data = join(dir, 'data');
    const at = ['--data', data];
    if (where === 'PostgreSQL') {
      const database = await createDatabase();
      onTestFinished(database.drop);
      const file = join(dir, 'gateway.yaml');
      writeFileSync(file, JSON.stringify({ demo: true, store: { url: database.url, secret: 'store', keys: 'keys' } }));
      at.push('--config', file);
    }
    const { child, says, ended } = program([...at, 'serve', '--port', '0', '--workers', '2', '--json'], {
      cwd: dir,
      env: { TOLLBRIDGE_SECRET_store: PASSWORD, TOLLBRIDGE_SECRET_keys: 'k'.repeat(32) },
    });
    const [line] = await says(/^\{"object":"gateway".*\n/m);
    const { url, token, workers } = JSON.parse(line) as { url: string; token: string; workers: number };
    expect(workers).toBe(2);
    const pid = child.pid as number;
    const first = childrenOf(pid);
    expect(first).toHaveLength(2);

    const headers = { authorization: `Bearer ${token}` };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    const opened = await exchange(`${url}/mcp`, { headers, body });
    const session = { ...headers, 'mcp-session-id': opened.headers['mcp-session-id'] as string };
    const list = async () =>
      (await exchange(`${url}/mcp`, { headers: session, body: { jsonrpc: '2.0', id: 2, method: 'tools/list' } }))
        .status;
    // Each request is a connection of its own, and each connection is given to another worker.
    for (let time = 0; time < 4; time += 1) expect(await list()).toBe(200);

    process.kill(first[0] as number, 'SIGKILL');
    await says(/worker \d+ ended \(SIGKILL\); another one is started/);
    await eventually(
      () => childrenOf(pid).length === 2 && !childrenOf(pid).includes(first[0] as number),
      'another worker',
    );
    // Whichever of the two held the session, it goes on.
    for (let time = 0; time < 4; time += 1) expect(await list()).toBe(200);
    await eventually(() => readdirSync(join(data, 'replicas')).length === 2, 'two links', { timeoutMs: 60_000 });

    const last = childrenOf(pid);
    child.kill('SIGTERM');
    expect((await ended).code).toBe(0);
    await eventually(() => !last.some(alive), 'no worker to be left');
    expect(readdirSync(join(data, 'replicas'))).toEqual([]);
    await expect(fetch(url)).rejects.toThrow();
  },
);

test('workers stop when the process that started them is killed', { timeout: 120_000 }, async () => {
  const dir = await aDirectory();
  const { child, says } = program(['--data', join(dir, 'data'), 'serve', '--port', '0', '--workers', '2', '--json'], {
    cwd: dir,
  });
  await says(/^\{"object":"gateway".*\n/m);
  const workers = childrenOf(child.pid as number);
  expect(workers).toHaveLength(2);
  child.kill('SIGKILL');
  await eventually(() => !workers.some(alive), 'the workers to stop');
});

test('a configuration that no worker can start with ends the command with its error', {
  timeout: 120_000,
}, async () => {
  const dir = await aDirectory();
  const blocker = program(['--data', join(dir, 'one'), 'serve', '--port', '0', '--json'], { cwd: dir });
  const [line] = await blocker.says(/^\{"object":"gateway".*\n/m);
  const port = new URL((JSON.parse(line) as { url: string }).url).port;
  const { code, err } = await ran(['--data', join(dir, 'two'), 'serve', '--port', port, '--workers', '2'], '', {
    cwd: dir,
  });
  expect(code).not.toBe(0);
  expect(err).toContain(`port ${port} on 127.0.0.1 is taken by another program`);
  for (const workers of ['0', 'many', '1.5', '1000'])
    expect((await ran(['serve', '--workers', workers], '', { cwd: dir })).err).toContain(
      `${workers} is not a number of workers`,
    );
});

test('workers share the console: one sign-in, begun at any of them, holds at each and ends at all', {
  timeout: 120_000,
}, async () => {
  const dir = await aDirectory();
  const { child, says } = program(['--data', join(dir, 'data'), 'serve', '--port', '0', '--workers', '2', '--json'], {
    cwd: dir,
  });
  const [line] = await says(/^\{"object":"gateway".*\n/m);
  const { url, console: link } = JSON.parse(line) as { url: string; console: string };
  const made = await exchange(`${url}/console/session`, { body: { code: link.split('#')[1] } });
  expect(made.status).toBe(201);
  const proof = (made.frames[0] as { proof: string }).proof;
  const cookie = String(made.headers['set-cookie']).split(';', 1)[0] as string;
  const headers = {
    cookie,
    'x-tollbridge-console': proof,
    'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
  };
  // Each request is a connection of its own, and each connection is given to another worker.
  const each = async (path: string) => {
    const statuses = [];
    for (let time = 0; time < 4; time += 1) {
      statuses.push((await exchange(`${url}${path}`, { method: 'GET', headers })).status);
    }
    return [...new Set(statuses)];
  };
  for (const path of ['/console/session', '/console/api/catalog', '/console/api/rules', '/v1/tasks']) {
    expect([path, await each(path)]).toEqual([path, [200]]);
  }
  expect((await exchange(`${url}/console/session`, { body: { code: link.split('#')[1] } })).status).toBe(401);
  expect((await exchange(`${url}/console/session`, { method: 'DELETE', headers })).status).toBe(200);
  expect(await each('/v1/tasks')).toEqual([401]);
  child.kill('SIGTERM');
});

test('a key, a switched agent and a changed rule hold at every worker', { timeout: 120_000 }, async () => {
  const dir = await aDirectory();
  const at = ['--data', join(dir, 'data'), '--config', join(dir, 'gateway.yaml')];
  const write = (rules: string) => {
    writeFileSync(join(dir, 'gateway.new'), `demo: true\nrules: ${rules}\n`);
    renameSync(join(dir, 'gateway.new'), join(dir, 'gateway.yaml'));
  };
  write('[{ id: all, then: allow }]');
  const { says } = program([...at, 'serve', '--port', '0', '--workers', '2', '--json'], { cwd: dir });
  const [line] = await says(/^\{"object":"gateway".*\n/m);
  const { url } = JSON.parse(line) as { url: string };
  const made = await ran([...at, 'keys', 'create', 'ci', '--scope', '*', '--kind', 'person', '--json']);
  const { key, id } = JSON.parse(made.out) as { key: string; id: string };
  const headers = { authorization: `Bearer ${key}`, 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
  const ask = (path: string, body?: object) =>
    exchange(`${url}${path}`, { headers, ...(body ? { body } : { method: 'GET' }) });
  /** Each request is a connection of its own, and each connection is given to another worker. */
  const fourTimes = async <T>(work: () => Promise<T>) => {
    const found: T[] = [];
    for (let time = 0; time < 4; time += 1) found.push(await work());
    return found;
  };
  const statuses = () => fourTimes(async () => (await ask('/v1/tasks')).status);
  expect(await statuses()).toEqual([200, 200, 200, 200]);

  const workspace = (await ask('/v1/workspaces')).frames[0]!.data[0].id;
  const session = (await ask('/v1/sessions', { workspace_id: workspace })).frames[0]!.id;
  const input = (text: string) => ({ input: { role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] } });
  const submitted = async (text: string) => (await ask(`/v1/sessions/${session}/tasks`, input(text))).status;
  expect(await ran([...at, 'agents', 'off', 'demo', '--reason', 'a test'])).toMatchObject({ code: 0 });
  expect(new Set(await fourTimes(() => submitted('hello')))).not.toContain(202);
  expect(await ran([...at, 'agents', 'on', 'demo'])).toMatchObject({ code: 0 });
  expect(await submitted('hello')).toBe(202);

  write('[{ id: none, when: { effect: send }, then: block }]');
  await submitted('send the plan to ana');
  await submitted('send the plan to bo');
  await eventually(async () => {
    const { out } = await ran([...at, 'log', '--json']);
    return out.match(/"event":"tool.denied"/g)?.length === 2;
  }, 'two refusals');

  expect(await ran([...at, 'keys', 'revoke', id])).toMatchObject({ code: 0 });
  expect(await statuses()).toEqual([401, 401, 401, 401]);
});
