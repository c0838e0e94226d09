/** The log is part of the proof: a database that was edited by hand, cut or put back is found out, and the first bad event is named. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { beforeEach, describe, expect, test } from 'vitest';
import { exportAll } from '../../../src/cli/commands/proof/export.ts';
import { verify } from '../../../src/cli/commands/proof/verify.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { EventDraft } from '../../../src/model/events.ts';
import { eventLeaf } from '../../../src/receipt/merkle/event-hash.ts';
import { inclusionProof, verifyLeaf } from '../../../src/receipt/merkle/proofs.ts';
import { createCheckpoints } from '../../../src/receipt/seal/checkpoints.ts';
import { logHeadHash } from '../../../src/receipt/seal/log-head.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { aDirectory, aLog, typed } from '../../support/process/cli.ts';
import { spellOut } from '../../support/store/spell-out.ts';

let dir: string;
beforeEach(async () => {
  dir = await aDirectory();
  await aLog(['hello', 'read plan', 'write plan anew'], { at: dir });
});

/** As the gateway does now and then. */
async function signed(at = dir, before?: string) {
  const runtime = await openCoreRuntime({ dataDir: at });
  try {
    const { store, log, keyring } = runtime;
    const heads = await createCheckpoints({ store, log, signer: keyring.signer(), clock: systemClock }).take();
    if (before) await store.retain(before);
    return heads;
  } finally {
    await runtime.close();
  }
}

/** Something else happens. */
async function more(): Promise<void> {
  const runtime = await openCoreRuntime({ dataDir: dir });
  const event: EventDraft = {
    event: 'vendor.tollbridge.note',
    resource: { object: 'gateway', id: 'here' },
    payload: {},
  };
  await runtime.log.commit({ decide: () => ({ events: [event] }) });
  await runtime.close();
}

function byHand(sql: string): void {
  const db = new Database(join(dir, 'log.db'));
  db.exec(sql);
  db.close();
}

const checked = async (what = 'all', more: object = {}) => {
  const { code, out } = await typed(() => verify(what, { data: dir, json: true, ...more }));
  return { code, ...JSON.parse(out) };
};
const id = (at: number) => `evt_${String(at).padStart(16, '0')}`;

test('a whole log: every event, every signed head, every receipt', async () => {
  await signed();
  const { code, events, records } = await checked();
  expect({ code, records }).toEqual({ code: 0, records: 3 });
  // Behind the head stands the event that holds it.
  expect(events).toMatchObject({ pruned: 0, heads: 1, commitments: 3, unsigned: 1 });
  expect((await typed(() => verify('all', { data: dir }))).out).toMatch(
    /^ok {3}3 receipts, nothing missing, nothing changed\n {5}\d+ events: 1 signed head fits \(1 event since\), 3 receipts sealed over exactly these\n/,
  );
});

test('heads are signed only when there is something new, and each names the one before it', async () => {
  const first = await signed();
  expect(await signed()).toEqual({});
  await more();
  const second = await signed();
  expect(first.events).toMatchObject({ tree: 'events', previous: null, first_event_id: id(1) });
  expect(second.events?.previous).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect((await checked()).events).toMatchObject({ heads: 2, commitments: 3 });
});

describe.each([
  ['before a head was signed over them', false],
  ['after a head was signed over them', true],
])('events edited by hand, %s', (_, withHead) => {
  beforeEach(async () => {
    if (withHead) await signed();
  });

  test('one word in one event', async () => {
    byHand(`UPDATE events SET body = replace(body, 'read_note', 'read_vote') WHERE position =
      (SELECT min(position) FROM events WHERE body LIKE '%read_note%')`);
    const { code, valid, first_bad } = await checked();
    expect({ code, valid }).toEqual({ code: 1, valid: false });
    expect(first_bad.code).toBe(withHead ? 'event_edited' : 'commitment_mismatch');
    expect(first_bad.message).toMatch(
      withHead ? /^event evt_\d{16}: it is not the event that was written there/ : /receipt_/,
    );
  });

  test('one event deleted', async () => {
    byHand('DELETE FROM events WHERE position = 20');
    expect((await checked()).first_bad).toMatchObject({ code: 'event_deleted', event_id: id(20) });
  });

  test('the first events deleted', async () => {
    byHand('DELETE FROM events WHERE position <= 3');
    expect((await checked()).first_bad).toMatchObject({ code: 'event_deleted', event_id: id(1) });
  });

  test('the last events deleted', async () => {
    byHand('DELETE FROM events WHERE position > 40');
    const { first_bad } = await checked();
    expect(first_bad.code).toBe('event_deleted');
    expect(first_bad.message).toMatch(/^the log ends after 40 events; /);
  });

  test('two events exchanged', async () => {
    byHand(`CREATE TEMP TABLE two AS SELECT position, body FROM events WHERE position IN (20, 21);
      UPDATE events SET body = (SELECT body FROM two WHERE two.position = 41 - events.position) WHERE position IN (20, 21)`);
    expect((await checked()).first_bad).toMatchObject({ code: 'event_deleted', event_id: id(20) });
  });

  test('one event inserted between others, with the numbers of the rest moved on', async () => {
    spellOut(join(dir, 'log.db'));
    byHand(`CREATE TEMP TABLE moved AS SELECT position, resource, sequence, place, body FROM events WHERE position >= 20;
      DELETE FROM events WHERE position >= 20;
      INSERT INTO events SELECT position + 1, resource, sequence + 1000,  place,
        replace(body, printf('evt_%016d', position), printf('evt_%016d', position + 1)) FROM moved;
      INSERT INTO events SELECT position, resource, sequence, place, body FROM moved WHERE position = 20`);
    const { first_bad } = await checked();
    expect(first_bad.code).toBe(withHead ? 'event_edited' : 'event_inserted');
    expect(first_bad.event_id).toBe(id(21));
  });
});

describe('columns edited beside an intact body', () => {
  const AT = '(SELECT max(position) FROM events WHERE position < 30)';
  test.each([
    ['its number', `UPDATE events SET sequence = sequence + 5000 WHERE position = ${AT}`, 'sequence'],
    [
      'its resource',
      `UPDATE events SET resource = (SELECT min(id) FROM resources), sequence = 7777 WHERE position = ${AT}`,
      'sequence',
    ],
    ['its place', `UPDATE events SET place = (SELECT min(id) FROM places) WHERE position = ${AT}`, 'resource'],
    [
      'the session it is listed under',
      `UPDATE places SET session = 'session_x' WHERE id = (SELECT place FROM events WHERE position = ${AT})`,
      'place',
    ],
    [
      'the workspace it is listed under',
      `UPDATE places SET workspace = 'ws_x' WHERE id = (SELECT place FROM events WHERE position = ${AT})`,
      'place',
    ],
    [
      'the name of its resource',
      `UPDATE resources SET name = name || 'x' WHERE id = (SELECT resource FROM events WHERE position = ${AT})`,
      'resource',
    ],
    [
      'the index of its resource',
      `DELETE FROM stretches WHERE resource = (SELECT resource FROM events WHERE position = ${AT})`,
      'stretch',
    ],
    ['the index of its workspace', 'DELETE FROM spans', 'span'],
    [
      'what its resource counts from',
      `UPDATE resources SET base = 3 WHERE id = (SELECT resource FROM events WHERE position = ${AT})`,
      'sequence',
    ],
  ])('%s', async (_, sql, column) => {
    byHand(sql);
    const { code, first_bad } = await checked();
    expect({ code, first_bad }).toMatchObject({ code: 1, first_bad: { code: 'columns_mismatch' } });
    expect(first_bad.message).toContain(`its ${column} in the database`);
  });

  test('a body that is no JSON any more is named', async () => {
    await signed();
    byHand(`UPDATE events SET body = substr(body, 1, 60) WHERE position = 20`);
    expect((await checked()).first_bad).toMatchObject({ code: 'event_edited', event_id: id(20) });
  });

  test('a log that was pruned has nothing of it', async () => {
    await signed(dir, '9999-01-01T00:00:00.000Z');
    await more();
    expect((await checked()).code).toBe(0);
  });
});

describe('one receipt in the log', () => {
  const taskIn = async (at: number): Promise<string> => {
    const runtime = await openCoreRuntime({ dataDir: dir });
    const [stored] = await runtime.store.receipts({ after: at - 1, limit: 1 });
    await runtime.close();
    return stored!.receipt.identifiers.task_id;
  };
  const BAD = { code: 1, task_events: 'mismatch', first_bad: { code: 'events_mismatch' } };

  test('is checked with the events of its task', async () => {
    const task = await taskIn(1);
    expect(await checked(task)).toMatchObject({ code: 0, valid: true, task_events: 'ok' });
    expect((await typed(() => verify(task, { data: dir }))).out).toContain(
      'the events of its task are the ones it was sealed over',
    );
  });

  test.each([
    ['edited', `UPDATE events SET body = replace(body, '"created_at":"2', '"created_at":"1') WHERE position = :at`],
    ['no longer JSON', `UPDATE events SET body = substr(body, 1, 40) WHERE position = :at`],
    ['deleted', `DELETE FROM events WHERE position = :at`],
    ['given to another task', `UPDATE events SET resource = 1, sequence = 9999 WHERE position = :at`],
  ])('finds an event of its task that was %s, and the others are still valid', async (_, sql) => {
    const [task, other] = [await taskIn(1), await taskIn(0)];
    if (sql.includes('replace')) spellOut(join(dir, 'log.db'));
    byHand(
      sql.replace(
        ':at',
        `(SELECT e.position FROM events e JOIN resources r ON r.id = e.resource
          WHERE r.object = 'task' AND r.name = '${task}' ORDER BY e.position LIMIT 1 OFFSET 2)`,
      ),
    );
    expect(await checked(task)).toMatchObject(BAD);
    expect(await checked(other)).toMatchObject({ code: 0, task_events: 'ok' });
  });

  test('says that the events were pruned', async () => {
    const task = await taskIn(1);
    await signed(dir, '9999-01-01T00:00:00.000Z');
    expect(await checked(task)).toMatchObject({ code: 0, valid: true, task_events: 'pruned' });
  });
});

test('an event edited together with its leaf does not fit the signed head, nor its receipt', async () => {
  await signed();
  spellOut(join(dir, 'log.db'));
  // Of no task, so that no receipt covers it: only the head does.
  byHand(`UPDATE events SET body = replace(body, '"object":"event"', '"object":"event" ') WHERE position = 1`);
  expect((await checked()).valid).toBe(true);
  byHand(`UPDATE events SET body = replace(body, '"metadata":{}', '"metadata":{"x":1}') WHERE position = 1;
    DELETE FROM log_nodes WHERE place = 64`);
  expect((await checked()).first_bad).toMatchObject({ code: 'events_mismatch', event_id: id(1) });
});

test('a head that the gateway did not sign is not believed', async () => {
  await signed();
  spellOut(join(dir, 'log.db'));
  byHand(`UPDATE events SET body = replace(body, '"tree":"events","size":', '"tree":"events","size":1') WHERE body LIKE '%"tree":"events"%';
    DELETE FROM log_nodes; DELETE FROM log_tree`);
  expect((await checked()).first_bad.code).toMatch(/rolled_back|log_head_invalid/);
});

test('pruned events stay provable by their hashes, and the rest still verifies', async () => {
  await signed();
  const runtime = await openCoreRuntime({ dataDir: dir });
  const kept = (await runtime.store.event(id(7)))!;
  await runtime.close();
  await signed(dir, '9999-01-01T00:00:00.000Z');
  await more();
  const latest = (await signed()).events!;
  const { code, events } = await checked();
  expect(code).toBe(0);
  expect(events.pruned).toBeGreaterThan(40);
  expect(events).toMatchObject({ commitments: 0 });

  const again = await openCoreRuntime({ dataDir: dir });
  const proof = await inclusionProof(6, latest.size, again.store.logTree.nodes);
  await again.close();
  expect(verifyLeaf(eventLeaf(kept), proof, latest.root)).toBe(true);
  expect(verifyLeaf(eventLeaf({ ...kept, actor: 'another' }), proof, latest.root)).toBe(false);

  byHand(`UPDATE log_nodes SET hash = zeroblob(32) WHERE place % 64 > 0`);
  expect((await checked()).valid).toBe(false);
});

test('heads go on from the last one also when retention has taken it', async () => {
  const before = (await signed()).events!;
  await signed(dir, '9999-01-01T00:00:00.000Z');
  // Twice: the head that is pruned the second time names the one that was pruned the first time.
  await more();
  const pruned = (await signed(dir, '9999-01-01T00:00:00.000Z')).events!;
  expect(pruned.previous).toBe(logHeadHash(before));
  await more();
  expect((await signed(dir, '9999-01-01T00:00:00.000Z')).events!.previous).toBe(logHeadHash(pruned));
  expect((await checked()).code).toBe(0);
});

describe('an export', () => {
  let out: string;
  let lines: string[];
  beforeEach(async () => {
    await signed();
    out = join(dir, 'out');
    await typed(() => exportAll(out, { data: dir }));
    lines = (await readFile(join(out, 'events.jsonl'), 'utf8')).trimEnd().split('\n');
  });
  const checkedFiles = async (changed: readonly string[]) => {
    await writeFile(join(out, 'events.jsonl'), `${changed.join('\n')}\n`);
    return (await checked(out)).first_bad;
  };

  test('is checked with its events, and names the first one that does not fit', async () => {
    expect((await checked(out)).events).toMatchObject({ events: lines.length, heads: 2, commitments: 3, unsigned: 0 });
    expect((await checkedFiles(lines.with(9, lines[9]!.replace('"sequence":', '"sequence":1'))))?.code).toMatch(
      /event|commit/,
    );
    expect(await checkedFiles(lines.toSpliced(9, 1))).toMatchObject({ code: 'event_deleted', event_id: id(10) });
    expect(await checkedFiles(lines.slice(0, -3))).toMatchObject({ code: 'rolled_back' });
    expect(await checkedFiles(lines.toSpliced(9, 2, lines[10]!, lines[9]!))).toMatchObject({ event_id: id(10) });
    expect(await checkedFiles(lines.with(4, '{"no":"event"}'))).toMatchObject({
      code: 'event_edited',
      event_id: id(5),
    });
    expect(await checkedFiles(lines)).toBeUndefined();
  });

  test('of one task has its events, and its receipt says whether they are all there', async () => {
    const receipts = (await readFile(join(out, 'receipts.jsonl'), 'utf8')).trimEnd().split('\n');
    const task = JSON.parse(receipts[1]!).identifiers.task_id;
    await typed(() => exportAll(out, { data: dir, task }));
    const own = (await readFile(join(out, 'events.jsonl'), 'utf8')).trimEnd().split('\n');
    expect((await checked(out)).events).toMatchObject({ events: own.length, heads: 0, commitments: 1 });
    expect((await checkedFiles(own.slice(1)))?.code).toBe('event_deleted');
    expect((await checkedFiles(own.slice(0, -1)))?.code).toBe('event_deleted');
    expect((await checkedFiles(own.with(2, own[2]!.replace('"created_at":"2', '"created_at":"1'))))?.code).toBe(
      'commitment_mismatch',
    );
  });
});
