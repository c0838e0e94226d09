/** Many faults over several fleets on one database server: each begins with nothing, and has to come to rest. */
import { type Cluster, openCluster } from '../../support/postgres/cluster.ts';
import { createChance } from '../random.ts';
import { type FaultKind, pickFault } from './faults.ts';
import { type InstallationReport, liveThroughFaults } from './installation.ts';

export interface FleetCampaignOptions {
  readonly seed: string;
  readonly faults: number;
  readonly faultsPerFleet: number;
  readonly faultsPerLook: number;
  readonly clients: number;
  say(text: string): void;
}

export async function runFleetCampaign(options: FleetCampaignOptions): Promise<readonly InstallationReport[]> {
  const { seed, faults, faultsPerFleet, faultsPerLook, clients, say } = options;
  const reports: InstallationReport[] = [];
  const cluster: Cluster = await openCluster();
  try {
    await cluster.addStandby();
    for (let number = 0; number * faultsPerFleet < faults; number += 1) {
      const chance = createChance(`${seed}/fleet ${number}`);
      const count = Math.min(faultsPerFleet, faults - number * faultsPerFleet);
      const kinds = Array.from({ length: count }, () => pickFault(chance));
      reports.push(
        await liveThroughFaults({
          ...{ cluster, name: `fleet_${number}`, chance, clients, faults: kinds, faultsPerLook },
          say: (text) => say(`fleet ${number}: ${text}`),
        }),
      );
    }
    return reports;
  } finally {
    await cluster.close();
  }
}

export function fleetSentence(reports: readonly InstallationReport[], seconds: number): string {
  const sum = (of: (report: InstallationReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  const kinds: Partial<Record<FaultKind, number>> = {};
  for (const kind of reports.flatMap(({ faults }) => faults)) kinds[kind] = (kinds[kind] ?? 0) + 1;
  const named = Object.entries(kinds).map(([kind, count]) => `${count} ${kind}`);
  return (
    `ok  ${sum(({ faults }) => faults.length)} faults (${named.join(', ')}) in ${reports.length} fleets of three, ${Math.round(seconds)} s, ` +
    `all killed and looked at ${sum((r) => r.looks)} times: ${sum((r) => r.events)} events, ${sum((r) => r.delivered)} deliveries, ` +
    `${sum((r) => r.acknowledged)} writes acknowledged, ${sum((r) => r.again.requests)} requests asked again, ` +
    `${sum((r) => r.again.streams)} times a stream went on, ${sum((r) => r.tasks)} tasks (${sum((r) => r.replays)} replays; ` +
    `gone on with ${sum((r) => r.takenUp)} times), ${sum((r) => r.receipts)} receipts, ${sum((r) => r.asks)} questions ` +
    `(${sum((r) => r.keptOpen)} found open again), ${sum((r) => r.effects)} effects (${sum((r) => r.cut)} cut from their record, ` +
    `${sum((r) => r.unknown)} calls of unknown outcome)`
  );
}
