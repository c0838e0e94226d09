/** Many kills over several gateways: each begins with nothing, is killed again and again, and has to come to rest. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type DirectoryReport, liveThrough } from './data-directory.ts';
import type { MomentKind } from './moments.ts';
import { createChance } from './random.ts';

export interface CampaignOptions {
  readonly program: string;
  /** Below here everything is written; each gateway that keeps its promises is removed. */
  readonly root: string;
  readonly seed: string;
  readonly kills: number;
  readonly killsPerDirectory: number;
  readonly clients: number;
  say(text: string): void;
}
export interface Summary extends Omit<DirectoryReport, 'moments'> {
  readonly kills: number;
  readonly gateways: number;
  readonly moments: Readonly<Partial<Record<MomentKind, number>>>;
  /** Milliseconds from start to listening, shortest first. */
  readonly starts: readonly number[];
}

export async function runCampaign(options: CampaignOptions): Promise<Summary> {
  const { program, root, seed, kills, killsPerDirectory, clients, say } = options;
  const starts: number[] = [];
  const reports: DirectoryReport[] = [];
  const gateways = Math.ceil(kills / killsPerDirectory);
  for (let runtime = 0; runtime < gateways; runtime += 1) {
    const here = join(root, `gateway-${runtime}`);
    const chance = createChance(`${seed}/gateway ${runtime}`);
    const due = Math.min(killsPerDirectory, kills - runtime * killsPerDirectory);
    const deps = {
      program,
      root: here,
      chance,
      clients,
      starts,
      say: (text: string) => say(`gateway ${runtime}: ${text}`),
    };
    const { report } = await liveThrough(due, deps);
    reports.push(report);
    await rm(here, { recursive: true, force: true });
  }
  const sum = (of: (report: DirectoryReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  const moments: Partial<Record<MomentKind, number>> = {};
  for (const kind of reports.flatMap((report) => report.moments)) moments[kind] = (moments[kind] ?? 0) + 1;
  return {
    kills,
    gateways,
    moments,
    starts: starts.toSorted((a, b) => a - b),
    events: sum((r) => r.events),
    delivered: sum((r) => r.delivered),
    tasks: sum((r) => r.tasks),
    receipts: sum((r) => r.receipts),
    asks: sum((r) => r.asks),
    replays: sum((r) => r.replays),
    takenUp: sum((r) => r.takenUp),
    keptOpen: sum((r) => r.keptOpen),
    effects: sum((r) => r.effects),
    cut: sum((r) => r.cut),
    unknown: sum((r) => r.unknown),
    acknowledged: sum((r) => r.acknowledged),
    retried: sum((r) => r.retried),
  };
}
