/** A log between a file and a database, both ways, as the command copies it: everything arrives, and half a copy is no log. */
import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { storeCheck } from '../../../src/cli/commands/store/check.ts';
import { storeCopy } from '../../../src/cli/commands/store/copy.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { projector } from '../../../src/core/events/projector.ts';
import type { CoreEvent, EventDraft } from '../../../src/model/events.ts';
import { openInstallation } from '../../../src/runtime/installation/installation.ts';
import { type Cells, CONTENT } from '../../../src/store/engine/copy/content.ts';
import { copyContent } from '../../../src/store/engine/copy/copy.ts';
import {
  createContent,
  openContent,
  openDatabaseFiles,
  openStore,
  type StoreLocation,
} from '../../../src/store/index.ts';
import { createDatabase, PASSWORD, type TestDatabase } from '../../support/postgres/server.ts';
import { aDirectory, aLog, typed } from '../../support/process/cli.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
  vi.stubEnv('TOLLBRIDGE_SECRET_copy', PASSWORD);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await database.drop();
});

const open = (location: StoreLocation) => openStore(location, { clock: systemClock, projector });

const noteOf = (text: string): EventDraft => ({
  event: 'vendor.tollbridge.note',
  resource: { object: 'door', id: 'x' },
  payload: { text },
});

/** Tasks that ended, one that waits, a file of several parts, an idempotent request, and events that were pruned. */
async function aRichLog(): Promise<{ dir: string; blob: string }> {
  const { dir } = await aLog(['hello', 'read plan', 'send the plan to ana'], { apart: true, approve: 'leave open' });
  const store = await open({ path: join(dir, 'log.db') });
  const blob = await store.putBlob(new Uint8Array(600_000).map((_, at) => at % 251));
  const note = noteOf('é \u0007');
  await store.commit({ idempotency: { scope: 'a', body: 'b' }, decide: () => ({ events: [note], result: { n: 1 } }) });
  await store.retain(new Date(Date.now() - 1).toISOString());
  await store.commit({ decide: () => ({ events: [note, note] }) });
  await store.close();
  return { dir, blob };
}

async function contents(location: StoreLocation): Promise<Record<string, Cells[]>> {
  const content = await openContent(location);
  try {
    const found: Record<string, Cells[]> = {};
    for (const { name } of CONTENT) found[name] = [...(await content.page(name, undefined, 100_000))];
    return found;
  } finally {
    await content.close();
  }
}

async function events(location: StoreLocation): Promise<CoreEvent[]> {
  const store = await open(location);
  try {
    const tip = await store.tip({ of: 'all' });
    const missing: CoreEvent[] = [];
    const floor = (await contents(location)).meta!.find(([name]) => name === 'floor')?.[1];
    const after = floor === undefined ? {} : { after: `evt_${String(floor).padStart(16, '0')}` as never };
    for await (const event of store.read({ stream: { of: 'all' }, ...after, ...(tip && { upTo: tip }) }))
      missing.push(event);
    return missing;
  } finally {
    await store.close();
  }
}

const inDatabase = (schema: string) => ({ url: database.url, password: PASSWORD, schema });

test('a log goes from a file into a database and back, and is the same log', { timeout: 60_000 }, async () => {
  const { dir, blob } = await aRichLog();
  const file = join(dir, 'log.db');
  const there = inDatabase('there_and_back');
  const options = { data: dir, toSecret: 'copy', toSchema: there.schema };
  const gone = await typed(() => storeCopy(dir, database.url, options));
  expect(gone).toMatchObject({ code: 0 });
  expect(gone.out).toMatch(/^Copied and verified: \d+ events, 2 receipts, 1 file\n/);
  expect(gone.err).toMatch(/^copied \d+ rows of events$/m);
  const before = await contents({ path: file });
  for (const name of ['meta', 'idempotency', 'blobs', 'blob_parts', 'baseline', 'receipts', 'events', 'words'] as const)
    expect([name, before[name]!.length > 0]).toEqual([name, true]);
  expect(await contents(there)).toEqual(before);

  const back = join(dir, 'back.db');
  const returned = await typed(() =>
    storeCopy(database.url, back, { data: dir, fromSecret: 'copy', fromSchema: there.schema, json: true }),
  );
  expect(JSON.parse(returned.out)).toMatchObject({ object: 'store_copy', verified: true });
  expect(await contents({ path: back })).toEqual(before);
  expect(await events({ path: back })).toEqual(await events({ path: file }));

  // It goes on as one log: lists, numbers, repeats, files.
  for (const location of [there, { path: back }]) {
    const store = await open(location);
    const own = await open({ path: file });
    const list = { object: 'task', where: { state: 'COMPLETED' } };
    expect(await store.list(list)).toEqual(await own.list(list));
    expect((await store.blob(blob))?.byteLength).toBe(600_000);
    const repeat = { idempotency: { scope: 'a', body: 'b' }, decide: () => ({ events: [] }) };
    expect(await store.commit(repeat)).toMatchObject({ repeated: true, result: { n: 1 } });
    const last = await store.tip({ of: 'resource', object: 'door', id: 'x' });
    const { events: written } = await store.commit({ decide: () => ({ events: [noteOf('more')] }) });
    expect(written[0]!.sequence).toBe((await store.event(last!))!.sequence + 1);
    expect(await store.columnFault()).toBeUndefined();
    expect((await store.compareRows()).fault).toBeUndefined();
    await own.close();
    await store.close();
  }
});

test('a file is copied to another file, and there is nothing to copy onto a log', async () => {
  const { dir } = await aLog(['hello']);
  const copy = join(dir, 'copy.db');
  expect((await typed(() => storeCopy(dir, copy, { data: dir }))).code).toBe(0);
  expect(await contents({ path: copy })).toEqual(await contents({ path: join(dir, 'log.db') }));
  const again = await typed(() => storeCopy(dir, copy, { data: dir }));
  expect(again).toMatchObject({ code: 4 });
  expect(again.err).toContain(`${copy} holds a log already\n  fix: name a file or a schema that holds nothing yet`);
  expect(await typed(() => storeCopy(dir, dir, { data: dir }))).toMatchObject({ code: 2 });
  expect(await typed(() => storeCopy(join(dir, 'none'), copy, { data: dir }))).toMatchObject({ code: 3 });
  const schema = 'a_log';
  const other = await open(inDatabase(schema));
  await other.commit({ decide: () => ({ events: [noteOf('a log of its own')] }) });
  await other.close();
  const refused = await typed(() => storeCopy(dir, database.url, { data: dir, toSecret: 'copy', toSchema: schema }));
  expect(refused).toMatchObject({ code: 4 });
  expect(refused.err).toContain('holds a log already');
});

test.each(['file', 'database'])('a copy to a %s that breaks off says so, and is begun anew', async (kind) => {
  const { dir } = await aRichLog();
  const source = { path: join(dir, 'log.db') };
  const target: StoreLocation = kind === 'file' ? { path: join(dir, 'new.db') } : inDatabase('broken_off');
  const before = await contents(source);
  const from = await openContent(source);
  const to = await createContent(target);
  const dies = {
    ...to,
    write: async (name: (typeof CONTENT)[number]['name'], rows: readonly Cells[]) => {
      if (name === 'receipts') throw new Error('the process died');
      await to.write(name, rows);
    },
  };
  await expect(copyContent({ from, to: dies })).rejects.toThrow('the process died');
  await to.close();
  await from.close();

  await expect(open(target)).rejects.toThrow(/is an incomplete copy of a log/);
  const [typedTarget, more] =
    kind === 'file'
      ? [(target as { path: string }).path, {}]
      : [database.url, { schema: 'broken_off', secret: 'copy' }];
  const checked = await typed(() => storeCheck(typedTarget, { data: dir, ...more }));
  expect(checked).toMatchObject({ code: 1 });
  expect(checked.out).toMatch(/^BAD .*is an incomplete copy of a log\n +fix: copy again with "tollbridge store copy"/m);
  expect(await contents(source)).toEqual(before);

  const named = kind === 'file' ? {} : { toSecret: 'copy', toSchema: 'broken_off' };
  expect(await typed(() => storeCopy(dir, typedTarget, { data: dir, ...named }))).toMatchObject({ code: 0 });
  expect(await contents(target)).toEqual(before);
});

test('a row that does not arrive as it left is noticed', async () => {
  const { dir } = await aLog(['hello']);
  const from = await openContent({ path: join(dir, 'log.db') });
  const to = await createContent({ path: join(dir, 'new.db') });
  onTestFinished(async () => {
    await to.close();
    await from.close();
  });
  const alters = {
    ...to,
    write: async (name: (typeof CONTENT)[number]['name'], rows: readonly Cells[]) =>
      to.write(name, name === 'receipts' ? rows.map((row) => [...row.slice(0, -1), `${row.at(-1)} `]) : rows),
  };
  await expect(copyContent({ from, to: alters })).rejects.toThrow(/table receipts was copied and does not read back/);
});

test('keys that are sealed in a database go with its log, and never without the secret', async () => {
  const { dir } = await aLog(['hello', 'send the plan to ana'], { approve: 'leave open', apart: true });
  vi.stubEnv('TOLLBRIDGE_SECRET_seal', 's'.repeat(32));
  vi.stubEnv('TOLLBRIDGE_SECRET_copy', PASSWORD);
  const from = { ...inDatabase('sealed_from'), keys: async () => 's'.repeat(32) };
  await typed(() => storeCopy(dir, database.url, { data: dir, toSecret: 'copy', toSchema: from.schema }));
  // The keys of the directory move into the database with the first gateway there.
  const installation = await openInstallation({ dataDir: dir, sharedFiles: () => openDatabaseFiles(from) });
  const { keyId } = (await installation.keyring()).signer();
  const asks = (await installation.pendingActs((await installation.keyring()).signer()).list()).length;
  await installation.close();
  expect(asks).toBe(1);

  const empty = await aDirectory();
  const named = { fromSecret: 'copy', fromSchema: from.schema, data: empty };
  const refused = await typed(() => storeCopy(database.url, join(empty, 'log.db'), named));
  expect(refused).toMatchObject({ code: 2 });
  expect(refused.err).toContain('name that secret with --keys');

  const toFile = await typed(() => storeCopy(database.url, join(empty, 'log.db'), { ...named, keys: 'seal' }));
  expect(toFile).toMatchObject({ code: 0 });
  const own = await openInstallation({ dataDir: empty });
  const keyring = await own.keyring();
  expect(keyring.signer().keyId).toBe(keyId);
  expect(await own.pendingActs(keyring.signer()).list()).toHaveLength(1);
  expect((await typed(() => storeCheck(undefined, { data: empty }))).code).toBe(0);

  const there = { ...inDatabase('sealed_to'), keys: from.keys };
  const more = { ...named, data: await aDirectory(), keys: 'seal', toSecret: 'copy', toSchema: there.schema };
  expect(await typed(() => storeCopy(database.url, database.url, more))).toMatchObject({ code: 0 });
  const copied = await openDatabaseFiles(there);
  onTestFinished(copied.close);
  expect(copied.list()).toContain('keys/receipt-keys.json');
  expect(await copied.acts.list()).toHaveLength(1);
  const checked = await typed(() =>
    storeCheck(database.url, { data: more.data, secret: 'copy', schema: there.schema, keys: 'seal' }),
  );
  expect(checked).toMatchObject({ code: 0 });
});

test('a log that is being served is not copied, and neither is one that was changed', async () => {
  const { dir } = await aLog(['hello']);
  const path = join(dir, 'log.db');
  const serving = await open({ path });
  const lease = await serving.lease('duty:upkeep');
  const refused = await typed(() => storeCopy(dir, join(dir, 'new.db'), { data: dir }));
  expect(refused).toMatchObject({ code: 4 });
  expect(refused.err).toContain('a gateway is running on');
  expect(existsSync(join(dir, 'new.db'))).toBe(false);
  await lease!.close();
  await serving.close();

  const edited = new Database(path);
  edited.exec("UPDATE tasks SET body = replace(body, 'COMPLETED', 'CANCELED')");
  edited.close();
  const invalid = await typed(() => storeCopy(dir, join(dir, 'new.db'), { data: dir }));
  expect(invalid).toMatchObject({ code: 4 });
  expect(invalid.err).toMatch(/the copy in .* is not valid: the row of task/);
  await expect(open({ path: join(dir, 'new.db') })).rejects.toThrow(/incomplete copy/);
});

test('store check says what is well, and what is not says what to do', async () => {
  const { dir } = await aRichLog();
  const well = await typed(() => storeCheck(undefined, { data: dir }));
  expect(well.out).toMatch(/^ok +schema +\d+, the newest$/m);
  expect(well.out).toMatch(/receipts +2 receipts, nothing missing, nothing changed/);
  expect(well.out).toMatch(/events +\d+ events, without a gap in positions or sequences/);
  expect(well.out).toMatch(/rows +\d+ rows equal to a rebuild, \d+ rest on pruned events/);
  expect(well.code).toBe(0);

  const options = { data: dir, secret: 'copy', schema: 'to_check', json: true };
  await typed(() => storeCopy(dir, database.url, { data: dir, toSecret: 'copy', toSchema: 'to_check' }));
  const found = await typed(() => storeCheck(database.url, options));
  const findings = found.out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(findings.map(({ check, state }) => `${check} ${state}`)).toEqual([
    'log ok',
    'schema ok',
    'receipts ok',
    'events ok',
    'rows ok',
  ]);
  expect(findings[0].says).toMatch(/PostgreSQL \d+.* ms a query, not encrypted, no synchronous standby, schema 1\.\d/);
  await database.query(`DELETE FROM to_check.events WHERE position = (SELECT max(position) - 1 FROM to_check.events)`);
  const hole = await typed(() => storeCheck(database.url, { ...options, json: false }));
  expect(hole).toMatchObject({ code: 1 });
  expect(hole.out).toMatch(/^BAD .*\n +fix: restore the log from a backup/m);

  expect(await typed(() => storeCheck(join(dir, 'none.db'), { data: dir }))).toMatchObject({ code: 3 });
  const other = await aDirectory();
  await mkdir(join(other, 'sub'));
  await copyFile(join(dir, 'log.db'), join(other, 'sub', 'x.db'));
  const without = await typed(() => storeCheck(join(other, 'sub', 'x.db'), { data: other }));
  expect(without.out).toMatch(/BAD +keys .* are not there: /);
});
