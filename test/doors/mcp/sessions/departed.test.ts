/** Clients that leave without a word: what was kept for them is let go, and a client that returns goes on. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { AskRecord } from '../../../../src/model/asks.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ALLOW_ALL, openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';

const STEERED = join(import.meta.dirname, '../../../support/upstreams/steered-server.mjs');

/** A client with connections of its own, which it keeps until it leaves. */
function aClient(url: string) {
  const agent = new Agent({ keepAlive: true });
  let session: string | undefined;
  let count = 0;
  const post = (body: object) =>
    new Promise<string>((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(session && { 'mcp-session-id': session }),
      };
      const sent = request(url, { method: 'POST', agent, headers }, (response) => {
        session ??= response.headers['mcp-session-id'] as string | undefined;
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
        response.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(JSON.stringify({ jsonrpc: '2.0', ...body }));
    });
  return {
    ask: (method: string, params: object = {}) => post({ id: ++count, method, params }),
    async open() {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
      await post({ id: 'i', method: 'initialize', params });
      await post({ method: 'notifications/initialized' });
    },
    leave: () => agent.destroy(),
  };
}

async function aGateway(rules = ALLOW_ALL) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-departed-'));
  const journal = join(dir, 'journal');
  const gateway = await openMcpGateway({
    rules,
    door: { session_away_ms: 50 },
    upstreams: { steered: { command: [process.execPath, STEERED, journal] } },
  });
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true });
  });
  const programs = () =>
    readFileSync(journal, 'utf8')
      .split('\n')
      .flatMap((line) => (line.includes('"started"') ? [JSON.parse(line).started as number] : []));
  return { gateway, programs, running: () => programs().filter(isAlive) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('the program of a client that left is ended, and started again for one that returns', async () => {
  const { gateway, programs, running } = await aGateway();
  const client = aClient(gateway.at('steered'));
  await client.open();
  expect(await client.ask('tools/call', { name: 'echo' })).toContain('echo by');
  client.leave();
  await eventually(() => running().length === 0, 'the program to be ended');
  expect(await client.ask('tools/call', { name: 'echo' })).toContain('echo by');
  expect(programs()).toHaveLength(2);
  client.leave();
});

test('the question of a call whose client left is closed', async () => {
  const { gateway } = await aGateway('- { id: ask, when: { tool: echo }, then: ask }');
  const client = aClient(gateway.at('steered'));
  await client.open();
  void client.ask('tools/call', { name: 'echo' }).catch(() => {});
  const asks = async (state: string) =>
    (await gateway.runtime.bridge.list<AskRecord & Row>(VISITOR, { object: 'ask', where: { state } })).data;
  await eventually(async () => (await asks('open')).length === 1, 'the question');
  client.leave();
  await eventually(async () => (await asks('canceled')).length === 1, 'the question to be closed');
});

test('a hundred sessions that were opened and dropped leave no program behind', async () => {
  const { gateway, programs, running } = await aGateway();
  for (let round = 0; round < 10; round += 1) {
    const clients = Array.from({ length: 10 }, () => aClient(gateway.at('steered')));
    await Promise.all(clients.map((client) => client.open()));
    for (const client of clients) client.leave();
  }
  expect(programs()).toHaveLength(100);
  await eventually(() => running().length === 0, 'all programs to be ended', { timeoutMs: 60_000 });
}, 180_000);

test('a caller at its limit is let in where one of its clients has left', async () => {
  const { gateway } = await aGateway();
  const gone = aClient(`${gateway.url}/mcp`);
  await gone.open();
  gone.leave();
  const clients = Array.from({ length: 256 }, () => aClient(`${gateway.url}/mcp`));
  for (const client of clients) await client.open();
  expect(await clients.at(-1)?.ask('ping')).toContain('"result"');
  for (const client of clients) client.leave();
}, 120_000);
