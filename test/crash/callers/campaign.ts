/**
 * Callers outside, over every protocol that has them, and the processes they call killed under them again and again. All share one data
 * directory. After every round the files are looked at; in the end everything left open is brought to an end.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal } from '../../../src/model/words.ts';
import { Broken } from '../broken.ts';
import { httpDoor } from '../clients/door.ts';
import { createLedger } from '../clients/ledger.ts';
import type { CampaignDatabase } from '../database.ts';
import { readEvidence } from '../evidence.ts';
import { type GatewayLocation, noErrors, startGateway } from '../gateway-process.ts';
import { type CallCounts, callsAreAccountedFor } from '../promises/calls.ts';
import { logHasNoGap } from '../promises/log.ts';
import { livesAreLegal, receiptsVerify } from '../promises/tasks.ts';
import type { Chance } from '../random.ts';
import { type CallLedger, createCallLedger } from './ledger.ts';
import { ahpOverHttp, mcpOverHttp } from './over-http.ts';
import { acpRelay, ahpOverStdio, type CallersLocation, mcpOverStdio, toolServer } from './over-stdio.ts';

export interface CallersReport extends CallCounts {
  readonly kills: number;
  readonly ledger: CallLedger;
  readonly look: Parameters<typeof callsAreAccountedFor>[0];
  readonly reached: ReadonlySet<string>;
}

const config = (data: string, server: readonly string[], database: CampaignDatabase | undefined) => `
data: ${data}
${database ? `store: ${JSON.stringify(database.section())}` : ''}
tools: { box: { mcp: { command: ${JSON.stringify(server)}, effects: { look: read } } } }
doors: { ahp: { away_ms: 1500, settle_ms: 0 } }
rules:
  - { id: notes, when: { tool: note }, then: allow }
  - { id: looks, when: { tool: look }, then: allow }
  - { id: never, when: { tool: forbidden }, then: block, say: not here }
`;
const LONGEST_START_MS = 60_000;
const LONGEST_REST_MS = 90_000;

export interface CallersOptions {
  readonly program: string;
  readonly root: string;
  readonly chance: Chance;
  /** At least so many processes are killed; whole rounds are finished. */
  readonly kills: number;
  /** Holds the log, instead of a file. */
  readonly database?: CampaignDatabase;
  say(text: string): void;
}

export async function callThrough({
  program,
  root,
  chance,
  kills,
  database,
  say,
}: CallersOptions): Promise<CallersReport> {
  const dataDir = join(root, 'data');
  const gatewayLocation: GatewayLocation = {
    program,
    dataDir,
    config: join(root, 'tollbridge.yaml'),
    journal: join(root, 'effects'),
    errorLog: join(root, 'errors.log'),
  };
  const location: CallersLocation = { program, config: gatewayLocation.config, journal: join(root, 'journal') };
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  for (const file of [gatewayLocation.journal, gatewayLocation.errorLog, location.journal]) await writeFile(file, '');
  await writeFile(location.config, config(dataDir, toolServer(location), database));
  // Every process that is started from here inherits it.
  Object.assign(process.env, database?.env);
  const ledger = createCallLedger();
  let killed = 0;
  let report: CallersReport | undefined;

  for (let round = 1; killed < kills; round += 1) {
    const name = (kind: string) => `n${round}${kind}`;
    await Promise.all([
      withGateway(name),
      during(mcpOverStdio(location, ledger, name('m'))),
      during(ahpOverStdio(location, ledger, name('a'))),
      during(acpRelay(location, ledger, name('r'))),
    ]);
    killed += 4;
    report = await look();
    say(`round ${round}, ${killed} kills: ${describe(report)}`);
  }
  await comeToRest();
  report = await look();
  say(`the end: ${describe(report)}`);
  if (report.open > 0) throw new Broken('every call is sealed in the end', `${report.open} are not`);
  return report;

  async function during(caller: ReturnType<typeof mcpOverStdio>): Promise<void> {
    await Promise.race([caller.atWork, sleep(LONGEST_START_MS, undefined, { ref: false })]);
    await sleep(chance.between(5, 300));
    await caller.kill();
  }

  async function withGateway(name: (kind: string) => string): Promise<void> {
    const gateway = startGateway(gatewayLocation);
    try {
      const ready = await gateway.ready;
      if (!ready) throw new Broken('it starts again', (await readFile(gatewayLocation.errorLog, 'utf8')).slice(-2_000));
      const stop = new AbortController();
      const callers: Promise<void>[] = [];
      const atWork = [mcpOverHttp, ahpOverHttp].map(
        (caller, at) =>
          new Promise<void>((worked) => {
            callers.push(caller(ready, ledger, name(`h${at}`), { stop: stop.signal, worked }).finally(worked));
          }),
      );
      await Promise.all(atWork);
      await sleep(chance.between(5, 300));
      stop.abort();
      await gateway.kill();
      await Promise.all(callers);
    } finally {
      await gateway.kill();
    }
  }

  /** A last process finds everything the dead ones left, and ends it. */
  async function comeToRest(): Promise<void> {
    const gateway = startGateway(gatewayLocation);
    try {
      const ready = await gateway.ready;
      if (!ready) throw new Broken('it starts again', 'for the last time');
      const door = httpDoor(ready.url, ready.token, ready.token);
      for (const until = Date.now() + LONGEST_REST_MS; ; ) {
        const left = (await door.list('/v1/tasks')).filter(({ status }) => !isTerminal(String(status)));
        if (left.length === 0) return;
        if (Date.now() > until)
          throw new Broken('every call is sealed in the end', `${left.length} tasks are open`, left);
        await sleep(200);
      }
    } finally {
      await gateway.kill();
    }
  }

  async function look(): Promise<CallersReport> {
    await noErrors(gatewayLocation.errorLog);
    const copy = join(root, 'copy');
    const evidence = await readEvidence({
      ...{ dataDir, journal: gatewayLocation.journal, copy },
      ...(database && { copyLog: database.copyLog }),
    });
    try {
      logHasNoGap(evidence);
      livesAreLegal(evidence, createLedger());
      await receiptsVerify(evidence);
      const reached = new Set((await readFile(location.journal, 'utf8')).split('\n').filter(Boolean));
      const { events, receipts, runs } = evidence;
      const seen = { events, receipts, runs };
      return { ...callsAreAccountedFor(seen, ledger, reached), kills: killed, ledger, look: seen, reached };
    } finally {
      await evidence.close();
      await rm(copy, { recursive: true, force: true });
    }
  }
}

function describe({ called, answered, sealed, oneCommit, open, unknown }: CallCounts): string {
  const how = `${unknown} unknown, ${oneCommit} decided and ended in one commit`;
  return `${called} calls, ${answered} answered, ${sealed} sealed (${how}), ${open} in open work`;
}
