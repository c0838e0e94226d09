/** A fleet as the live matrix sees a gateway: its clients come in through the balancer, so each request is served by another replica. */
import { join } from 'node:path';
import { DOORS, type Setup, slowMail } from '../matrix/backends.ts';
import { clientOf, type Gateway, overAt, writeRules } from '../matrix/gateway-client.ts';
import { type Fleet, openFleet } from '../support/fleet/fleet.ts';

export interface FleetSetup extends Setup {
  readonly fleet: Fleet;
}

export async function openFleetSetup(count: number): Promise<FleetSetup> {
  const fleet = await openFleet({
    count,
    config: (dir) => ({ policies: [writeRules(dir, [])], tools: slowMail(join(dir, 'journal')), doors: DOORS }),
  });
  const near = await gatewayOf(fleet);
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

async function gatewayOf(fleet: Fleet): Promise<Gateway> {
  const { dir, data, config, journal, balancer } = fleet;
  const token = await fleet.key('ana');
  const agentToken = await fleet.key('teller', 'agent', ['*']);
  const address = {
    ...{ name: 'fleet', dir, url: balancer.url, token, agentToken, data, config, env: {}, withoutDemoTools: false },
    stop: fleet.close,
  };
  return clientOf(address, journal);
}
