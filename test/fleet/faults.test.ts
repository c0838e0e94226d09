/**
 * Three gateways on one log in PostgreSQL, under load, through each kind of fault once: a replica killed, or paused and woken, cut from the
 * database in several ways; the database restarted, crashed, and failed over to its standby. No acknowledged event is lost and none is there
 * twice, no effect either, the chain is valid, open questions can be answered, streams go on. For longer: `npm run crash -- --store postgres`.
 */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FAULTS } from '../crash/fleet/faults.ts';
import { liveThroughFaults } from '../crash/fleet/installation.ts';
import { createChance } from '../crash/random.ts';
import { type Cluster, openCluster } from '../support/postgres/cluster.ts';
import { PROGRAM } from '../support/process/cli.ts';

let cluster: Cluster;
beforeAll(async () => {
  if (!existsSync(PROGRAM)) throw new Error('the gateway is not built: npm run build');
  cluster = await openCluster();
  await cluster.addStandby();
}, 120_000);
afterAll(() => cluster?.close(), 60_000);

test('each kind of fault once', { timeout: 300_000 }, async () => {
  const said: string[] = [];
  const report = await liveThroughFaults({
    ...{ cluster, name: 'faults', chance: createChance('each once'), clients: 3, faults: FAULTS, faultsPerLook: 5 },
    say: (text) => void said.push(text),
  }).catch((broken) => {
    throw new Error(`${broken}\n${said.join('\n')}`, { cause: broken });
  });
  expect(report.receipts).toBe(report.tasks);
  for (const count of ['tasks', 'effects', 'asks', 'acknowledged', 'delivered'] as const)
    expect(report[count], count).toBeGreaterThan(0);
  expect(report.again.requests + report.again.streams).toBeGreaterThan(0);
});
