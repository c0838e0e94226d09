/** A fleet as the live matrix sees a gateway: its clients come in through the balancer, so each request is served by another replica. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { StoreLocation } from '../../src/store/index.ts';
import { DOORS, type Setup, slowMail } from '../matrix/backends.ts';
import { clientOf, type Gateway, overAt, rulesIn, writeRules } from '../matrix/gateway-client.ts';
import { type Fleet, openFleet } from '../support/fleet/fleet.ts';

export interface FleetSetup extends Setup {
  readonly fleet: Fleet;
}

/** A store other than the file of the data directory: how gateways find it, and how its log is read here. */
export interface FleetStore {
  readonly config: object;
  readonly env: Readonly<Record<string, string>>;
  readonly location: StoreLocation;
}

export async function openFleetSetup(count: number, store?: FleetStore): Promise<FleetSetup> {
  const fleet = await openFleet({
    count,
    ...(store && { env: store.env }),
    config: (dir) => ({
      ...(store && { store: store.config }),
      policies: [existsSync(rulesIn(dir)) ? rulesIn(dir) : writeRules(dir, [])],
      tools: slowMail(join(dir, 'journal')),
      doors: DOORS,
    }),
  });
  const near = await gatewayOf(fleet, store?.location);
  await firstWork(near);
  return {
    fleet,
    backend: 'demo',
    near,
    far: undefined,
    agent: 'demo',
    rules: near.rules,
    hands: near,
    stop: fleet.close,
  };
}

/** Clients look for the newest task, so there is one before them. */
async function firstWork(near: Gateway): Promise<void> {
  const [workspace] = await near.list('/v1/workspaces');
  const { id } = await near.post('/v1/sessions', { workspace_id: workspace.id });
  const input = { role: 'user', parts: [{ type: 'text', text: 'hello', visibility: 'public' }] };
  await overAt(near, (await near.post(`/v1/sessions/${id}/tasks`, { input })).id);
}

async function gatewayOf(fleet: Fleet, log: StoreLocation | undefined): Promise<Gateway> {
  const { dir, data, config, journal, balancer } = fleet;
  const token = await fleet.key('ana');
  const agentToken = await fleet.key('teller', 'agent', ['*']);
  const address = {
    ...{ name: 'fleet', dir, url: balancer.url, token, agentToken, data, config, env: {}, withoutDemoTools: false },
    stop: fleet.close,
  };
  return clientOf(address, journal, log);
}
