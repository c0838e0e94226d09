/**
 * One data directory and everything that happens to it: clients at work, the gateway killed and started again, the files
 * looked at after every kill. In the end the work is left to finish, and nothing may be left over.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openApiKeys } from '../../src/auth/api-keys.ts';
import { systemClock } from '../../src/core/clock.ts';
import { Broken } from './broken.ts';
import { openAsks } from './clients/answers.ts';
import { createClient } from './clients/client.ts';
import { type Door, type Frame, Gone, httpDoor } from './clients/door.ts';
import { createLedger, type Ledger } from './clients/ledger.ts';
import { CONFIG } from './clients/words.ts';
import { readEvidence } from './evidence.ts';
import { type GatewayLocation, type GatewayProcess, noErrors, startGateway } from './gateway-process.ts';
import { comes, type Moment, type MomentKind, pickMoment, whenWritten } from './moments.ts';
import { stillOpen } from './promises/asks.ts';
import { type Counts, everythingEnded, keepsPromises } from './promises.ts';
import type { Chance } from './random.ts';
import { comeToRest } from './rest.ts';

export interface DirectoryDeps {
  readonly program: string;
  readonly root: string;
  readonly chance: Chance;
  readonly clients: number;
  /** How long a start takes on this machine; kept up to date here. */
  readonly starts: number[];
  say(text: string): void;
}
export interface DataDirectory {
  readonly report: DirectoryReport;
  /** The answers its clients received, and its path, for a later look. */
  readonly ledger: Ledger;
  readonly location: GatewayLocation;
}
export interface DirectoryReport extends Counts {
  readonly moments: readonly MomentKind[];
  /** Questions found open again after a restart, counted once per restart. */
  readonly keptOpen: number;
}

const WORKSPACE = 'workspace_default';
const LONGEST_START_MS = 60_000;

export async function liveThrough(
  kills: number,
  { program, root, chance, clients: many, starts, say }: DirectoryDeps,
): Promise<DataDirectory> {
  const location: GatewayLocation = {
    program,
    dataDir: join(root, 'data'),
    config: join(root, 'tollbridge.yaml'),
    journal: join(root, 'journal'),
    errorLog: join(root, 'errors.log'),
  };
  await mkdir(location.dataDir, { recursive: true, mode: 0o700 });
  await writeFile(location.config, CONFIG);
  await writeFile(location.journal, '');
  await writeFile(location.errorLog, '');
  const actor = { id: 'approver', kind: 'person' as const, scopes: ['*'] };
  const { key: approver } = await openApiKeys(location.dataDir, systemClock).create({ name: 'approver', actor });

  const ledger = createLedger();
  let replied = () => {};
  const clients = Array.from({ length: many }, (_, at) =>
    createClient({
      name: `c${at}`,
      ledger,
      chance: chance.fork(`client ${at}`),
      workspace: WORKSPACE,
      replied: () => replied(),
    }),
  );
  const watched = ledger.listen({
    path: `/v1/events/stream?workspace_id=${WORKSPACE}`,
    of: { member: 'workspace_id', id: WORKSPACE },
    fromNow: true,
  });
  const moments: MomentKind[] = [];
  let open: ReturnType<typeof stillOpen> = [];
  let counts: Counts | undefined;
  let keptOpen = 0;

  for (let kill = 1; kill <= kills; kill += 1) {
    const moment = pickMoment(chance, moments.at(-1));
    await oneLife(moment);
    moments.push(moment.kind);
    await look();
    say(`kill ${kill} of ${kills}, ${moment.kind}: ${describe(counts)}`);
  }
  await lastLife();
  await look(true);
  say(`the end: ${describe(counts)}`);
  if (!counts) throw new Broken('the log is there', 'nothing was ever written');
  return { report: { ...counts, moments, keptOpen }, ledger, location };

  async function oneLife(moment: Moment): Promise<void> {
    if (moment.kind === 'start' || moment.kind === 'recovery') return await shortLife(moment);
    const gateway = startGateway(location);
    try {
      const door = await enter(gateway);
      const stop = new AbortController();
      const over = new AbortController();
      const received = new Map<string, () => void>();
      const living = Promise.all([
        watch(door, stop.signal, over.signal, (frame) => received.get(frame.event)?.()),
        ...clients.map((client) => client.live(door, stop.signal)),
      ]);
      const signs = { received, journal: location.journal, onReply: (tell: () => void) => (replied = tell) };
      await Promise.race([comes(moment, signs, over.signal), living, diedAlone(gateway, stop.signal)]);
      stop.abort();
      await gateway.kill();
      const late = setTimeout(() => over.abort(), 2_000);
      await living.finally(() => clearTimeout(late));
      over.abort();
    } finally {
      await gateway.kill();
    }
  }

  /** Killed before anyone could use it. */
  async function shortLife(moment: Extract<Moment, { kind: 'start' | 'recovery' }>): Promise<void> {
    const over = new AbortController();
    const written = whenWritten(
      join(location.dataDir, 'log.db-wal'),
      moment.kind === 'recovery' ? moment.nth : 1,
      over.signal,
    );
    const gateway = startGateway(location);
    if (moment.kind === 'start') await Promise.race([sleep(typical() * moment.share), gateway.ready]);
    else {
      await Promise.race([written, gateway.ready]);
      await sleep(moment.ms);
    }
    over.abort();
    await gateway.kill();
  }

  async function enter(gateway: GatewayProcess): Promise<Door> {
    const late = new AbortController();
    const tooLong = sleep(LONGEST_START_MS, 'too long' as const, { signal: late.signal }).catch(() => undefined);
    const ready = await Promise.race([gateway.ready, tooLong]);
    late.abort();
    if (!ready || ready === 'too long') {
      const said = (await readFile(location.errorLog, 'utf8')).slice(-2_000);
      const how = ready ? `it did not listen within ${LONGEST_START_MS} ms` : `it ended with ${await gateway.ended}`;
      throw new Broken('it starts again', `${how}: ${said}`);
    }
    starts.push(ready.ms);
    const door = httpDoor(ready.url, ready.token, approver);
    await areOpen(door);
    return door;
  }

  /** What nobody answered before the kill is there to be answered after it. */
  async function areOpen(door: Door): Promise<void> {
    const now = new Set((await openAsks(door, ledger)).map(({ id }) => id));
    const soon = new Date(Date.now() + 1_000).toISOString();
    for (const { id, expires_at } of open) {
      if (now.has(id)) keptOpen += 1;
      else if (expires_at > soon) throw new Broken('open questions stay open', `${id} is not open after the restart`);
    }
  }

  async function watch(door: Door, stop: AbortSignal, over: AbortSignal, tell: (frame: Frame) => void): Promise<void> {
    try {
      await door.follow(watched.path, watched.frames.at(-1)?.id, hear, over);
      if (!stop.aborted) throw new Broken('a stream goes on', 'the watcher was sent away');
    } catch (cause) {
      if (!(cause instanceof Gone && stop.aborted)) throw cause;
    }
    function hear(frame: Frame): void {
      if (frame.event === 'error') throw new Broken('a stream goes on', 'the watcher was broken off', frame);
      watched.frames.push(frame);
      tell(frame);
    }
  }

  /** No more work and no more kills. */
  async function lastLife(): Promise<void> {
    const gateway = startGateway(location);
    try {
      await comeToRest(await enter(gateway), { ledger, clients, chance: chance.fork('last answers') });
    } finally {
      await gateway.kill();
    }
  }

  async function look(final = false): Promise<void> {
    await noErrors(location.errorLog);
    const file = join(location.dataDir, 'log.db');
    // Killed before it had a log: no client can have received an answer.
    if (!existsSync(file) || (await stat(file)).size === 0) {
      if (ledger.writes.length > 0) throw new Broken('the log is there', 'it is gone');
      return;
    }
    const evidence = await readEvidence({
      dataDir: location.dataDir,
      journal: location.journal,
      copy: join(root, 'copy'),
    });
    try {
      counts = await keepsPromises(evidence, ledger);
      open = stillOpen(evidence);
      if (final) everythingEnded(evidence, ledger);
    } finally {
      await evidence.close();
    }
  }

  function typical(): number {
    return starts.toSorted((a, b) => a - b)[Math.floor(starts.length / 2)] ?? 1_000;
  }
}

async function diedAlone(gateway: GatewayProcess, stop: AbortSignal): Promise<void> {
  const code = await gateway.ended;
  if (!stop.aborted) throw new Broken('it stays up', `it ended with ${code}`);
}

function describe(counts: Counts | undefined): string {
  if (!counts) return 'no log yet';
  const { events, tasks, receipts, effects, cut, acknowledged, retried, delivered } = counts;
  return `${events} events (${delivered} delivered), ${tasks} tasks, ${receipts} receipts, ${effects} effects (${cut} cut), ${acknowledged} writes acknowledged, ${retried} retried`;
}
