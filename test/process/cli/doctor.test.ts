/** The doctor: what is well is said in a line, what is not is said with a fix. */
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createApiKeys } from '../../../src/auth/api-keys.ts';
import { directoryFiles } from '../../../src/auth/private-file.ts';
import { doctor } from '../../../src/cli/commands/maintenance/doctor.ts';
import { lookAtChild } from '../../../src/cli/doctor/child.ts';
import { lookAtClock, lookAtLog } from '../../../src/cli/doctor/data.ts';
import { lookAtNode } from '../../../src/cli/doctor/here.ts';
import { lookAtPort } from '../../../src/cli/doctor/port.ts';
import { lookAtToolServers } from '../../../src/cli/doctor/tool-servers.ts';
import { openRawPeer } from '../../support/a2a/peers.ts';
import { aDirectory, aLog, typed } from '../../support/process/cli.ts';
import { configIn } from '../../support/process/config-in.ts';

const node = (script: string) => [process.execPath, '-e', script];

async function looked(dir: string, yaml: string, command: readonly string[] = []) {
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, yaml);
  const { code, out } = await typed(() => doctor(command, { config, data: dir, port: '0', json: true }));
  const findings = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  return { code, findings, of: (check: string) => findings.filter((each) => each.check === check) };
}

test('a gateway that is well', async () => {
  const { dir } = await aLog(['hello']);
  const { code, findings } = await looked(dir, '');
  expect(findings.map(({ check, state }) => `${check} ${state}`)).toEqual([
    'node ok',
    'config ok',
    'rules ok',
    'port ok',
    'log ok',
    'keys ok',
    'clock ok',
  ]);
  expect(code).toBe(0);
  const people = await typed(() => doctor([], { config: join(dir, 'tollbridge.yaml'), data: dir, port: '0' }));
  expect(people.out).toMatch(/^ok {4}node {7}Node \d/);
  expect(people.out).toMatch(/\nAll is well\.\n$/);
});

test('what is not: configuration, rules, modes of key files, expired keys; each with a fix', async () => {
  const { dir } = await aLog([]);
  await chmod(join(dir, 'keys', 'receipt-keys.json'), 0o644);
  const keys = createApiKeys({
    files: directoryFiles(dir),
    clock: { now: () => '2020-01-01T00:00:00.000Z' },
    random: (bytes) => new Uint8Array(bytes).fill(7),
  });
  const actor = { id: 'ci', kind: 'service' as const, scopes: ['*'] };
  await keys.create({ name: 'ci', actor, expires_at: '2020-02-01T00:00:00.000Z' });
  await writeFile(join(dir, 'rules.yaml'), '- { id: x, when: { efect: read }, then: allow }');
  const { code, of } = await looked(dir, 'policies: [rules.yaml]');
  expect(code).toBe(1);
  expect(of('rules')).toMatchObject([{ state: 'bad', says: expect.stringContaining('efect') }]);
  const file = join(dir, 'keys', 'receipt-keys.json');
  expect(of('keys')).toEqual([
    { check: 'keys', state: 'bad', says: `${file} can be read by others`, fix: `chmod 600 ${file}` },
    {
      check: 'keys',
      state: 'warn',
      says: 'API key 0707070707070707 (ci) expired at 2020-02-01T00:00:00.000Z',
      fix: 'make a new one: tollbridge keys create ci --scope ...',
    },
  ]);
  expect((await looked(dir, 'data: [')).of('config')).toMatchObject([{ state: 'bad', fix: expect.any(String) }]);
});

const at = (dataDir: string) => ({ dataDir, store: { path: join(dataDir, 'log.db') } });

test('a directory that is a file, a log that is none, a log from the future', async () => {
  const dir = await aDirectory();
  await writeFile(join(dir, 'file'), '');
  expect(await lookAtLog(at(join(dir, 'file')))).toMatchObject([
    { state: 'bad', says: expect.stringContaining('it is a file') },
  ]);
  expect(await lookAtLog(at(join(dir, 'new')))).toMatchObject([{ state: 'ok' }]);
  await mkdir(join(dir, 'odd'));
  await writeFile(join(dir, 'odd', 'log.db'), 'this is no log, and never was one');
  expect(await lookAtLog(at(join(dir, 'odd')))).toMatchObject([{ state: 'bad', fix: expect.any(String) }]);

  const { dir: runtime } = await aLog(['hello']);
  expect(await lookAtClock(at(runtime))).toMatchObject([{ state: 'ok' }]);
  expect(await lookAtClock(at(runtime), Date.parse('2020-01-01T00:00:00Z'))).toMatchObject([
    { state: 'bad', says: expect.stringMatching(/in the future of this clock$/) },
  ]);
});

test('an old Node', () => {
  expect(lookAtNode('20.18.3')).toEqual([
    { check: 'node', state: 'bad', says: 'Node 20.18.3 is too old', fix: 'install Node 20.19 or later' },
  ]);
  for (const version of ['20.19.0', '22.0.0', '24.1.0']) expect(lookAtNode(version)[0]?.state).toBe('ok');
});

test('a port: free, taken by another program, taken by one of us', async () => {
  const listen = async (body: string) => {
    const server = createServer((_, response) => response.end(body)).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    onTestFinished(() => void server.close());
    return { server, port: (server.address() as AddressInfo).port };
  };
  const other = await listen('hello');
  expect(await lookAtPort('127.0.0.1', other.port)).toMatchObject([
    { state: 'bad', says: `${other.port} on 127.0.0.1 is taken by another program` },
  ]);
  const ours = await listen('{"openapi":"3.1.0","info":{"title":"Tollbridge"}}');
  expect(await lookAtPort('127.0.0.1', ours.port)).toMatchObject([{ state: 'ok' }]);
  await new Promise((resolve) => other.server.close(resolve));
  expect(await lookAtPort('127.0.0.1', other.port)).toMatchObject([{ state: 'ok' }]);
});

const STEERED = join(import.meta.dirname, '../../support/upstreams/steered-server.mjs');

test('tool servers: one that answers, one that ends at once, one that is not installed', async () => {
  const dir = await aDirectory();
  const server = (...command: string[]) => ({ mcp: { command } });
  const tools = {
    one: server(process.execPath, STEERED, join(dir, 'one.journal')),
    crashes: server(process.execPath, STEERED, join(dir, 'crashes.journal'), '--crash'),
    absent: server('no-such-server'),
  };
  const { code, of } = await looked(dir, `tools: ${JSON.stringify(tools)}`);
  expect(code).toBe(1);
  expect(of('server')).toEqual([
    { check: 'server', state: 'ok', says: 'one answers: 2 tools' },
    {
      check: 'server',
      state: 'bad',
      says: expect.stringMatching(/^crashes: /),
      fix: 'correct tools.crashes.mcp, or start the server',
    },
    {
      check: 'server',
      state: 'bad',
      says: expect.stringMatching(/^absent: .*no-such-server/),
      fix: 'correct tools.absent.mcp, or start the server',
    },
  ]);
});

test('a tool server that hangs is a warning that names the setting, and its program is ended', async () => {
  const dir = await aDirectory();
  const journal = join(dir, 'journal');
  await writeFile(
    join(dir, 'tollbridge.yaml'),
    `tools: ${JSON.stringify({ hangs: { mcp: { command: [process.execPath, STEERED, journal, '--hang'] } } })}`,
  );
  const config = await configIn(dir, { data: dir, port: 0 });
  expect(await lookAtToolServers(config, 1_500)).toEqual([
    {
      check: 'server',
      state: 'warn',
      says: 'hangs has not answered within 1.5 s',
      fix: 'start it by itself and see why; if it is only slow, raise tools.hangs.mcp.start_timeout_ms above its time',
    },
  ]);
  const started = (await readFile(journal, 'utf8')).split('\n').filter((line) => line.includes('"started"'));
  for (const line of started) expect(() => process.kill(JSON.parse(line).started, 0)).toThrow('ESRCH');
});

test('an A2A agent is looked for at each of its addresses; one that answers is enough', async () => {
  const dir = await aDirectory();
  const peer = await openRawPeer({});
  const { host } = new URL(peer.url);
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const nobody = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise((resolve) => server.close(resolve));
  const agents = (url: string) => `agents: { far: { a2a: { url: ${url}, timeouts: { request_ms: 2000 } } } }`;
  const gone = await looked(dir, agents(`["http://${nobody}", "${peer.url}"]`));
  expect(gone.of('agent')).toEqual([
    {
      check: 'agent',
      state: 'warn',
      says: `far at ${nobody} cannot be reached: ECONNREFUSED`,
      fix: 'start it, or correct agents.far.a2a.url',
    },
    { check: 'agent', state: 'ok', says: `far answers at ${host}` },
  ]);
  expect(gone.code).toBe(0);
  const all = await looked(dir, agents(`"http://${nobody}"`));
  expect(all.of('agent')).toMatchObject([{ state: 'bad' }]);
  expect(all.code).toBe(1);
});

test('a program that is not there', async () => {
  expect(await lookAtChild(['no-such-agent'])).toEqual([
    {
      check: 'command',
      state: 'bad',
      says: 'could not start no-such-agent: there is no such command',
      fix: 'check its spelling, install it, or give its whole path instead of no-such-agent',
    },
  ]);
});

test('a program that waits quietly is well; one that greets is not', async () => {
  const quiet = await lookAtChild(node('process.stderr.write("ready\\n"); process.stdin.resume()'), 300);
  expect(quiet.map(({ state }) => state)).toEqual(['ok', 'ok']);
  const speaks = await lookAtChild(
    node('console.log(JSON.stringify({jsonrpc:"2.0",method:"x"})); process.stdin.resume()'),
    300,
  );
  expect(speaks.map(({ state }) => state)).toEqual(['ok', 'ok']);
  const greets = await lookAtChild(
    node('console.log("Server \\u001b[1mready\\u001b[0m on stdio"); process.stdin.resume()'),
    20_000,
  );
  expect(greets[1]).toEqual({
    check: 'stdout',
    state: 'bad',
    says: `${process.execPath} writes to its standard output what is no message: Server \\u{1b}[1mready\\u{1b}[0m on stdio`,
    fix: 'let it log to standard error instead; many programs have an option such as --quiet or --log-level',
  });
});

test('a program that ends at once says why, through us', async () => {
  const [ended] = await lookAtChild(node('console.error("no API key"); process.exit(3)'), 20_000);
  expect(ended).toEqual({
    check: 'command',
    state: 'bad',
    says: `${process.execPath} ended at once with exit code 3; it said: no API key`,
    fix: 'run the command by itself and correct the error it prints',
  });
  const [gone] = await lookAtChild(node(''), 20_000);
  expect(gone?.state).toBe('warn');
});

test('a directory that is not there yet is tried: one that can be made leaves nothing, one that cannot is said to', async () => {
  const dir = await aDirectory();
  const wanted = join(dir, 'a', 'b');
  expect(await lookAtLog({ dataDir: wanted, store: { path: join(wanted, 'log.db') } })).toMatchObject([
    { state: 'ok', says: `nothing yet; it will be in ${wanted}` },
  ]);
  expect(await readdir(dir)).toEqual([]);
  await writeFile(join(dir, 'file'), '');
  const nowhere = join(dir, 'file', 'data');
  expect(await lookAtLog({ dataDir: nowhere, store: { path: join(nowhere, 'log.db') } })).toMatchObject([
    {
      state: 'bad',
      says: `the data directory ${nowhere} cannot be used: a part of the path is a file`,
      fix: 'name another with --data DIR, or make this one writable for you',
    },
  ]);
});
