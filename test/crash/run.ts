/**
 * `npm run crash -- --kills 200 --calls 60 --seed 42`: kills the built gateway under load and checks, after every kill, everything it
 * had promised; then kills the commands and the gateway under callers of other protocols (`--calls`), and checks that every call
 * that was answered is on exactly one receipt, or in work that is still open. Either number may be 0. Ends at the first broken promise with what was broken; the data directory is kept.
 *
 * `npm run crash -- --store postgres --faults 500`: three gateways on PostgreSQL behind a balancer, and faults of gateways, of connections and of
 * the database; then the callers with their log in PostgreSQL.
 *
 * A killed process leaves what it had handed to the operating system; that the disk has it too is for another test.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openCluster } from '../support/postgres/cluster.ts';
import { callThrough } from './callers/campaign.ts';
import { runCampaign, type Summary } from './campaign.ts';
import { makeDatabase } from './database.ts';
import { fleetSentence, runFleetCampaign } from './fleet/campaign.ts';
import { createChance } from './random.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    calls: { type: 'string', default: '60' },
    seed: { type: 'string' },
    clients: { type: 'string', default: '5' },
    'kills-per-directory': { type: 'string', default: '25' },
    store: { type: 'string', default: 'sqlite' },
    faults: { type: 'string', default: '400' },
    'faults-per-fleet': { type: 'string', default: '60' },
    'faults-per-look': { type: 'string', default: '12' },
  },
});
const seed = values.seed ?? String(Date.now() % 1_000_000);
const program = resolve(import.meta.dirname, '../../dist/src/main.js');
const say = (text: string) => process.stderr.write(`${text}\n`);

// An exit takes the gateway along; without this an interrupt would leave it running.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

if (!existsSync(program)) {
  say(`${program} is not there: npm run build`);
  process.exit(2);
}
const root = await mkdtemp(join(tmpdir(), 'tollbridge-crash-'));
say(`seed ${seed}, in ${root}`);
const begun = performance.now();
const postgres = values.store === 'postgres';
try {
  if (postgres && Number(values.faults) > 0) {
    const reports = await runFleetCampaign({
      seed,
      faults: Number(values.faults),
      faultsPerFleet: Number(values['faults-per-fleet']),
      faultsPerLook: Number(values['faults-per-look']),
      clients: Number(values.clients),
      say,
    });
    process.stdout.write(`${fleetSentence(reports, (performance.now() - begun) / 1000)}\n`);
  }
  if (!postgres && Number(values.kills) > 0) {
    const summary = await runCampaign({
      program,
      root,
      seed,
      kills: Number(values.kills),
      killsPerDirectory: Number(values['kills-per-directory']),
      clients: Number(values.clients),
      say,
    });
    process.stdout.write(`${sentence(summary, (performance.now() - begun) / 1000)}\n`);
  }
  if (Number(values.calls) > 0) {
    const began = performance.now();
    const chance = createChance(`${seed}/callers`);
    const cluster = postgres ? await openCluster() : undefined;
    try {
      const { kills, called, answered, sealed, unknown } = await callThrough({
        program,
        root: join(root, 'callers'),
        chance,
        kills: Number(values.calls),
        ...(cluster && { database: await makeDatabase(cluster, 'callers') }),
        say: (text) => say(`callers: ${text}`),
      });
      process.stdout.write(
        `ok  ${kills} kills under callers, ${Math.round((performance.now() - began) / 1000)} s: ${called} calls, ` +
          `${answered} answered, ${sealed} sealed, ${unknown} of them with an unknown outcome\n`,
      );
    } finally {
      await cluster?.close();
    }
  }
  await rm(root, { recursive: true, force: true });
} catch (broken) {
  process.stdout.write(
    `BROKEN  ${broken instanceof Error ? (broken.name === 'Broken' ? broken.message : broken.stack) : broken}\n` +
      `The data is in ${root}; ask for it again with --seed ${seed}\n`,
  );
  // Clients that are still asking would ask for ever.
  process.exit(1);
}

function sentence(s: Summary, seconds: number): string {
  const at = (share: number) => Math.round(s.starts[Math.floor((s.starts.length - 1) * share)] ?? 0);
  const moments = Object.entries(s.moments).map(([kind, count]) => `${count} ${kind}`);
  return (
    `ok  ${s.kills} kills (${moments.join(', ')}) in ${s.gateways} gateways, ${Math.round(seconds)} s: ` +
    `${s.events} events, ${s.delivered} deliveries, ${s.acknowledged} writes acknowledged, ${s.retried} asked for again, ` +
    `${s.tasks} tasks (${s.replays} replays; gone on with ${s.takenUp} times), ${s.receipts} receipts, ${s.asks} questions (${s.keptOpen} found open again), ` +
    `${s.effects} effects (${s.cut} cut from their record, ${s.unknown} calls of unknown outcome); ` +
    `listening after ${at(0.5)} ms (median), ${at(0.95)} ms (95 %), ${at(1)} ms (most)`
  );
}
