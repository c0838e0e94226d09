/**
 * Several processes that commit to one log at once, in a SQLite file and in PostgreSQL, against one process alone with as many callers: units
 * per second of all together. Below 1, more gateways on one log are slower than one. `TOLLBRIDGE_BENCH_MS` is the length of a round.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { StoreLocation } from '../../src/store/index.ts';
import { createDatabase } from '../../test/support/postgres/server.ts';
import type { CommitOrder, CommitReport } from '../append/committer.ts';
import { median } from '../native/side.ts';
import type { Measured } from '../run.ts';

export const name = 'append-processes';

const CALLERS = 64;
const ROUNDS = 7;
const ROUND_MS = Number(process.env.TOLLBRIDGE_BENCH_MS ?? 500);
const COUNTS = { sqlite: [1, 2, 4], postgres: [1, 2, 3] } as const;

interface Group {
  readonly processes: readonly ChildProcess[];
  readonly rounds: {
    readonly perSecond: number;
    readonly processorMs: number;
    readonly least: number;
    readonly longestMs: number;
  }[];
}

async function start(location: StoreLocation, number: string): Promise<ChildProcess> {
  const main = fileURLToPath(new URL('../append/committer.js', import.meta.url));
  const child = fork(main, [JSON.stringify(location), number]);
  await new Promise((resolve) => child.once('message', resolve));
  return child;
}

async function round({ processes, rounds }: Group): Promise<void> {
  const order: CommitOrder = { callers: CALLERS / processes.length, ms: ROUND_MS };
  const began = performance.now();
  const reports = await Promise.all(
    processes.map(
      (child) =>
        new Promise<CommitReport>((resolve) => {
          child.once('message', resolve);
          child.send(order);
        }),
    ),
  );
  const units = reports.reduce((sum, each) => sum + each.units, 0);
  const least = Math.min(...reports.map((each) => each.units)) / (units / processes.length);
  const processorMs = reports.reduce((sum, each) => sum + each.processorMs, 0) / units;
  rounds.push({
    perSecond: (units * 1_000) / (performance.now() - began),
    processorMs,
    least,
    longestMs: Math.max(...reports.map((each) => each.longestMs)),
  });
}

export async function run(): Promise<readonly Measured[]> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
  const database = await createDatabase();
  try {
    return [
      ...(await measure(name, COUNTS.sqlite, (count) => ({ path: join(dir, `${count}.db`) }))),
      ...(await measure(`${name}-postgres`, COUNTS.postgres, () => database.location())),
    ];
  } finally {
    await database.drop();
    await rm(dir, { recursive: true, force: true });
  }
}

async function measure(
  bench: string,
  counts: readonly number[],
  locate: (count: number) => StoreLocation,
): Promise<readonly Measured[]> {
  const groups: Group[] = [];
  try {
    for (const count of counts) {
      const location = locate(count);
      const processes: ChildProcess[] = [];
      groups.push({ processes, rounds: [] });
      for (let number = 0; number < count; number += 1) processes.push(await start(location, String(number)));
    }
    for (let at = 0; at <= ROUNDS; at += 1) for (const group of groups) await round(group);
    // The first round warms up.
    const counted = groups.map(({ rounds }) => rounds.slice(1));
    const alone = counted[0]!;
    return counted.slice(1).map((rounds, at) => ({
      bench: `${bench}-${counts[at + 1]}`,
      ratio: Number(median(rounds.map(({ perSecond }, i) => perSecond / alone[i]!.perSecond)).toFixed(3)),
      against: 'one process with as many callers',
      units_per_second: Math.round(median(rounds.map(({ perSecond }) => perSecond))),
      alone_units_per_second: Math.round(median(alone.map(({ perSecond }) => perSecond))),
      processor_us_each: Math.round(median(rounds.map(({ processorMs }) => processorMs)) * 1_000),
      alone_processor_us_each: Math.round(median(alone.map(({ processorMs }) => processorMs)) * 1_000),
      // 1: every process committed as much; 0: one committed nothing.
      share_of_the_slowest: Number(median(rounds.map(({ least }) => least)).toFixed(2)),
      longest_wait_ms: Math.round(Math.max(...rounds.map(({ longestMs }) => longestMs))),
    }));
  } finally {
    for (const { processes } of groups) for (const child of processes) child.disconnect();
    await Promise.all(
      groups.flatMap(({ processes }) => processes.map((child) => child.exitCode ?? once(child, 'exit'))),
    );
  }
}
