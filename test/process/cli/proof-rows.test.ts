/** What everybody is shown comes from rows beside the log: one that was changed by hand is named, and rows of pruned events are not judged. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { verify } from '../../../src/cli/commands/proof/verify.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { eventId } from '../../../src/model/events.ts';
import { createCheckpoints } from '../../../src/receipt/seal/checkpoints.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { perform } from '../../stories/perform.ts';
import { readStory, storyNames } from '../../stories/story.ts';
import { aDirectory, aLog, typed } from '../../support/process/cli.ts';

let made: string;
let dir: string;
beforeAll(async () => {
  made = await mkdtemp(join(tmpdir(), 'tb-rows-'));
  await aLog(['hello', 'read plan', 'write plan anew'], { at: made });
});
afterAll(() => rm(made, { recursive: true, force: true }));
beforeEach(async () => {
  dir = await aDirectory();
  await cp(made, dir, { recursive: true });
});

function byHand(sql: string): unknown[][] {
  const db = new Database(join(dir, 'log.db'));
  try {
    if (/^SELECT/.test(sql)) return db.prepare(sql).raw().all() as unknown[][];
    db.exec(sql);
    return [];
  } finally {
    db.close();
  }
}
const checked = async () => {
  const { code, out } = await typed(() => verify('all', { data: dir, json: true }));
  return { code, ...JSON.parse(out) };
};

test('rows that nobody touched are what the events fold to', async () => {
  const [[rows]] = byHand('SELECT count(*) FROM projections') as [[number]];
  expect(await checked()).toMatchObject({ code: 0, valid: true, rows: { compared: rows, unproven: 0 } });
  const { out } = await typed(() => verify('all', { data: dir }));
  expect(out).toContain(`     ${rows} rows are what the events fold to\n`);
});

test.each(storyNames())('nor does the story %s leave another row than its events fold to', async (name) => {
  const { after } = await perform(readStory(name), 'core', {
    afterwards: ({ runtime }) => runtime.store.compareRows(),
  });
  expect(after).toEqual({ compared: expect.any(Number), unproven: 0 });
});

/** By table: a change of one row that leaves everything else as it was. */
const EDITS: readonly [table: string, object: string, set: string, what: RegExp][] = [
  ['sessions', 'session', `body = json_set(body, '$.title', 'another')`, /its title is not/],
  ['tasks', 'task', `body = json_set(body, '$.status', 'FAILED')`, /its status is not/],
  ['tasks', 'task', `state = 'WORKING'`, /its column state is not/],
  ['tasks', 'task', `created_at = '2020-01-01T00:00:00.000Z'`, /its column created_at is not/],
  ['messages', 'message', `body = replace(body, '"text":"', '"text":"not ')`, /its parts is not/],
  ['messages', 'message', `body = 'no JSON'`, /its body is not/],
  ['messages', 'message', 'body = NULL', /it is dropped, and its events keep it/],
  ['outcomes', 'outcome', `body = json_set(body, '$.state', 'FAILED')`, /its state is not/],
  ['runs', 'run', `body = '{}'`, /its events drop it/],
  ['tallies', 'tally', `body = json_set(body, '$.created_at', '2020-01-01T00:00:00.000Z')`, /its created_at is not/],
  ['rows', 'ask', `body = json_set(body, '$.state', 'denied')`, /its state is not/],
  ['rows', 'workspace', `owner_id = 'someone'`, /its column owner_id is not/],
];

test.each(EDITS)('a row of %s (%s) with %s is named', async (table, object, set, what) => {
  const where = table === 'rows' ? `WHERE object = '${object}'` : '';
  const [[id]] = byHand(`SELECT id FROM ${table} ${where} ORDER BY id LIMIT 1`) as [[string]];
  byHand(`UPDATE ${table} SET ${set} WHERE id = '${id}' ${where.replace('WHERE', 'AND')}`);
  const { code, valid, first_bad } = await checked();
  expect({ code, valid }).toEqual({ code: 1, valid: false });
  expect(first_bad).toMatchObject({ code: 'row_mismatch', table, object, id, message: expect.stringMatching(what) });
  expect(first_bad.message).toMatch(new RegExp(`^the row of ${object} ${id} in table ${table}: `));
});

test.each(['sessions', 'tasks', 'messages', 'outcomes', 'tallies', 'rows'])(
  'a row put into %s, or taken out',
  async (table) => {
    const columns = table === 'rows' ? "object, 'a_new', created_at, body" : "'a_new', created_at, body";
    const names = table === 'rows' ? 'object, id, created_at, body' : 'id, created_at, body';
    byHand(`INSERT INTO ${table} (${names}) SELECT ${columns} FROM ${table} ORDER BY id LIMIT 1`);
    expect((await checked()).first_bad).toMatchObject({
      table,
      id: 'a_new',
      message: expect.stringMatching(/no event makes it/),
    });
    byHand(`DELETE FROM ${table} WHERE id = 'a_new'`);
    const [[id]] = byHand(`SELECT id FROM ${table} WHERE body IS NOT NULL ORDER BY id LIMIT 1`) as [[string]];
    byHand(`DELETE FROM ${table} WHERE id = '${id}'`);
    expect((await checked()).first_bad).toMatchObject({ table, id, message: expect.stringMatching(/it is missing$/) });
  },
);

describe('when the oldest events were pruned', () => {
  beforeEach(async () => {
    const runtime = await openCoreRuntime({ dataDir: dir });
    const { store, log, keyring } = runtime;
    await createCheckpoints({ store, log, signer: keyring.signer(), clock: systemClock }).take();
    const { created_at } = (await store.event(eventId(40)))!;
    expect((await store.retain(created_at)).dropped).toBeGreaterThan(0);
    await runtime.close();
  });

  test('rows made of them cannot be compared, and are counted', async () => {
    const { code, rows } = await checked();
    expect(code).toBe(0);
    const [[all]] = byHand('SELECT count(*) FROM projections') as [[number]];
    expect(rows.unproven).toBeGreaterThan(0);
    expect(rows.compared).toBeGreaterThan(0);
    expect(rows.compared + rows.unproven).toBe(all);
    const { out } = await typed(() => verify('all', { data: dir }));
    expect(out).toContain(`; cannot be compared: ${rows.unproven} rows, made of pruned events\n`);
  });

  test('one of them that was changed is no error, one of events that are kept is', async () => {
    const [[first, last]] = byHand('SELECT min(id), max(id) FROM tasks') as [[string, string]];
    byHand(`UPDATE tasks SET body = json_set(body, '$.status', 'FAILED') WHERE id = '${first}'`);
    expect(await checked()).toMatchObject({ code: 0, valid: true });
    byHand(`UPDATE tasks SET body = json_set(body, '$.status', 'FAILED') WHERE id = '${last}'`);
    expect((await checked()).first_bad).toMatchObject({ code: 'row_mismatch', table: 'tasks', id: last });
  });
});
