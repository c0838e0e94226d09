/** What can be read beside runs: memory, usage, health, and the page for machines. */
import { describe, expect, test } from 'vitest';
import { OPERATIONS, REASONS } from '../../../mappings/runs.ts';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import { openRuns, pair, type RunsDoor } from '../../support/runs/gateway.ts';

describe('memory', () => {
  async function remember(runs: RunsDoor, body: object, actor?: object) {
    const memory = { scope: 'tenant', owner_id: 'o', content: 'x', provenance: {}, ...body };
    const { resource } = await runs.at.send(
      'resource.create',
      { object: 'memory', body: memory as never, metadata: {} },
      actor ? { actor: actor as never } : {},
    );
    return resource.id;
  }

  async function filled() {
    const runs = await openRuns({ agents: [] });
    const home = await runs.at.send('resource.create', { object: 'workspace', body: { name: 'w', root: 'file:///w' } });
    const shared = await remember(runs, { content: 'the sky is blue', metadata: { subject_id: 'user_1' } });
    const local = await remember(runs, {
      scope: 'workspace',
      owner_id: home.resource.id,
      workspace_id: home.resource.id,
      content: { a: 1 },
    });
    const old = await remember(runs, { content: 'gone', expires_at: '2025-01-01T00:00:00.000Z' });
    const persona = { name: 'p', version: '1', description: 'd', entry_workflow: 'w', autonomy_tier: 'act_auto' };
    const { resource: thinker } = await runs.at.send('resource.create', {
      object: 'persona',
      body: { ...persona, receipt_policy: 'optional' },
    });
    const own = await remember(runs, {
      scope: 'persona',
      owner_id: thinker.id,
      content: 'an agent thinks',
      embedding_ref: 'vec_1',
    });
    const proof = await remember(runs, { content: 'only for receipts', visibility: 'receipt_only' });
    return { runs, workspace: home.resource.id, shared, local, old, own, proof };
  }

  test('is listed, filtered and paged; nothing may be stored on the way', async () => {
    const { runs, workspace, shared, local, old, own } = await filled();
    const ids = async (query: string) => {
      const { status, headers, body } = await runs.call('GET', `/v1/memory/items${query}`);
      expect(status).toBe(200);
      expect(headers.get('cache-control')).toBe('no-store');
      return body.items.map(({ id }: { id: string }) => id);
    };
    expect(await ids('')).toEqual([shared, local, old]);
    expect(await ids('?include_harness=true')).toEqual([shared, local, old, own]);
    expect(await ids(`?workspace_id=${workspace}`)).toEqual([local]);
    expect(await ids('?subject_id=user_1')).toEqual([shared]);
    expect(await ids('?status=expired')).toEqual([old]);
    expect(await ids('?limit=1&offset=1')).toEqual([local]);
    const { body } = await runs.call('GET', '/v1/memory/items');
    expect(body).toMatchObject({ limit: 50, offset: 0, request_id: expect.any(String) });
    expect(Object.keys(body.items[0])).toEqual([
      'id',
      'content',
      'status',
      'workspace_id',
      'subject_id',
      'created_at',
      'updated_at',
    ]);
  });

  test('one item, with its embedding when asked for', async () => {
    const { runs, own, proof } = await filled();
    expect((await runs.call('GET', `/v1/memory/items/${own}`)).body).not.toHaveProperty('embedding');
    const { body } = await runs.call('GET', `/v1/memory/items/${own}?include_embedding=true`);
    expect(body).toMatchObject({ id: own, content: 'an agent thinks', status: 'active', embedding: 'vec_1' });
    for (const id of ['memory_none', proof]) {
      expect(await runs.call('GET', `/v1/memory/items/${id}`)).toMatchObject({
        status: 404,
        body: { error: 'not_found', reason_code: 'MEMORY_ITEM_NOT_FOUND' },
      });
    }
    const theirs = await runs.call('GET', '/v1/memory/items', undefined, { authorization: pair('reader') });
    expect(theirs).toMatchObject({ status: 403, body: { reason_code: 'AUTH_FORBIDDEN' } });
  });

  test('as files people can read', async () => {
    const { runs, shared, local, workspace } = await filled();
    const { body } = await runs.call('GET', '/v1/memory/export');
    expect(body.files[0]).toEqual({
      path: `memory/shared/${shared}.md`,
      content: expect.stringMatching(/^---\nid: ".*"\nstatus: "active"\n[\s\S]*\n---\n\nthe sky is blue\n$/),
    });
    expect(body.files[1].path).toBe(`memory/${workspace}/${local}.md`);
    expect(body.files[1].content).toContain('```json\n{\n  "a": 1\n}\n```');
  });

  test.each(['limit=0', 'limit=x', 'offset=-1', 'include_harness=maybe'])('%s is refused', async (query) => {
    const runs = await openRuns({ agents: [] });
    expect(await runs.call('GET', `/v1/memory/items?${query}`)).toMatchObject({
      status: 400,
      body: { reason_code: 'MEMORY_QUERY_PARAMS_INVALID' },
    });
  });
});

describe('usage', () => {
  const rules = '- {id: reads, when: {effect: read}, then: allow, say: reading changes nothing}';

  test('counts runs, ends, tools and tokens by period, for a caller that may see them', async () => {
    const agent = createDemoAgent({ pause: async () => {} });
    const runs = await openRuns({ agents: [agent], tools: [createDemoTools()], rules });
    const first = await runs.create('read plan', { workspace_id: 'a', subject_id: 'u1' });
    await runs.until(first.body.id, 'succeeded');
    runs.at.clock.advance(25 * 60 * 60 * 1000);
    const second = await runs.create('hello', { workspace_id: 'b' });
    await runs.until(second.body.id, 'succeeded');
    runs.at.clock.advance(1);
    const usage = async (query = '', headers = {}) => {
      const { body } = await runs.call('GET', `/v1/usage${query}`, undefined, headers);
      return body.usage.map(
        (row: { period_start: string; event_type: string; count: number; quantity: number }) =>
          `${row.period_start.slice(0, 13)} ${row.event_type} ${row.count} ${row.quantity}`,
      );
    };
    expect(await usage()).toEqual([
      '2026-01-01T00 run.created 1 1',
      '2026-01-01T00 task.completed 1 1',
      '2026-01-01T00 tokens.consumed 1 4',
      '2026-01-01T00 tool.invoked 1 1',
      '2026-01-02T00 run.created 1 1',
      '2026-01-02T00 task.completed 1 1',
      '2026-01-02T00 tokens.consumed 1 2',
    ]);
    expect(await usage('?granularity=month&event_type=run.created')).toEqual(['2026-01-01T00 run.created 2 2']);
    expect(await usage('?granularity=hour&workspace_id=b&event_type=run.created')).toEqual([
      '2026-01-02T01 run.created 1 1',
    ]);
    expect(await usage('?subject_id=u1&event_type=task.completed')).toEqual(['2026-01-01T00 task.completed 1 1']);
    expect(await usage('?start=2026-01-02T00:00:00Z&event_type=run.created')).toEqual([
      '2026-01-02T00 run.created 1 1',
    ]);
    expect(await usage('?end=2026-01-02T00:00:00%2B00:00&event_type=run.created')).toEqual([
      '2026-01-01T00 run.created 1 1',
    ]);
    expect(await usage('', { authorization: pair('acme') })).toEqual([]);
    const { body } = await runs.call('GET', '/v1/usage');
    expect(body).toMatchObject({
      start: '2026-01-01T00:00:00.000Z',
      end: '2026-01-02T01:00:00.001Z',
      granularity: 'day',
    });
  });

  test.each([
    'event_type=x',
    'granularity=week',
    'start=yesterday',
    'end=2026-01-01',
    'start=2026-02-01T00:00:00Z&end=2026-01-01T00:00:00Z',
  ])('%s is refused', async (query) => {
    const runs = await openRuns({ agents: [] });
    expect(await runs.call('GET', `/v1/usage?${query}`)).toMatchObject({
      status: 400,
      body: { error: 'bad_request', reason_code: 'USAGE_QUERY_PARAMS_INVALID' },
    });
  });
});

describe('health', () => {
  test('asks nobody who they are', async () => {
    let trouble: string | undefined;
    const runs = await openRuns({ agents: [], trouble: () => trouble });
    const get = (path: string) => runs.call('GET', path, undefined, { authorization: '' });
    for (const prefix of ['', '/agent-harness']) {
      expect(await get(`${prefix}/health/live`)).toMatchObject({ status: 200, body: { status: 'ok' } });
      expect(await get(`${prefix}/health/ready`)).toMatchObject({ status: 200, body: { status: 'ok' } });
      expect(await get(`${prefix}/health/deps`)).toMatchObject({
        status: 200,
        body: { status: 'ok', dependencies: { log: 'ok', policy: 'ok' } },
      });
    }
    trouble = 'no room';
    expect((await get('/health/live')).status).toBe(200);
    expect(await get('/health/ready')).toMatchObject({ status: 503, body: { status: 'unavailable' } });
    expect(await get('/health/deps')).toMatchObject({ status: 503, body: { dependencies: { log: 'down' } } });
  });
});

test('the page for machines has every operation and every code', async () => {
  const runs = await openRuns({ agents: [] });
  const { status, body } = await runs.call('GET', '/openapi.json', undefined, { authorization: '' });
  expect(status).toBe(200);
  const there = Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods as object).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(there.toSorted()).toEqual(OPERATIONS.map(({ method, path }) => `${method} ${path}`).toSorted());
  expect(body.components.schemas.Error.properties.reason_code.enum).toEqual(REASONS.map(({ code }) => code));
  expect(body.paths['/v1/runs'].post.responses['400'].description).toContain('INPUT_PLAN_INVALID');
  expect(body.paths['/v1/runs'].post.parameters).toContainEqual(
    expect.objectContaining({ name: 'idempotency-key', in: 'header', required: true }),
  );
});
