/** What a new run may ask for: every check in its order, every reason code, and one run for each key. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { of } from '../../support/gateway/test-gateway.ts';
import { openRuns, pair } from '../../support/runs/gateway.ts';

const agents = () => [scriptedAgent(async () => undefined)];
const tag = (path: string, more: object = {}) => ({ path, classification: 'credential', ...more });

describe('a body that is refused', () => {
  const big = { text: 'x'.repeat(262_144) };
  const cases: readonly [what: string, code: string, body: unknown][] = [
    ['no JSON', 'INPUT_PAYLOAD_INVALID', '{'],
    ['no object', 'INPUT_PAYLOAD_INVALID', []],
    ['no body', 'INPUT_PAYLOAD_INVALID', undefined],
    ['no input', 'INPUT_PAYLOAD_INVALID', { metadata: {} }],
    ['no metadata', 'INPUT_PAYLOAD_INVALID', { input: {} }],
    ['input that is a list', 'INPUT_PAYLOAD_INVALID', { input: [], metadata: {} }],
    ['a workspace that is no text', 'INPUT_PAYLOAD_INVALID', { input: {}, metadata: {}, workspace_id: 7 }],
    ['attachments that are no texts', 'INPUT_PAYLOAD_INVALID', { input: {}, metadata: {}, attachment_refs: [1] }],
    ['an unknown routing hint', 'INPUT_PAYLOAD_INVALID', { input: {}, metadata: {}, routing_hint: 'guess' }],
    ['an unknown run class', 'INPUT_PAYLOAD_INVALID', { input: {}, metadata: {}, run_class: 'huge' }],
    ['streaming that is no truth', 'INPUT_PAYLOAD_INVALID', { input: {}, metadata: {}, streaming: 'yes' }],
    ['tags that are no list', 'INPUT_PAYLOAD_INVALID', { input: {}, metadata: {}, sensitivity_tags: {} }],
    ['too much', 'INPUT_PAYLOAD_TOO_LARGE', { input: big, metadata: {} }],
    ['far too much', 'INPUT_PAYLOAD_TOO_LARGE', { input: { text: 'x'.repeat(3_000_000) }, metadata: {} }],
    ['size before tags', 'INPUT_PAYLOAD_TOO_LARGE', { input: { ...big, password: 'p' }, metadata: {} }],
    ['a sensitive key', 'INPUT_SENSITIVITY_TAG_REQUIRED', { input: { password: 'p' }, metadata: {} }],
    ['one in metadata', 'INPUT_SENSITIVITY_TAG_REQUIRED', { input: {}, metadata: { a: [{ API_Key: 'p' }] } }],
    ['a path from nowhere', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged(tag('input.a'))],
    ['a path elsewhere', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged(tag('$.plan.a'))],
    ['a wildcard', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged(tag('$.input.*'))],
    ['a filter', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged(tag('$.input[?(@.a)]'))],
    ['a deep scan', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged(tag('$..input'))],
    ['no path', 'INPUT_SENSITIVITY_TAG_INVALID_PATH', tagged({ classification: 'pii' })],
    [
      'an unknown class',
      'INPUT_SENSITIVITY_TAG_INVALID_CLASSIFICATION',
      tagged(tag('$.input.a', { classification: 'x' })),
    ],
    ['no class', 'INPUT_SENSITIVITY_TAG_INVALID_CLASSIFICATION', tagged({ path: '$.input.a' })],
    [
      'path before class',
      'INPUT_SENSITIVITY_TAG_INVALID_PATH',
      tagged(tag('$.input.a', { classification: 'x' }), tag('x')),
    ],
    ['a path twice', 'INPUT_SENSITIVITY_TAG_DUPLICATE_PATH', tagged(tag('$.input.a'), tag('$.input.a'))],
    ['an unknown redaction', 'INPUT_PAYLOAD_INVALID', tagged(tag('$.input.a', { redaction: 'hide' }))],
    ['half a day', 'INPUT_PAYLOAD_INVALID', tagged(tag('$.input.a', { retention_hint_days: 0.5 }))],
    ['a plan without steps', 'INPUT_PLAN_INVALID', { input: {}, metadata: {}, plan: { version: 2, steps: [] } }],
    ['an older plan', 'INPUT_PLAN_INVALID', { input: {}, metadata: {}, plan: { version: 1, steps: [{}] } }],
    ['a plan that is a text', 'INPUT_PLAN_INVALID', { input: {}, metadata: {}, plan: 'do it' }],
    ['steps that are texts', 'INPUT_PLAN_INVALID', { input: {}, metadata: {}, plan: { version: 2, steps: ['a'] } }],
  ];

  function tagged(...tags: object[]) {
    return { input: { a: 1 }, metadata: {}, sensitivity_tags: tags };
  }

  test('is refused for the first thing wrong with it, and leaves nothing behind', async () => {
    const runs = await openRuns({ agents: agents() });
    for (const [what, code, body] of cases) {
      const refused = await runs.call('POST', '/v1/runs', body, { 'idempotency-key': 'k' });
      expect(refused, what).toMatchObject({ status: 400, body: { error: 'bad_request', reason_code: code } });
      expect(Object.keys(refused.body).sort(), what).toEqual(['error', 'reason_code', 'request_id']);
    }
    const left = (await runs.at.all()).map(({ event }) => event);
    expect(left.filter((event) => event !== 'vendor.tollbridge.policy_loaded')).toEqual([]);
  });

  test('the credential is checked before the idempotency key, and the key before the body', async () => {
    const runs = await openRuns({ agents: agents() });
    const keyless = await runs.call('POST', '/v1/runs', '{');
    expect(keyless).toMatchObject({ status: 400, body: { reason_code: 'IDEMPOTENCY_KEY_REQUIRED' } });
    const nobody = await runs.call('POST', '/v1/runs', '{', { authorization: '' });
    expect(nobody).toMatchObject({ status: 401, body: { reason_code: 'AUTH_HEADER_MISSING' } });
  });

  test('the limit is met to the byte', async () => {
    const runs = await openRuns({ agents: agents() });
    // {"t":""} and {} are 8 and 2 bytes; one character here has two.
    const fits = { t: `${'é'.repeat(131_000)}${'x'.repeat(262_144 - 262_000 - 10)}` };
    expect((await runs.create(fits)).status).toBe(201);
    expect((await runs.create({ t: `${fits.t}x` })).body.reason_code).toBe('INPUT_PAYLOAD_TOO_LARGE');
  });
});

describe('credentials', () => {
  test.each([
    ['', 'AUTH_HEADER_MISSING'],
    ['Basic YTpi', 'AUTH_HEADER_MALFORMED'],
    ['Bearer ana-secret', 'AUTH_HEADER_MALFORMED'],
    ['Bearer :ana-secret', 'AUTH_HEADER_MALFORMED'],
    ['Bearer ana:', 'AUTH_HEADER_MALFORMED'],
    ['Bearer ana:wrong', 'AUTH_KEY_INVALID'],
    ['Bearer bo:ana-secret', 'AUTH_KEY_INVALID'],
    ['Bearer nobody:nothing', 'AUTH_KEY_INVALID'],
  ])('%s: %s', async (authorization, code) => {
    const runs = await openRuns({ agents: agents() });
    for (const path of ['/v1/runs/run_x', '/v1/memory/items', '/v1/usage', '/v1/runs/run_x/nothing']) {
      expect(await runs.call('GET', path, undefined, { authorization })).toMatchObject({
        status: 401,
        body: { error: 'unauthorized', reason_code: code },
      });
    }
  });

  test('a revoked key says so, and rights that are missing are a refusal of their own', async () => {
    const runs = await openRuns({ agents: agents() });
    runs.revoke('acme');
    const revoked = await runs.create('go', {}, { authorization: pair('acme') });
    expect(revoked).toMatchObject({ status: 401, body: { reason_code: 'AUTH_KEY_REVOKED' } });
    const { body } = await runs.create('go');
    const forbidden = { status: 403, body: { error: 'forbidden', reason_code: 'AUTH_FORBIDDEN' } };
    expect(await runs.create('go', {}, { authorization: pair('nothing') })).toMatchObject(forbidden);
    expect(await runs.create('go', {}, { authorization: pair('reader') })).toMatchObject(forbidden);
    const reader = { authorization: pair('reader') };
    expect((await runs.call('GET', `/v1/runs/${body.id}`, undefined, reader)).status).toBe(200);
    expect(
      await runs.call('POST', `/v1/runs/${body.id}/cancel`, undefined, { authorization: pair('nothing') }),
    ).toMatchObject(forbidden);
  });

  test("another customer's run is not there", async () => {
    const runs = await openRuns({ agents: agents() });
    const { body } = await runs.create('go');
    await runs.until(body.id, 'succeeded');
    const theirs = { authorization: pair('acme') };
    for (const id of [body.id, 'run_none', 'task_x', 'run_%20']) {
      for (const [method, path] of [
        ['GET', `/v1/runs/${id}`],
        ['POST', `/v1/runs/${id}/cancel`],
        ['POST', `/v1/runs/${id}/retry`],
        ['POST', `/v1/runs/${id}/resume`],
        ['POST', `/v1/runs/${id}/signal`],
        ['GET', `/v1/runs/${id}/events`],
        ['GET', `/v1/runs/${id}/events/stream`],
      ] as const) {
        const said = await runs.call(method, path, method === 'POST' ? { action: 'approve' } : undefined, theirs);
        const code = id.includes('%') ? 'ENDPOINT_NOT_FOUND' : 'RUN_NOT_FOUND';
        expect(said, `${method} ${path}`).toMatchObject({
          status: 404,
          body: { error: 'not_found', reason_code: code },
        });
      }
    }
  });
});

describe('one run for each key', () => {
  test('the same request again finds it; another one is refused', async () => {
    const runs = await openRuns({ agents: agents() });
    const ask = (input: object, key = 'once') =>
      runs.call('POST', '/v1/runs', { input, metadata: {} }, { 'idempotency-key': key });
    const first = await ask({ b: 1, a: { d: 2, c: 3 } });
    await runs.until(first.body.id, 'succeeded');
    const again = await ask({ a: { c: 3, d: 2 }, b: 1 });
    expect(again).toMatchObject({ status: 200, body: { id: first.body.id, replayed: true, status: 'succeeded' } });
    expect(again.body.request_id).not.toBe(first.body.request_id);
    expect(await ask({ b: 2 })).toMatchObject({
      status: 409,
      body: { error: 'conflict', reason_code: 'IDEMPOTENCY_KEY_REUSED' },
    });
    expect((await ask({ b: 2 }, 'twice')).status).toBe(201);
    expect(of(await runs.at.all(), 'task.submitted')).toHaveLength(2);
  });

  test('at the same moment, too', async () => {
    const runs = await openRuns({ agents: agents() });
    const asked = await Promise.all(Array.from({ length: 8 }, () => runs.create('go', {}, { 'idempotency-key': 'k' })));
    expect(asked.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 200, 200, 200, 201]);
    expect(new Set(asked.map(({ body }) => body.id)).size).toBe(1);
    expect(of(await runs.at.all(), 'task.submitted')).toHaveLength(1);
  });

  test("a key is the customer's: a colleague finds the run, another customer makes one", async () => {
    const runs = await openRuns({ agents: agents() });
    const as = (name: string) => runs.create('go', {}, { 'idempotency-key': 'k', authorization: pair(name) });
    const [mine, theirs, hers] = [await as('ana'), await as('acme'), await as('colleague')];
    expect([mine.status, theirs.status, hers.status]).toEqual([201, 201, 200]);
    expect(hers.body.id).toBe(theirs.body.id);
    expect(mine.body.id).not.toBe(theirs.body.id);
  });

  test('a secret that is different is another request, though neither is kept', async () => {
    const runs = await openRuns({ agents: agents() });
    const ask = (pin: string) =>
      runs.create(
        { q: 'go', pin },
        { sensitivity_tags: [{ path: '$.input.pin', classification: 'pii', redaction: 'drop' }] },
        { 'idempotency-key': 'k' },
      );
    expect((await ask('1234')).status).toBe(201);
    expect((await ask('1234')).status).toBe(200);
    expect((await ask('4321')).body.reason_code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  test('it survives a restart', async () => {
    const runs = await openRuns({ agents: agents() });
    const first = await runs.create('go', {}, { 'idempotency-key': 'k' });
    await runs.until(first.body.id, 'succeeded');
    await runs.close();
    await runs.at.close();
    const later = await openRuns({ agents: agents(), dir: runs.at.dir, clock: runs.at.clock });
    expect(await later.create('go', {}, { 'idempotency-key': 'k' })).toMatchObject({
      status: 200,
      body: { id: first.body.id, replayed: true },
    });
  });
});

describe('what becomes of what was asked', () => {
  test('a single text is said as a text; anything richer travels whole, with what is meant to be read first', async () => {
    const inputs: unknown[] = [];
    const agent = scriptedAgent(async (_sink, { task }) => {
      inputs.push((task.input as { parts: unknown }).parts);
      return undefined;
    });
    const runs = await openRuns({ agents: [agent] });
    for (const [input, more] of [
      [{ anything: 'hi' }, { attachment_refs: ['https://files.example/a.pdf', 'artifact_none'] }],
      [{ user_query: 'hi', depth: 2 }, {}],
      [{ depth: 2 }, {}],
      [{}, {}],
    ] as const) {
      const { body } = await runs.create(input, more);
      await runs.until(body.id, 'succeeded');
    }
    const text = { type: 'text', text: 'hi', visibility: 'public' };
    const file = (uri: string) => ({
      type: 'file_ref',
      uri,
      mime_type: 'application/octet-stream',
      visibility: 'public',
    });
    const json = (value: object) => ({ type: 'json', value, visibility: 'public' });
    expect(inputs).toEqual([
      [text, file('https://files.example/a.pdf'), file('artifact_none')],
      [text, json({ user_query: 'hi', depth: 2 })],
      [json({ depth: 2 })],
      [json({})],
    ]);
  });

  test('hints, plan and metadata stay with the task; labels name a workspace when they can', async () => {
    const runs = await openRuns({ agents: agents() });
    const home = await runs.at.send('resource.create', {
      object: 'workspace',
      body: { name: 'eng', root: 'file:///e' },
    });
    await runs.at.send('resource.create', { object: 'workspace', body: { name: 'ops', root: 'file:///o' } });
    const taskOf = async (id: string) => runs.at.runtime.store.get('task', `task_${id.slice(4)}`) as Promise<never>;
    const { body } = await runs.create('go', {
      workspace_id: 'ops',
      metadata: { ticket: 7 },
      run_class: 'long',
      routing_hint: 'skip_planning',
      streaming: true,
      plan: { version: 2, steps: [{ do: 'it' }] },
    });
    expect(body.run_class).toBe('long');
    expect(await taskOf(body.id)).toMatchObject({
      metadata: {
        runs: { run_class: 'long', routing_hint: 'skip_planning', streaming: true, metadata: { ticket: 7 } },
        plan: { version: 2, steps: [{ do: 'it' }] },
      },
    });
    const reported = await runs.events(body.id);
    expect(reported[0].payload).toMatchObject({
      redacted: true,
      value: { streaming: true, routing_hint: 'skip_planning' },
    });
    const other = await runs.create('go', { workspace_id: 'nobody knows' });
    expect(other.body.workspace_id).toBe('nobody knows');
    expect(await taskOf(other.body.id)).toMatchObject({ workspace_id: home.resource.id });
    expect(await taskOf(body.id)).not.toMatchObject({ workspace_id: home.resource.id });
  });

  test('a run may go on in a session that is open', async () => {
    const runs = await openRuns({ agents: agents() });
    const room = await runs.at.room();
    const named = await runs.create('go', { metadata: { session_id: room.session } });
    const task = await runs.at.runtime.store.get(`task`, `task_${named.body.id.slice(4)}`);
    expect(task).toMatchObject({ session_id: room.session });
    await runs.until(named.body.id, 'succeeded');
    await runs.at.send('session.close', { session_id: room.session });
    const closed = await runs.create('go', { metadata: { session_id: room.session } });
    expect(closed.status).toBe(201);
  });
});

test('whatever is sent, the answer is one of the page, and never our fault', async () => {
  const runs = await openRuns({ agents: agents() });
  const keys = [
    'input',
    'metadata',
    'workspace_id',
    'attachment_refs',
    'sensitivity_tags',
    'run_class',
    'plan',
  ] as const;
  const nearly = fc.dictionary(fc.constantFrom(...keys), fc.oneof(fc.jsonValue(), fc.constant({}), fc.constant([{}])));
  const signals = fc.record({ action: fc.oneof(fc.constant('approve'), fc.jsonValue()), payload: fc.jsonValue() });
  const { body: run } = await runs.create('go');
  await fc.assert(
    fc.asyncProperty(fc.oneof(nearly, fc.jsonValue()), signals, async (body, signal) => {
      const made = await runs.call('POST', '/v1/runs', body, { 'idempotency-key': crypto.randomUUID() });
      expect([201, 400], JSON.stringify(body)).toContain(made.status);
      const answered = await runs.call('POST', `/v1/runs/${run.id}/signal`, signal);
      expect([400, 409], JSON.stringify(signal)).toContain(answered.status);
    }),
    { numRuns: 40 },
  );
});
