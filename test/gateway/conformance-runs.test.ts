/** The suite that examines others is itself looked at: what it covers, that it can be pointed elsewhere, and that it can say no. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { OPERATIONS, REASONS } from '../../mappings/runs.ts';
import { openApiKeys } from '../../src/auth/api-keys.ts';
import { systemClock } from '../../src/core/clock.ts';
import { startGateway } from '../../src/runtime/gateway.ts';
import { checks, main } from '../conformance/runs.ts';
import { configIn } from '../support/process/config-in.ts';

async function run(args: readonly string[]) {
  const lines: string[] = [];
  const code = await main(args, (line) => lines.push(line));
  return { code, lines };
}

test('our own door passes every check', async () => {
  expect(checks.length).toBeGreaterThanOrEqual(70);
  expect(await run([])).toEqual({ code: 0, lines: [`${checks.length} passed, 0 failed`] });
});

test('every operation and every code of the page is looked for', async () => {
  const { readFile } = await import('node:fs/promises');
  const files = ['creating', 'living', 'reading'].map(
    (name) => new URL(`../conformance/runs/${name}.ts`, import.meta.url),
  );
  const text = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n');
  // Ours, for what the page leaves open: nothing outside has to know them.
  const own = [
    'REQUEST_INVALID',
    'RUN_EVENTS_EXPIRED',
    'MEMORY_ITEM_NOT_FOUND',
    'ENDPOINT_NOT_FOUND',
    'RATE_LIMITED',
    'INTERNAL_ERROR',
  ];
  expect(REASONS.map(({ code }) => code).filter((code) => !text.includes(code) && !own.includes(code))).toEqual([]);
  const paths = OPERATIONS.map(({ path }) => path.replace('/v1/runs/{id}', '').replace('/{id}', '/'));
  expect(paths.filter((path) => !text.includes(path))).toEqual([]);
});

test('a gateway is examined by its address, with the words its agent knows', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-conf-runs-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, 'tollbridge.yaml'), 'doors: { runs: { stream: { linger_ms: 50 } } }\n');
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(() => gateway.close());
  const keys = openApiKeys(join(dir, 'data'), systemClock);
  const { key } = await keys.create({
    name: 'svc',
    actor: { id: 'svc', kind: 'service', scopes: ['*', 'approvals:own'] },
  });
  const pair = key.replace(/^(tbk_[0-9a-f]+)_/, '$1:');
  const words = ['approve=send x to bo', 'input=ask which colour?', 'fail=fail', 'long=wait 10000'];
  const args = [
    '--target',
    `${gateway.url}/agent-harness`,
    '--key',
    pair,
    ...words.flatMap((word) => ['--word', word]),
  ];
  const { code, lines } = await run([...args, '--only', 'a run']);
  expect(lines.filter((line) => line.startsWith('FAIL'))).toEqual([]);
  expect(code).toBe(0);
  // Another customer, and what the demo was given no words for: a call, a blocked one, and two silences.
  expect(lines[0]).toBe('5 skipped');
});

test('a server that says yes to everything fails', async () => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"run_1","status":"queued","events":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { code, lines } = await run(['--target', target, '--key', 'a:b', '--timeout', '50', '--only', 'refused']);
  expect(code).toBe(1);
  expect(lines.at(-1)).toMatch(/^0 passed, \d\d failed$/);
});

test('options that make no sense are reported with what would', async () => {
  const error = console.error;
  const said: string[] = [];
  console.error = (line: string) => void said.push(line);
  onTestFinished(() => {
    console.error = error;
  });
  expect((await run(['--target', 'nowhere'])).code).toBe(2);
  expect((await run(['--word', 'sing=la'])).code).toBe(2);
  expect((await run(['--frobnicate'])).code).toBe(2);
  expect(said[0]).toContain('nowhere is not a URL');
  expect(said[1]).toContain('there are: hello, call');
});
