/** What is tagged or found to be sensitive is nowhere: not in the files of the store, not on any stream, not in a receipt. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createCleaner, readPath, readTags } from '../../../adapters/runs/server/sensitive.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { openRuns } from '../../support/runs/gateway.ts';

const CANARIES = {
  masked: 'canary-masked-7Qz',
  dropped: 'canary-dropped-8Ry',
  found: 'canary-found-9Sx',
  nested: 'canary-nested-1Tw',
  listed: 'canary-listed-2Uv',
  metadata: 'canary-metadata-3Vu',
  plan: 'canary-plan-4Wt',
  signal: 'canary-signal-5Xs',
  tool: 'canary-tool-6Yr',
  key: 'canary-key-7Zq',
  number: '731904255',
} as const;

/** Everything the gateway has on disk, as text. */
async function onDisk(dir: string): Promise<string> {
  const files = await readdir(dir, { recursive: true, withFileTypes: true });
  const texts = await Promise.all(
    files.filter((file) => file.isFile()).map((file) => readFile(join(file.parentPath, file.name), 'latin1')),
  );
  return texts.join('\n');
}

test('no planted secret is in a file, a stream or a receipt', async () => {
  const received: string[] = [];
  const logged: string[] = [];
  const note = (fields: object, message: string) => void logged.push(JSON.stringify(fields) + message);
  const agent = scriptedAgent(async (sink, { task }) => {
    // An agent that repeats everything it was given.
    received.push(JSON.stringify(task));
    const say = (text: string) =>
      sink.emit({
        event: 'agent.message',
        payload: { message: { role: 'assistant', parts: [{ type: 'text', text, visibility: 'public' }] } },
      });
    await say(JSON.stringify(task));
    const answer = await sink.ask({ kind: 'input', key: 'k', question: 'and?' });
    await say(JSON.stringify(answer));
    await sink.emit({
      event: 'tool.requested',
      payload: {
        tool_call_id: 'c1',
        name: 'pay',
        kind: 'tool',
        input: { card: { credit_card: CANARIES.tool } },
        effect: 'pay',
        evidence: 'observed',
      },
    });
    await sink.emit({
      event: 'tool.completed',
      payload: { tool_call_id: 'c1', name: 'pay', status: 'ok', output: 'paid' },
    });
    return undefined;
  });
  const runs = await openRuns({ agents: [agent], logger: { info: note, warn: note, error: note } });
  const created = await runs.create(
    {
      user_query: 'go',
      note: CANARIES.masked,
      extra: CANARIES.dropped,
      db_password: CANARIES.found,
      deep: { er: [{ name: CANARIES.nested }, { access_token: { a: [CANARIES.listed] } }] },
      account: Number(CANARIES.number),
    },
    {
      metadata: { owner: { mail: CANARIES.metadata }, kept: 'this stays' },
      plan: { version: 2, steps: [{ api_key: CANARIES.plan }] },
      sensitivity_tags: [
        { path: '$.input.note', classification: 'proprietary' },
        { path: '$.input.extra', classification: 'pii', redaction: 'drop', retention_hint_days: 30 },
        { path: '$.input.deep.er[0].name', classification: 'pii', redaction: 'mask' },
        { path: '$.input.account', classification: 'financial' },
        { path: '$.metadata.owner', classification: 'pii', redaction: 'drop' },
        { path: '$.input.not.there', classification: 'health' },
      ],
    },
    { 'idempotency-key': CANARIES.key },
  );
  expect(created.status).toBe(201);
  const { id } = created.body;
  await runs.seen(id, 'run.awaiting_input');
  const signal = {
    action: 'submit_input',
    payload: { secret: CANARIES.signal, colour: 'blue' },
    idempotency_key: CANARIES.key,
  };
  expect((await runs.call('POST', `/v1/runs/${id}/signal`, signal)).status).toBe(200);
  await runs.until(id, 'succeeded');

  const task = `task_${id.slice(4)}`;
  const [receipt] = await runs.at.receipts(task);
  const reported = JSON.stringify([
    await runs.events(id),
    await runs.stream(id),
    (await runs.call('GET', `/v1/runs/${id}`)).body,
    created.body,
    receipt,
    await runs.at.all(),
    logged,
  ]);
  await runs.at.runtime.store.rebuild();
  const kept = await onDisk(runs.at.dir);
  for (const [where, canary] of Object.entries(CANARIES)) {
    // What a tool was given is the agent's to say; the door shows a summary of it without what is sensitive.
    if (where !== 'tool') {
      expect(reported.includes(canary), `${where} was told`).toBe(false);
      expect(kept.includes(canary), `${where} was kept`).toBe(false);
    }
  }
  // The agent that is asked to work with it has it as it came.
  for (const where of ['masked', 'dropped', 'nested', 'listed', 'found', 'number'] as const) {
    expect(JSON.stringify(received), `${where} was heard`).toContain(CANARIES[where]);
  }
  expect(JSON.stringify([await runs.events(id), await runs.stream(id)])).not.toContain(CANARIES.tool);

  // What was not sensitive is still there, and the receipt says what was taken out.
  expect(reported).toContain('this stays');
  const taken = (receipt?.redactions ?? []).map(
    ({ field, reason }) => `${field.replace(/^\/events\/evt_\d+\//, '')} ${reason}`,
  );
  expect(taken).toEqual(
    expect.arrayContaining([
      'input.note proprietary:mask',
      'input.extra pii:drop',
      'input.deep.er[0].name pii:mask',
      'input.account financial:mask',
      'metadata.owner pii:drop',
      'input.db_password credential:mask (found by its name)',
      'input.deep.er[1].access_token credential:mask (found by its name)',
      'plan.steps[0].api_key credential:mask (found by its name)',
    ]),
  );
  expect(taken.some((line) => line.includes('not.there'))).toBe(false);
});

describe('paths', () => {
  test.each([
    ['$.input', ['input']],
    ['$.input.a', ['input', 'a']],
    ['$.metadata.a.b_c', ['metadata', 'a', 'b_c']],
    ['$.input.a[0].b', ['input', 'a', 0, 'b']],
    ['$.input[12]', ['input', 12]],
    ['$.input.a-b', ['input', 'a-b']],
  ])('%s', (path, steps) => {
    expect(readPath(path)).toEqual(steps);
  });

  test.each([
    '',
    '$',
    '$.',
    'input',
    '$.inputs',
    '$.input.',
    '$.input..a',
    '$.input[a]',
    '$.input[-1]',
    "$.input['a']",
    '$.input.*',
    '$.input[*]',
    '$.output.a',
    ' $.input',
    '$.input a',
  ])('%s is none', (path) => {
    expect(readPath(path)).toBeUndefined();
  });

  test('are taken apart or refused, whatever they are', () => {
    fc.assert(
      fc.property(fc.string(), (path) => {
        const read = readPath(path);
        if (read) expect(path.startsWith('$.input') || path.startsWith('$.metadata')).toBe(true);
      }),
    );
  });
});

describe('cleaning', () => {
  const cleaner = createCleaner((text) => `d${text.length}`);
  const clean = (value: object, ...tags: object[]) => cleaner.clean(value as never, readTags(tags as never));

  test('masks by default, drops on demand, and leaves everything else as it was', () => {
    const value = { input: { a: 'x', b: [1, { c: 2 }], d: 'stays' } };
    expect(
      clean(
        value,
        { path: '$.input.a', classification: 'pii' },
        { path: '$.input.b[1].c', classification: 'health', redaction: 'drop' },
      ),
    ).toEqual({
      value: { input: { a: { redacted: true, classification: 'pii', digest: 'd3' }, b: [1, {}], d: 'stays' } },
      marks: [
        { field: 'input.b[1].c', reason: 'health:drop' },
        { field: 'input.a', reason: 'pii:mask' },
      ],
    });
  });

  test('a dropped element leaves its place, and a tag within another is still reported', () => {
    const value = { input: { list: ['a', 'b'], whole: { part: 'p' } } };
    const { value: kept, marks } = clean(
      value,
      { path: '$.input.list[0]', classification: 'pii', redaction: 'drop' },
      { path: '$.input.whole', classification: 'pii', redaction: 'drop' },
      { path: '$.input.whole.part', classification: 'pii' },
    );
    expect(kept).toEqual({ input: { list: [null, 'b'] } });
    expect(marks.map(({ field }) => field)).toEqual(['input.list[0]', 'input.whole.part', 'input.whole']);
  });

  test('what only looks like a mask is masked', () => {
    const value = { input: { password: { redacted: true, classification: 'pii', digest: 'the password itself' } } };
    expect(JSON.stringify(clean(value).value)).not.toContain('the password itself');
  });

  test('finds sensitive keys however they are spelled, and nothing in their neighbours', () => {
    const keys = [
      'password',
      'PassWD',
      'client_secret',
      'API-Key',
      'apiKey',
      'xTokenY',
      'SSN',
      'creditCard',
      'private_key',
      'Credentials',
    ];
    const value = { input: Object.fromEntries([...keys, 'passage', 'key', 'name'].map((key) => [key, 'v'])) };
    const { marks } = clean(value);
    expect(marks.map(({ field }) => field)).toEqual(keys.map((key) => `input.${key}`));
    expect(marks.map(({ reason }) => reason.split(':')[0])).toContain('financial');
  });

  test('leaves no tagged value behind, whatever it is in', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom('mask', 'drop'), (around, redaction) => {
        const value = { input: { around, secret_thing: { canary: 'CANARY-VALUE' }, tagged: ['CANARY-VALUE'] } };
        const { value: kept } = clean(value, { path: '$.input.tagged', classification: 'pii', redaction });
        expect(JSON.stringify(kept)).not.toContain('CANARY-VALUE');
      }),
    );
  });
});
