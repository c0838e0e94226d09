/** Clients that leave without a word: what was kept for them is let go, and a client that returns goes on. */
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import type { AskRecord } from '../../../../src/model/asks.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ALLOW_ALL, openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';
import { aClient } from '../../../support/mcp/leaving-client.ts';
import { openUpstream } from '../../../support/mcp/upstream.ts';
import { isAlive, programsIn } from '../../../support/upstreams/journal.ts';

const STEERED = join(import.meta.dirname, '../../../support/upstreams/steered-server.mjs');

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
  const programs = () => programsIn(journal);
  return { gateway, programs, running: () => programs().filter(isAlive) };
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

test('a connection that carries many sessions keeps none that has ended, and its end leaves all others', async () => {
  const warned: string[] = [];
  const warn = ({ name }: Error) => void warned.push(name);
  process.on('warning', warn);
  onTestFinished(() => void process.off('warning', warn));
  const { gateway, programs, running } = await aGateway();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let count = 0; count < 30; count += 1) {
    const client = aClient(gateway.at('steered'), {}, agent);
    await client.open();
    if (count >= 3) await client.end();
  }
  expect(programs()).toHaveLength(30);
  await eventually(() => running().length === 3, 'the programs of sessions that were ended to be ended');
  agent.destroy();
  await eventually(() => running().length === 0, 'the others to be ended');
  expect(warned).not.toContain('MaxListenersExceededWarning');
}, 60_000);

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

test('after a second hundred of dropped sessions as much memory is in use as after the first', async () => {
  const upstream = await openUpstream({ eras: ['legacy'] });
  const gateway = await openMcpGateway({
    door: { session_away_ms: 50, session_idle_ms: 500 },
    upstreams: { u: { url: upstream.url } },
  });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const dropHundred = async () => {
    for (let round = 0; round < 10; round += 1) {
      const clients = Array.from({ length: 10 }, () => aClient(gateway.at('u')));
      await Promise.all(clients.map((client) => client.open()));
      await Promise.all(clients.map((client) => client.ask('tools/call', { name: 'echo' })));
      for (const client of clients) client.leave();
    }
    await eventually(() => upstream.sessions() === 0, 'the sessions at the server to be ended');
    upstream.asked.length = 0;
  };
  await dropHundred();
  const first = heapAfterCollection();
  await dropHundred();
  // A gateway that kept the streams or the calls of each session would keep more than this.
  const letGo = () => heapAfterCollection() - first < 100 * 30_000;
  await eventually(letGo, 'memory to be let go', { timeoutMs: 60_000 });
}, 120_000);

function heapAfterCollection(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}
