/** Nothing outside can stop a gateway: not idle connections, not the last file descriptor, not a huge result, not a full log. */
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/model/schema.ts';
import { readEvents } from '../support/oracle/oracle.ts';
import { aDirectory, startGateway } from '../support/process/cli.ts';

const MIB = 1024 * 1024;
const SERVER = fileURLToPath(new URL('../support/upstreams/big-server.mjs', import.meta.url));
const REVISION = '2026-07-28';
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

interface Running {
  readonly dir: string;
  readonly port: number;
  readonly token: string;
  /** How the tool `big` is answered. */
  big(args: JsonObject, server?: string): Promise<{ readonly status: number; readonly text: string }>;
  /** Calls that reached the tool server. */
  calls(): readonly string[];
  stop(): Promise<number | null>;
}

/** `serve` with the tool server behind it, below a shell that has set its limits first. */
async function serving(config: string, shell = '', ...others: string[]): Promise<Running> {
  const dir = await aDirectory();
  const seen = join(dir, 'seen');
  const file = join(dir, 'gateway.yaml');
  const server = JSON.stringify([process.execPath, SERVER, seen]);
  const rules = 'rules:\n  - { id: all, when: { tool: big }, then: allow }\n';
  const tools = ['box', ...others].map((name) => `${name}: { mcp: { command: ${server} } }`);
  await writeFile(file, `demo: false\ntools: { ${tools.join(', ')} }\n${rules}${config}`);
  const { child, ended, url, token } = await startGateway(['--config', file, '--data', join(dir, 'data')], {
    cwd: dir,
    ...(shell && { shell }),
  });
  const meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  };
  return {
    dir: join(dir, 'data'),
    port: Number(new URL(url).port),
    token,
    async big(args, server = 'box') {
      const response = await fetch(`${url}/mcp/${server}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': REVISION,
          'mcp-method': 'tools/call',
          'mcp-name': 'big',
          connection: 'close',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'big', arguments: args, _meta: meta },
        }),
      });
      return { status: response.status, text: await response.text() };
    },
    calls: () => (existsSync(seen) ? readFileSync(seen, 'utf8').split('\n').filter(Boolean) : []),
    async stop() {
      child.kill('SIGTERM');
      return (await ended).code;
    },
  };
}

/** Connections that say nothing, and what each received before it was closed. */
async function idle(port: number, count: number): Promise<string[]> {
  const received: string[] = [];
  const opened = Array.from({ length: count }, async (_, at) => {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    received[at] = '';
    socket.on('error', () => {});
    socket.on('data', (data) => {
      received[at] += String(data);
    });
    await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()));
  });
  await Promise.all(opened);
  return received;
}

describe('connections', () => {
  test('beyond the limit are refused in words, and silent ones make room for a client that speaks', async () => {
    const gateway = await serving('limits: { connections: 20 }\n');
    const received = await idle(gateway.port, 40);
    await expect.poll(() => received.filter((text) => text.includes('503')).length).toBe(20);
    expect(received.find(Boolean)).toContain('too many connections are open');
    await expect
      .poll(async () => (await gateway.big({ size: 3 })).status, { interval: 200, timeout: 10_000 })
      .toBe(200);
    expect(await gateway.stop()).toBe(0);
  });

  test('348 idle ones and few file descriptors left: a program that cannot be started is an error, not the end', async () => {
    const gateway = await serving('limits: { connections: 4096 }\n', 'ulimit -n 400');
    await idle(gateway.port, 348);
    const answers = await Promise.allSettled([gateway.big({ size: 3 }), gateway.big({ size: 3 })]);
    expect(answers).toHaveLength(2);
    for (const socket of sockets.splice(0)) socket.destroy();
    await expect
      .poll(async () => (await gateway.big({ size: 3 }).catch(() => ({ text: '' }))).text, {
        interval: 200,
        timeout: 15_000,
      })
      .toContain('"text":"xxx"');
    expect(await gateway.stop()).toBe(0);
  });
});

test('programs beyond the limit are not started, and their caller is notified', async () => {
  const gateway = await serving('limits: { children: 2 }\n', '', 'other');
  expect((await gateway.big({ size: 3 })).text).toContain('"text":"xxx"');
  expect((await gateway.big({ size: 3 }, 'other')).text).toMatch(
    /2 programs run already|does not say which tools it has/,
  );
  expect(gateway.calls()).toHaveLength(1);
  expect(await gateway.stop()).toBe(0);
});

test('sessions of one caller beyond the limit are refused in words, and ending one makes room', async () => {
  const gateway = await serving('');
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${gateway.token}`,
  };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const url = `http://127.0.0.1:${gateway.port}/mcp`;
  const open = () => fetch(url, { method: 'POST', headers, body });
  let last = await open();
  const first = last.headers.get('mcp-session-id') ?? '';
  for (let count = 1; last.status === 200 && count < 300; count += 1) {
    await last.text();
    last = await open();
  }
  expect(last.status).toBe(429);
  expect(await last.text()).toContain('256 sessions of this caller are open');
  await fetch(url, { method: 'DELETE', headers: { ...headers, 'mcp-session-id': first } });
  expect((await open()).status).toBe(200);
  expect(await gateway.stop()).toBe(0);
}, 90_000);

describe('a result', () => {
  test.each([
    ['too long', { size: 5 * MIB }, 'the call ran, and its result was not passed on: it holds more than 4194304'],
    [
      'too long to be read',
      { size: 12 * MIB },
      "the server's answer was not read: a line is longer than 8388608 bytes",
    ],
    ['of too many values', { size: 1, values: 250_000 }, 'it holds more than 200000 values'],
  ])('that is %s is an error that says so, and the next call works', async (_, args, words) => {
    const gateway = await serving('');
    expect((await gateway.big(args)).text).toContain(words);
    expect(gateway.calls()).toHaveLength(1);
    expect((await gateway.big({ size: 3 })).text).toContain('"text":"xxx"');
    const failed = (await readEvents(gateway.dir, ['tool.failed'])).map(({ payload }) => String(payload.error));
    expect(failed).toEqual([expect.stringContaining(words)]);
    expect(await gateway.stop()).toBe(0);
  });

  test('at the configured limit is passed on whole', async () => {
    const gateway = await serving('limits: { result: 1MB }\n');
    expect((await gateway.big({ size: MIB - 1_000 })).text).toContain(`"${'x'.repeat(MIB - 1_000)}"`);
    expect((await gateway.big({ size: MIB + 1 })).text).toContain('was not passed on');
    expect(await gateway.stop()).toBe(0);
  });
});

test('a log with too little room for a result runs nothing, and says why', async () => {
  const gateway = await serving('store: { max_size: 17MB }\n');
  for (let at = 0; at < 6; at += 1) await gateway.big({ size: MIB - at });
  // The room is looked at from time to time, not for every call.
  await expect
    .poll(async () => (await gateway.big({ size: 1 })).text, { interval: 100 })
    .toMatch(/the log has room for \d+ more bytes/);
  const before = gateway.calls().length;
  await gateway.big({ size: 1 });
  expect(gateway.calls()).toHaveLength(before);
  const [refused] = await readEvents(gateway.dir, ['tool.denied']);
  expect(refused?.payload).toMatchObject({ code: 'no_room' });
  expect(await gateway.stop()).toBe(0);
});
