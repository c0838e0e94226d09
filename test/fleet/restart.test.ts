/**
 * A rolling restart under load: each replica is asked to stop and replaced, while clients at every HTTP door go on. The balancer leaves a
 * replica out once it says that it is not ready, as one does that checks readiness, and tries nothing twice.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { event } from '../support/ahp/gateway.ts';
import { openFleet } from '../support/fleet/fleet.ts';
import { exchange } from '../support/mcp/wire-client.ts';
import { createDatabase, PASSWORD } from '../support/postgres/server.ts';

const NATIVE = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'load', version: '1' },
};

test.each(['PostgreSQL', 'a file'])(
  'a rolling restart fails no request at any HTTP door: the log in %s',
  {
    timeout: 400_000,
  },
  async (where) => {
    const database = where === 'PostgreSQL' ? await createDatabase() : undefined;
    onTestFinished(() => database?.drop(), 60_000);
    const fleet = await openFleet({
      count: 3,
      env: { TOLLBRIDGE_SECRET_store: PASSWORD },
      config: () => ({
        ...(database && { store: { url: database.url, secret: 'store' } }),
        listen: { allowed_hosts: ['127.0.0.1'], drain: '700ms' },
        rules: [{ id: 'all', then: 'allow' }],
      }),
    });
    onTestFinished(() => fleet.close(), 60_000);
    const { url } = fleet.balancer;
    const key = await fleet.key('load');
    const bearer = { authorization: `Bearer ${key}` };
    const stop = new AbortController();

    /** Those that said no, or did not answer, once they had. */
    const checking = (async () => {
      while (!stop.signal.aborted) {
        const ready = await Promise.all(
          fleet.known().map(async (each) => {
            const answer = await fetch(`${each}/readyz`, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
            return answer?.status === 200 ? each : undefined;
          }),
        );
        fleet.balancer.to(ready.filter((each) => each !== undefined));
        await pause(50);
      }
    })();

    const failures: string[] = [];
    const answered = new Map<string, number>();
    async function ask(
      door: string,
      path: string,
      request: Parameters<typeof exchange>[1],
    ): Promise<Awaited<ReturnType<typeof exchange>> | undefined> {
      try {
        const got = await exchange(`${url}${path}`, request);
        if (got.status >= 200 && got.status < 300) answered.set(door, (answered.get(door) ?? 0) + 1);
        else failures.push(`${door}: ${got.status} ${JSON.stringify(got.frames)}`);
        return got;
      } catch (cause) {
        failures.push(`${door}: ${String(cause)}`);
        return undefined;
      }
    }
    const rpc = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });
    let count = 0;
    const workspace = (await exchange(`${url}/v1/workspaces`, { method: 'GET', headers: { ...bearer, ...NATIVE } }))
      .frames[0]?.data[0].id;
    const opened = await exchange(`${url}/mcp`, {
      headers: bearer,
      body: rpc('initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'load', version: '1' },
      }),
    });
    const session = {
      ...bearer,
      'mcp-session-id': opened.headers['mcp-session-id'] as string,
      'mcp-protocol-version': '2025-11-25',
    };

    const clients: Readonly<Record<string, () => Promise<unknown>>> = {
      async harn() {
        const made = await ask('harn', '/v1/sessions', {
          headers: { ...bearer, ...NATIVE },
          body: { workspace_id: workspace },
        });
        const id = made?.frames[0]?.id;
        if (id) await ask('harn', `/v1/sessions/${id}`, { method: 'GET', headers: { ...bearer, ...NATIVE } });
      },
      a2a: () =>
        ask('a2a', '/a2a/demo', {
          headers: { ...bearer, 'a2a-version': '1.0' },
          body: rpc('SendMessage', {
            message: { messageId: `m${++count}`, role: 'ROLE_USER', parts: [{ text: 'hello' }] },
          }),
        }),
      'mcp, modern': () =>
        ask('mcp, modern', '/mcp', {
          headers: { ...bearer, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' },
          body: rpc('tools/list', { _meta: META }),
        }),
      'mcp, a session': () => ask('mcp, a session', '/mcp', { headers: session, body: rpc('tools/list') }),
      runs: () =>
        ask('runs', '/v1/usage', {
          method: 'GET',
          headers: { authorization: `Bearer ${key.replace(/^(tbk_[0-9a-f]+)_/, '$1:')}` },
        }),
      ahp: () =>
        ask('ahp', '/ahp', {
          headers: bearer,
          body: rpc(
            'ahp/event',
            event('pre_action', { tool: 'read_file', arguments: { path: 'a' } }, { session_id: 'load' }),
          ),
        }),
      async acp() {
        const initialize = rpc('initialize', { protocolVersion: 1, clientCapabilities: {} });
        const id = (await ask('acp', '/acp', { headers: bearer, body: initialize }))?.headers['acp-connection-id'];
        // Its replica may have ended meanwhile, and the connection with it.
        if (id) await exchange(`${url}/acp`, { method: 'DELETE', headers: { ...bearer, 'acp-connection-id': id } });
      },
    };
    const loads = Object.values(clients).map(async (client) => {
      while (!stop.signal.aborted) {
        await client();
        await pause(100);
      }
    });

    for (const old of [...fleet.replicas]) {
      await fleet.start();
      old.child.kill('SIGTERM');
      expect(await old.ended).toBe(0);
      fleet.forget(old);
    }
    stop.abort();
    await Promise.all([...loads, checking]);
    expect(failures).toEqual([]);
    expect([...answered.keys()].sort()).toEqual(Object.keys(clients).sort());
  },
);
