/**
 * Three built gateways on one store, behind a balancer that gives each request to another one. What a client began at one replica goes on
 * at all of them; what a replica held alone is served by the others once it is gone.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { exchange } from '../support/mcp/wire-client.ts';
import { type FleetSetup, openFleetSetup } from './setup.ts';
import { fleetStories } from './stories.ts';

let setup: FleetSetup;
beforeAll(async () => {
  setup = await openFleetSetup(3);
}, 120_000);
afterAll(async () => {
  await setup?.stop();
}, 60_000);

fleetStories(() => setup, 9);

const REVISION = '2025-11-25';

/** A client of MCP that says one thing at a time, and never twice to the same replica. */
function mcpClient() {
  const { url, token } = setup.near;
  let session: string | undefined;
  let count = 0;
  return async (method: string, params: object = {}, headers: Record<string, string> = {}) => {
    const notice = method.startsWith('notifications/');
    count += 1;
    const got = await exchange(`${url}/mcp`, {
      headers: {
        authorization: `Bearer ${token}`,
        'mcp-protocol-version': REVISION,
        ...(session && { 'mcp-session-id': session }),
        ...headers,
      },
      body: { jsonrpc: '2.0', ...(!notice && { id: count }), method, params },
    });
    session ??= got.headers['mcp-session-id'];
    return { ...got, session };
  };
}
const INITIALIZE = { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'client', version: '1' } };

test('an ACP connection over HTTP goes on at every replica: its calls, and the stream of their answers', async () => {
  const { url, token } = setup.near;
  const headers = { authorization: `Bearer ${token}` };
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: 1, clientCapabilities: {} },
  };
  const greeted = await exchange(`${url}/acp`, { headers, body: initialize });
  const id = greeted.headers['acp-connection-id'] as string;
  expect(greeted.status).toBe(200);
  const stream = exchange(`${url}/acp`, {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream', 'acp-connection-id': id },
    frame: (frame) => frame.id === 4,
  });
  for (const call of [2, 3, 4]) {
    const body = { jsonrpc: '2.0', id: call, method: 'session/new', params: { cwd: setup.near.dir, mcpServers: [] } };
    const { status } = await exchange(`${url}/acp`, { headers: { ...headers, 'acp-connection-id': id }, body });
    expect(status).toBe(202);
  }
  const { frames } = await stream;
  expect(frames.map((frame) => [frame.id, typeof frame.result.sessionId])).toEqual(
    [2, 3, 4].map((each) => [each, 'string']),
  );
  const foreign = await exchange(`${url}/acp`, {
    headers: { authorization: `Bearer ${setup.near.agentToken}`, 'acp-connection-id': id },
    body: { jsonrpc: '2.0', id: 5, method: 'session/list', params: {} },
  });
  expect(foreign.status).toBe(404);
});

test('a key that is revoked is refused by every replica at once', async () => {
  const { fleet, near } = setup;
  const key = await fleet.key('leaver');
  const { openApiKeys } = await import('../../src/auth/api-keys.ts');
  const { systemClock } = await import('../../src/core/clock.ts');
  const headers = { authorization: `Bearer ${key}`, 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
  const looked = async () =>
    await Promise.all(fleet.replicas.map(async () => (await fetch(`${near.url}/v1/tasks`, { headers })).status));
  expect(await looked()).toEqual([200, 200, 200]);
  const keys = openApiKeys(fleet.data, systemClock);
  const mine = (await keys.list()).find(({ name }) => name === 'leaver');
  await keys.revoke(mine?.id as string);
  expect(await looked()).toEqual([401, 401, 401]);
});

test('a replica that is killed takes no MCP session with it', async () => {
  const { fleet } = setup;
  const say = mcpClient();
  const { session = '' } = await say('initialize', INITIALIZE);
  await say('notifications/initialized');
  expect((await say('tools/list')).status).toBe(200);
  const { readdirSync } = await import('node:fs');
  const sockets = () => readdirSync(`${fleet.data}/replicas`);
  const holder = session.split('~')[1] as string;
  expect(sockets().filter((name) => name.includes(holder))).toHaveLength(1);
  const victim = await holderOf(holder);
  await fleet.stop(victim, 'SIGKILL');
  // One of the others goes on with it, whichever is asked first, and the other hands requests on to that one.
  for (let time = 0; time < 4; time += 1) {
    const after = await say('tools/list');
    expect(after.status).toBe(200);
    expect(after.headers['mcp-session-id']).toBe(session);
  }
  const foreign = await exchange(`${setup.near.url}/mcp`, {
    headers: { authorization: `Bearer ${setup.near.agentToken}`, 'mcp-session-id': session },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  });
  expect(foreign.status).toBe(404);
  expect(sockets().filter((name) => name.includes(holder))).toEqual([]);
  const again = mcpClient();
  expect((await again('initialize', INITIALIZE)).status).toBe(200);
  expect((await again('tools/list')).status).toBe(200);
  await fleet.start();
});

test('a replica that stands still costs its callers a refusal in time, and its session goes on when it wakes', {
  timeout: 60_000,
}, async () => {
  const { fleet } = setup;
  const say = mcpClient();
  const { session = '' } = await say('initialize', INITIALIZE);
  const victim = await holderOf(session.split('~')[1] as string);
  const others = fleet.replicas.filter((each) => each !== victim);
  fleet.balancer.to(others.map(({ url }) => url));
  victim.child.kill('SIGSTOP');
  try {
    expect((await say('tools/list')).status).toBe(503);
  } finally {
    victim.child.kill('SIGCONT');
    fleet.balancer.to(fleet.replicas.map(({ url }) => url));
  }
  await eventually(async () => (await say('tools/list')).status === 200, 'the session to go on');
});

/** The replica that answers a request for a thing of this mark. */
async function holderOf(mark: string) {
  const { fleet } = setup;
  const { readFileSync, readdirSync, readlinkSync } = await import('node:fs');
  const path = `${fleet.data}/replicas/replica_${mark}.sock`;
  // The process that has this socket open.
  const line = readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .find((each) => each.endsWith(path));
  const inode = line?.trim().split(/\s+/)[6];
  const found = fleet.replicas.find(({ child }) =>
    readdirSync(`/proc/${child.pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${child.pid}/fd/${fd}`) === `socket:[${inode}]`;
      } catch {
        return false;
      }
    }),
  );
  if (!found) throw new Error(`no replica listens at ${path}`);
  return found;
}
