/** What goes wrong most often, as it is reported: one sentence, a fix, an exit code that scripts can rely on. */
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createApiKeys } from '../../../src/auth/api-keys.ts';
import { directoryFiles } from '../../../src/auth/private-file.ts';
import { showLog } from '../../../src/cli/commands/history/log.ts';
import { exportAll } from '../../../src/cli/commands/proof/export.ts';
import { policyCheck } from '../../../src/cli/commands/rules/policy.ts';
import { serve } from '../../../src/cli/commands/start/serve.ts';
import { errorMessageOf as errorOutputOf, trouble } from '../../../src/cli/output/error-output.ts';
import { EXIT, exitCodeOf } from '../../../src/cli/output/exit-codes.ts';
import { FAULT_KINDS, Fault } from '../../../src/model/faults.ts';
import { startChild } from '../../../src/transport/process/child.ts';
import { aDirectory, aLog, program, ran, typed } from '../../support/process/cli.ts';

test('a bad configuration: where, what, and nothing is started', async () => {
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, 'approvals:\n  expire_after: soon\n');
  const data = join(dir, 'data');
  expect(await typed(() => serve({ config, data }))).toEqual({
    code: 2,
    out: '',
    err: `tollbridge: ${config}:2:17: approvals.expire_after: soon is not a duration; write 30s, 10m, 12h or 30d\n`,
  });
  const absent = await typed(() => policyCheck({ config: join(dir, 'other.yaml') }));
  expect(absent).toMatchObject({ code: 2, out: '' });
  expect(absent.err).toContain('there is no such file');
});

test('a port that is taken: which one, and how to get another', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, '');
  expect(await typed(() => serve({ config, data: join(dir, 'data'), port: String(port) }))).toEqual({
    code: 6,
    out: '',
    err: `tollbridge: port ${port} on 127.0.0.1 is taken by another program\n  fix: stop that program, or take another port with --port (0 takes any that is free)\n`,
  });
});

test('a store that cannot be written: where, why, and where else it could be', async () => {
  const dir = await aDirectory();
  await writeFile(join(dir, 'file'), '');
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, '');
  for (const data of [join(dir, 'file', 'data'), join(dir, 'file')]) {
    const why = data.endsWith('data') ? 'a part of the path is a file' : 'it is a file';
    expect(await typed(() => serve({ config, data, port: '0' }))).toEqual({
      code: 6,
      out: '',
      err: `tollbridge: the data directory ${data} cannot be used: ${why}\n  fix: name another with --data DIR, or make this one writable for you\n`,
    });
  }
});

test.runIf(process.platform === 'linux')('a place where nothing can be made is said, and not waited for', async () => {
  const config = join(await aDirectory(), 'tollbridge.yaml');
  await writeFile(config, '');
  expect(await typed(() => serve({ config, data: '/proc/tollbridge/data', port: '0' }))).toMatchObject({
    code: 6,
    err: expect.stringMatching(/cannot be used: (nothing can be made there|this user may not write there)\n {2}fix: /),
  });
});

test('a place to export to that cannot be written is not called the data directory', async () => {
  const { dir } = await aLog([]);
  await writeFile(join(dir, 'file'), '');
  expect(await typed(() => exportAll(join(dir, 'file'), { data: dir }))).toEqual({
    code: 6,
    out: '',
    err: `tollbridge: the directory ${join(dir, 'file')} cannot be used: it is a file\n  fix: name another, or make this one writable for you\n`,
  });
});

test.each([
  ['ENOSPC', 'the disk is full where /x is'],
  ['EROFS', '/x cannot be used: it can only be read'],
  ['EACCES', '/x cannot be used: this user may not use it'],
])('%s from the system is no mistake of ours', (code, sentence) => {
  const thrown = Object.assign(new Error(code), { code, path: '/x', syscall: 'write' });
  expect(errorOutputOf(thrown)).toMatchObject({ sentence, code: 6, fix: expect.any(String) });
  expect(errorOutputOf(new Fault('conflict', 'too late', { cause: thrown }))).toEqual({
    sentence: 'too late',
    code: 4,
  });
});

test('a command that is not there: its name, and who looks closer', async () => {
  const { code, err } = await typed(() => startChild({ command: ['no-such-agent', '--acp'] }));
  expect(code).toBe(7);
  expect(err).toBe(
    'tollbridge: could not start no-such-agent: there is no such command\n  fix: check its spelling and that it is installed; "tollbridge doctor -- COMMAND" looks at it more closely\n',
  );
});

test.each(['acp', 'mcp', 'a2a'])(
  'a command that is not there is reported by %s when it starts, not when it is needed',
  async (how) => {
    const dir = await aDirectory();
    const asked = ran(['--data', join(dir, 'data'), how, '--', 'no-such-agent'], '', { cwd: dir });
    expect(await asked).toEqual({
      code: 7,
      out: '',
      err: 'tollbridge: could not start no-such-agent: there is no such command\n  fix: check its spelling and that it is installed; "tollbridge doctor -- COMMAND" looks at it more closely\n',
    });
  },
);

test('a gateway whose agents cannot be started says so when it starts, and serves the others', async () => {
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, 'listen: { port: 0 }\ndata: data\nagents:\n  coder: { acp: { command: [no-such-agent] } }\n');
  const { child, says, ended } = program(['--config', config, 'serve']);
  await says(/listens on http/);
  await says(/saving is enough\n/);
  child.kill('SIGINT');
  expect(await ended).toMatchObject({
    code: 0,
    err: `tollbridge: agents.coder: command no-such-agent not found\n  fix: install it, or correct agents.coder in ${config}; saving is enough\n`,
  });
  const found = await ran(['--config', config, 'doctor']);
  expect(found).toMatchObject({
    code: 1,
    out: expect.stringContaining('BAD   programs   agents.coder: command no-such-agent'),
  });
});

test('keys that have all expired: which, since when, and how to make a new one', async () => {
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, '');
  const data = join(dir, 'data');
  const keys = createApiKeys({
    files: directoryFiles(data),
    clock: { now: () => '2020-01-01T00:00:00.000Z' },
    random: (bytes) => new Uint8Array(bytes).fill(7),
  });
  const actor = { id: 'ci', kind: 'service' as const, scopes: ['tasks:read'] };
  await keys.create({ name: 'ci', actor, expires_at: '2020-02-01T00:00:00.000Z' });
  expect(await typed(() => serve({ config, data, host: '0.0.0.0', port: '0' }))).toEqual({
    code: 5,
    out: '',
    err: 'tollbridge: 0.0.0.0 can be reached by others and every API key has expired: 0707070707070707 (ci) at 2020-02-01T00:00:00.000Z\n  fix: make a new one with "tollbridge keys create NAME --scope ... --expires 30d", or listen on 127.0.0.1\n',
  });
});

test.each([
  [['dmeo'], 'there is no command dmeo', 'did you mean demo? "tollbridge --help" says what there is'],
  [['keys', 'make'], 'there is no command keys make', '"tollbridge keys --help" says what there is'],
  [
    ['serve', '--prot', '1'],
    'there is no option --prot of serve',
    'did you mean --port? "tollbridge serve --help" says what there is',
  ],
  [['verify'], 'verify needs to know: <what>', '"tollbridge verify --help" says what there is'],
  [['serve', 'now'], 'serve takes fewer words than were given', '"tollbridge serve --help" says what there is'],
  [['log', '--task'], '--task <id> needs a value after it', '"tollbridge log --help" says what there is'],
  [['demo', '--port', 'x'], 'x is not a port', 'use a number from 1 to 65535, or 0 for any that is free'],
])('typed %j: one sentence, where help is, exit 2', async (args, sentence, fix) => {
  expect(await ran(args)).toEqual({ code: 2, out: '', err: `tollbridge: ${sentence}\n  fix: ${fix}\n` });
});

test('our own mistakes do not look like anybody else’s, and a cause is never a stack trace', async () => {
  const { sentence, code } = errorOutputOf(new TypeError('x is not a function'));
  expect(sentence).toBe('something went wrong inside the bridge: x is not a function');
  expect(code).toBe(70);
  const { err } = await typed(async () => {
    throw trouble('conflict', 'a\u001b[31mb', 'c');
  });
  expect(err).toBe('tollbridge: a\\u{1b}[31mb\n  fix: c\n');
  expect(await typed(() => showLog({ data: '/nowhere/at/all' }))).toMatchObject({ code: 3 });
});

test('every fault has an exit code, and the table in the docs is the one in force', async () => {
  for (const kind of FAULT_KINDS) expect(Object.values(EXIT)).toContain(exitCodeOf(new Fault(kind, 'x').kind));
  const page = await readFile(join(import.meta.dirname, '../../../docs/commands.md'), 'utf8');
  const table = page.split('## Exit codes')[1]?.split('\n## ')[0] ?? '';
  const codes = [...table.matchAll(/^\| +`?(\d+)`? +\|/gm)].map(([, code]) => Number(code));
  expect(codes).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 70, 130]);
  expect(Object.values(EXIT)).toEqual(codes);
});
