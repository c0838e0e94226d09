/** Two APIs below `/v1` on one port: each door answers for its own paths, in its own words, with the same keys. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { startGateway } from '../../../src/runtime/gateway.ts';
import { configIn } from '../../support/process/config-in.ts';

const OWNER = { id: 'owner', kind: 'person', scopes: ['*'] } as const;
const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

async function start(yaml = '') {
  const dir = await mkdtemp(join(tmpdir(), 'tb-runs-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, 'tollbridge.yaml'), yaml);
  const config = await configIn(dir, { data: join(dir, 'data'), port: 0 });
  const gateway = await startGateway(config);
  onTestFinished(() => gateway.close());
  const keys = openApiKeys(join(dir, 'data'), systemClock);
  const holder = { id: 'svc', kind: 'service' as const, scopes: ['*'] };
  const { key, record } = await keys.create({ name: 'svc', actor: holder });
  const split = /^(tbk_[0-9a-f]+)_(.+)$/.exec(key)!;
  const pair = `Bearer ${split[1]}:${split[2]}`;
  const call = async (method: string, path: string, headers: Record<string, string> = {}, body?: object) => {
    const response = await fetch(`${gateway.url}${path}`, {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    // Pages for people are answered in plain text; nothing is looked for in those.
    return { status: response.status, body: (text.startsWith('{') ? JSON.parse(text) : {}) as Answered };
  };
  return { gateway, keys, key, record, pair, call };
}

/** The members this file looks at, of whatever was answered. */
interface Answered {
  readonly id: string;
  readonly receipt_id: string;
  readonly reason_code: string;
  readonly paths: object;
  readonly events: { type: string; payload: unknown }[];
}

test('both doors answer for their own paths, and one run is the same work in both', async () => {
  const { key, pair, call, gateway } = await start();
  const native = { ...VERSION, authorization: `Bearer ${key}` };
  const body = { input: { user_query: 'hello' }, metadata: {} };
  const created = await call('POST', '/v1/runs', { authorization: pair, 'idempotency-key': 'k' }, body);
  expect(created).toMatchObject({ status: 201, body: { status: 'queued', replayed: false } });
  const { id } = created.body;
  await gateway.core.idle();
  expect(await call('GET', `/v1/runs/${id}`, { authorization: pair })).toMatchObject({
    status: 200,
    body: { status: 'succeeded' },
  });
  const task = await call('GET', `/v1/tasks/task_${id.slice(4)}`, native);
  expect(task).toMatchObject({ status: 200, body: { status: 'COMPLETED', created_by: 'svc' } });
  expect(await call('GET', `/v1/receipts/${task.body.receipt_id}`, native)).toMatchObject({ status: 200 });

  // Each refuses in its own words.
  const theirs = await call('GET', '/v1/runs/run_none', { authorization: pair });
  expect(theirs).toMatchObject({ status: 404, body: { error: 'not_found', reason_code: 'RUN_NOT_FOUND' } });
  for (const path of ['/v1/tasks/task_none', '/v1/nothing', '/v1/runsx', '/v1/memoriesx']) {
    const ours = await call('GET', path, native);
    expect(ours, path).toMatchObject({ status: 404, body: { error: { code: 'resource_not_found' } } });
  }
  for (const path of ['/v1/sessions', '/v1/tasks', '/v1/memories', '/v1/workspaces']) {
    expect(await call('GET', path, native), path).toMatchObject({ status: 200, body: { object: 'list' } });
  }
  expect(await call('GET', '/v1/memory/items', { authorization: pair })).toMatchObject({
    status: 200,
    body: { items: [] },
  });
  expect(await call('GET', '/v1/usage', { authorization: pair })).toMatchObject({
    status: 200,
    body: { granularity: 'day' },
  });

  // What both have is the native door's at the root, and this one's below the prefix.
  expect(await call('GET', '/health/live')).toMatchObject({ status: 200, body: { status: 'ok', ok: true } });
  expect(await call('GET', '/agent-harness/health/live')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect((await call('GET', '/openapi.json')).body.paths).toHaveProperty('/v1/sessions');
  expect((await call('GET', '/agent-harness/openapi.json')).body.paths).toHaveProperty('/v1/runs');
  expect(await call('GET', `/agent-harness/v1/runs/${id}`, { authorization: pair })).toMatchObject({ status: 200 });
  expect(await call('GET', '/agent-harness/v1/tasks', { authorization: pair })).toMatchObject({
    status: 404,
    body: { reason_code: 'ENDPOINT_NOT_FOUND' },
  });
});

test('a key is its two halves, the printed token goes by the name of its holder, and a revoked key says so', async () => {
  const { gateway, keys, record, pair, call } = await start();
  const get = (authorization: string) => call('GET', '/v1/runs/run_none', { authorization });
  expect((await get(pair)).status).toBe(404);
  expect((await get(`Bearer local:${gateway.token}`)).status).toBe(404);
  expect((await get(`Bearer bo:${gateway.token}`)).body.reason_code).toBe('AUTH_KEY_INVALID');
  expect((await get(pair.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')))).body.reason_code).toBe(
    'AUTH_KEY_INVALID',
  );
  await keys.revoke(record.id);
  expect(await get(pair)).toMatchObject({ status: 401, body: { reason_code: 'AUTH_KEY_REVOKED' } });
});

test('a shut door leaves its paths to nobody, and an open one alone answers for everything', async () => {
  const shut = await start('doors: { runs: false }');
  const native = { ...VERSION, authorization: `Bearer ${shut.key}` };
  expect(await shut.call('GET', '/v1/runs/x', native)).toMatchObject({
    status: 404,
    body: { error: { code: 'resource_not_found' } },
  });
  const alone = await start('doors: { harn: false, runs: { prefix: "" } }');
  expect(await alone.call('GET', '/health/deps')).toMatchObject({ status: 200, body: { dependencies: { log: 'ok' } } });
  expect((await alone.call('GET', '/openapi.json')).body.paths).toHaveProperty('/v1/runs');
  expect((await alone.call('GET', '/agent-harness/health/live')).status).toBe(404);
});

test('a chain of two gateways: a service speaks to one, the other does the work, and both speak runs', async () => {
  const far = await start();
  vi.stubEnv('TOLLBRIDGE_SECRET_far', far.pair.replace('Bearer ', ''));
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const near = await start(`agents: { elsewhere: { runs: { url: "${far.gateway.url}", secret: far } } }`);
  const body = { input: { user_query: 'hello' }, metadata: {} };
  const created = await near.call('POST', '/v1/runs', { authorization: near.pair, 'idempotency-key': 'k' }, body);
  expect(created.status).toBe(201);
  const { id } = created.body;
  await near.gateway.core.idle();
  const here = await near.call('GET', `/v1/runs/${id}/events`, { authorization: near.pair });
  const runs = await far.gateway.core.bridge.list(OWNER, { object: 'task' });
  const [there] = runs.data;
  const path = `/v1/runs/run_${there?.id.slice(5)}/events`;
  const reported = await far.call('GET', path, { authorization: far.pair });
  const steps = (events: { type: string; payload: unknown }[]) =>
    events.flatMap(({ type, payload }) => (type.startsWith('step.') ? [payload] : []));
  expect(steps(here.body.events)).toHaveLength(7);
  // Frame by frame, as the far one said it.
  expect(steps(here.body.events)).toEqual(steps(reported.body.events));
  expect(here.body.events.at(-1)?.type).toBe('run.worker.succeeded');
});

test('health and the description of each API are there for anyone, at the address both doors share', async () => {
  const { call, key } = await start();
  expect(await call('GET', '/health/deps')).toMatchObject({ status: 200, body: { status: 'ok' } });
  const described = await call('GET', '/openapi.json');
  expect(described.status).toBe(200);
  expect(Object.keys(described.body.paths)).toEqual(expect.arrayContaining(['/v1/tasks', '/v1/runs']));
  const native = { ...VERSION, authorization: `Bearer ${key}` };
  expect(await call('GET', '/health/deps', native)).toMatchObject({ status: 200, body: { ok: true } });
  for (const path of ['/health/deps/more', '/health/depsx', '/v1/tasks'])
    expect((await call('GET', path)).status, path).not.toBe(200);
});
