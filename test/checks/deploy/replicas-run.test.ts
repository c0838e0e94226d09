/**
 * The files for several gateways, run as a container of theirs would run them, on a real database and on the loopback interface: what one
 * of them is told holds at the other, a request is handed on over TCP, and the probe of the image says what is ready.
 */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { exchange } from '../../support/mcp/wire-client.ts';
import { createDatabase, PASSWORD } from '../../support/postgres/server.ts';
import { aDirectory, program, ran } from '../../support/process/cli.ts';
import { DEPLOY, textOf } from './files.ts';

const HOST = { host: 'gateway.example' };

/** The exit code of the program that the image is probed with. */
function probed(url: string): Promise<number | null> {
  const child = spawn(process.execPath, [join(DEPLOY, 'ready.mjs'), `${url}/readyz`]);
  return new Promise((resolve) => child.once('exit', resolve));
}

test('two gateways run with the files of the page', { timeout: 120_000 }, async () => {
  const database = await createDatabase();
  onTestFinished(database.drop);
  // As the page has it: a role that owns its database, and nothing more.
  const role = await database.query("SELECT 1 FROM pg_roles WHERE rolname = 'tollbridge'");
  if (role.length === 0) await database.query(`CREATE ROLE tollbridge LOGIN PASSWORD '${PASSWORD}'`);
  await database.query(`ALTER DATABASE ${database.name} OWNER TO tollbridge`);
  const env = {
    DATABASE: `127.0.0.1:${database.port}/${database.name}?sslmode=disable`,
    REPLICA_HOST: '127.0.0.1',
    SECRET_STORE_PASSWORD: PASSWORD,
    SECRET_KEYS: 'k'.repeat(32),
    SECRET_WRITER_TOKEN: 'a token',
  };
  const dir = await aDirectory();
  async function start(name: string) {
    const file = join(dir, `${name}.yaml`);
    const text = textOf('replicas/tollbridge.yaml')
      .replaceAll('0.0.0.0', '127.0.0.1')
      .replaceAll(':4320', `:${await freePort()}`)
      .replace('port: 4319', 'port: 0')
      .replace('drain: 10s', 'drain: 1s');
    await writeFile(file, text);
    await mkdir(join(dir, name), { mode: 0o700 });
    const at = ['--config', file, '--data', join(dir, name)];
    const running = program([...at, 'serve', '--json'], { cwd: dir, env });
    const [line] = await running.says(/^\{"object":"gateway".*\n/m);
    return { at, url: (JSON.parse(line) as { url: string }).url, ...running };
  }
  const [one, two] = await Promise.all([start('one'), start('two')]);
  expect(await Promise.all([probed(one.url), probed(two.url)])).toEqual([0, 0]);

  const made = await ran([...one.at, 'keys', 'create', 'ops', '--for', 'admin', '--json'], '', { env });
  expect(made).toMatchObject({ code: 0 });
  const bearer = { ...HOST, authorization: `Bearer ${(JSON.parse(made.out) as { key: string }).key}` };
  const native = { ...bearer, 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
  for (const { url } of [one, two])
    await eventually(
      async () => (await exchange(`${url}/v1/tasks`, { method: 'GET', headers: native })).status === 200,
      'the key to open',
      { timeoutMs: 1_000 },
    );
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const opened = await exchange(`${one.url}/mcp`, {
    headers: bearer,
    body: { jsonrpc: '2.0', id: 1, method: 'initialize', params },
  });
  const session = { ...bearer, 'mcp-session-id': opened.headers['mcp-session-id'] as string };
  const list = async (url: string) =>
    (await exchange(`${url}/mcp`, { headers: session, body: { jsonrpc: '2.0', id: 2, method: 'tools/list' } })).status;
  expect(await list(two.url)).toBe(200);

  one.child.kill('SIGTERM');
  expect((await one.ended).code).toBe(0);
  expect(await probed(one.url)).toBe(1);
  expect(await probed(two.url)).toBe(0);
  expect(await list(two.url)).toBe(200);
});
