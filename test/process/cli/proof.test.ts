/** Proof: receipts in files and in the log, whole and touched. What is broken is named, and the exit code says so. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { beforeAll, expect, test } from 'vitest';
import { showLog } from '../../../src/cli/commands/history/log.ts';
import { rotateKey } from '../../../src/cli/commands/keys/rotate.ts';
import { exportAll } from '../../../src/cli/commands/proof/export.ts';
import { verify } from '../../../src/cli/commands/proof/verify.ts';
import { aDirectory, aLog, typed } from '../../support/process/cli.ts';

/** Three receipts of one log, as export writes them; read once, because every test wants another copy of them. */
const files = new Map<string, Buffer>();
let ids: readonly string[] = [];

beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-proof-'));
  await aLog(['hello', 'read plan', 'write plan anew'], { at: dir });
  const out = join(dir, 'out');
  await typed(() => exportAll(out, { data: dir, cbor: true }));
  for (const name of await readdir(out)) files.set(name, await readFile(join(out, name)));
  ids = text('receipts.jsonl')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).receipt_id);
  await rm(dir, { recursive: true });
});

const text = (name: string) => files.get(name)?.toString('utf8') ?? '';

async function copy(change: Readonly<Record<string, string | Uint8Array | undefined>> = {}): Promise<string> {
  const dir = await aDirectory();
  for (const [name, bytes] of [...files, ...Object.entries(change)]) {
    if (bytes === undefined) continue;
    await writeFile(join(dir, name), bytes);
  }
  return dir;
}

const checked = (what: string, more: object = {}) => typed(() => verify(what, { ...more }));

test('an export is whole: receipts in both forms, keys, a signed end, and every event', async () => {
  expect([...files.keys()].sort()).toEqual([
    'events.jsonl',
    'keys.json',
    'log-head.json',
    'receipts.cbor',
    'receipts.jsonl',
    'tree-head.json',
  ]);
  const events = text('events.jsonl').trimEnd().split('\n');
  expect(JSON.parse(events[0] ?? '')).toMatchObject({ id: 'evt_0000000000000001', object: 'event' });
  expect(JSON.parse(events.at(-1) ?? '').id).toBe(`evt_${String(events.length).padStart(16, '0')}`);
});

test('what was exported is sound, as a directory, as lines and as an archive', async () => {
  const dir = await copy();
  const [key] = JSON.parse(text('keys.json')).keys;
  const sound = `ok   3 receipts, nothing missing, nothing changed\n     58 events: 1 signed head fits, 3 receipts sealed over exactly these\n     signed with ${key.kid}\n`;
  for (const what of [dir, join(dir, 'receipts.jsonl'), join(dir, 'receipts.cbor')]) {
    expect(await checked(what)).toEqual({ code: 0, out: sound, err: '' });
  }
  expect(JSON.parse((await checked(dir, { json: true })).out)).toEqual({
    valid: true,
    records: 3,
    end: 'complete',
    keys: [key.kid],
    events: { events: 58, pruned: 0, heads: 1, commitments: 3, unsigned: 0 },
  });
});

test('any byte of any record, changed, names that record', async () => {
  const whole = text('receipts.jsonl');
  const lines = whole.split('\n');
  for (const record of [0, 1, 2]) {
    const line = lines[record] ?? '';
    for (const at of [1, Math.floor(line.length / 3), Math.floor(line.length / 2), line.length - 20]) {
      const touched = line.slice(0, at) + (line[at] === 'x' ? 'y' : 'x') + line.slice(at + 1);
      const dir = await copy({ 'receipts.jsonl': lines.with(record, touched).join('\n') });
      const { code, out } = await checked(dir);
      expect(code).toBe(1);
      expect(out).toMatch(new RegExp(`^BAD  .*(${ids[record]}|line ${record + 1}\\b)`));
    }
  }
});

test.each([
  ['one taken out', (lines: string[]) => [lines[0], lines[2]], /^BAD {2}.*missing/],
  ['the end cut off', (lines: string[]) => lines.slice(0, 2), /^BAD {2}the archive ends after 2 records;.* counts 3\n/],
  [
    'two exchanged',
    (lines: string[]) => [lines[1], lines[0], lines[2]],
    /^BAD {2}.*it stands before the record it follows/,
  ],
  ['one twice', (lines: string[]) => [lines[0], lines[1], lines[1], lines[2]], /^BAD {2}/],
  ['nonsense among them', (lines: string[]) => [lines[0], 'hello', lines[2]], /^BAD {2}line 2 is not a receipt/],
])('%s', async (_, change, says) => {
  const lines = text('receipts.jsonl').trimEnd().split('\n');
  const dir = await copy({ 'receipts.jsonl': `${change(lines).join('\n')}\n` });
  const { code, out } = await checked(dir);
  expect(out).toMatch(says);
  expect(code).toBe(1);
});

test('an archive that was touched is no archive, and a record in it that was touched is named', async () => {
  const bytes = files.get('receipts.cbor') ?? Buffer.alloc(0);
  const at = bytes.indexOf('read_note');
  const touched = Buffer.from(bytes);
  touched[at] = 'R'.charCodeAt(0);
  const dir = await copy({ 'receipts.cbor': touched });
  expect((await checked(join(dir, 'receipts.cbor'))).out).toContain(ids[1]);
  const cut = await copy({ 'receipts.cbor': bytes.subarray(0, bytes.length - 5) });
  expect((await checked(join(cut, 'receipts.cbor'))).out).toMatch(/^BAD {2}line 3 is not a receipt/);
});

test('one receipt by itself, and other keys than its own', async () => {
  const dir = await copy({ 'one.json': text('receipts.jsonl').split('\n')[1] ?? '' });
  expect((await checked(join(dir, 'one.json'))).out).toMatch(/^ok {3}1 receipt, nothing changed\n/);
  expect((await checked(join(dir, 'one.json'), { trust: 'ed25519:0' })).out).toBe(
    `BAD  receipt ${ids[1]} is not signed with the trusted key\n`,
  );
  await writeFile(join(dir, 'none.json'), '{"keys":[]}');
  expect((await checked(join(dir, 'one.json'), { keys: join(dir, 'none.json') })).out).toBe(
    `BAD  receipt ${ids[1]} is signed with a key that is not among the given keys\n`,
  );
  expect(await checked(join(dir, 'one.json'), { keys: join(dir, 'absent.json') })).toMatchObject({
    code: 3,
    err: `tollbridge: the public keys cannot be read: ${join(dir, 'absent.json')} is not there\n  fix: name the file with --keys FILE\n`,
  });
});

test.each([
  ['keys.json', 'null', 'the key file holds no "keys"'],
  ['keys.json', '{"keys":[null]}', 'the key file holds no "keys"'],
  ['keys.json', 'hello', 'is not JSON, so it holds no public keys'],
  ['tree-head.json', 'null', 'holds no signed tree head'],
])('%s that says %s is a mistake, and not a proof of anything', async (name, says, problem) => {
  const { code, out, err } = await checked(await copy({ [name]: says }));
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(problem);
});

test('a made-up tree head is not believed, and a key cannot put colours on the screen', async () => {
  const head = { ...JSON.parse(text('tree-head.json')), size: 2 };
  expect((await checked(await copy({ 'tree-head.json': JSON.stringify(head) }))).out).toMatch(
    /^BAD {2}the tree head cannot be trusted/,
  );
  const [key] = JSON.parse(text('keys.json')).keys;
  const keys = { keys: [key, { ...key, kid: '\u001b[2Jx' }] };
  expect((await checked(await copy({ 'keys.json': JSON.stringify(keys) }))).out).toContain('\\u{1b}[2Jx');
});

test('without a signed end, that is said', async () => {
  const dir = await copy();
  await mkdir(join(dir, 'alone'));
  await writeFile(join(dir, 'alone', 'receipts.jsonl'), text('receipts.jsonl'));
  const { out, code } = await checked(join(dir, 'alone'), { keys: join(dir, 'keys.json') });
  expect(code).toBe(0);
  expect(out).toContain('no tree head says where it ends, so a missing end would not be noticed');
});

test('in the log: one by its task, one by its own id, or all; a touched one is named', async () => {
  const { dir, tasks } = await aLog(['hello', 'read plan']);
  const data = { data: dir };
  expect((await checked(tasks[0]?.slice(-6) ?? '', data)).out).toMatch(/^ok {3}1 receipt, nothing changed\n/);
  expect((await checked('all', data)).out).toMatch(/^ok {3}2 receipts, nothing missing, nothing changed\n/);
  const id = touch(dir, 1);
  expect((await checked('all', data)).out).toMatch(new RegExp(`^BAD  .*${id}.* does not match its hash`));
  expect(await checked(tasks[1] ?? '', data)).toMatchObject({
    code: 1,
    out: `BAD  receipt ${id} was changed: its content does not match its hash\n`,
  });
  expect(await checked('nothing.jsonl', data)).toMatchObject({ code: 3, out: '' });
});

/** As a person would who can write to the file: one word of a stored receipt is another. */
function touch(dir: string, position: number): string {
  const db = new Database(join(dir, 'log.db'));
  try {
    const row = db.prepare('SELECT id, body FROM receipts WHERE position = ?').get(position) as Row;
    db.prepare('UPDATE receipts SET body = ? WHERE position = ?').run(
      row.body.replace('read_note', 'send_note'),
      position,
    );
    return row.id;
  } finally {
    db.close();
  }
}
interface Row {
  readonly id: string;
  readonly body: string;
}

test('after a rotation old and new receipts can be checked, by the old keys only the old', async () => {
  const { dir } = await aLog(['hello']);
  const before = join(dir, 'before');
  await typed(() => exportAll(before, { data: dir, events: false }));
  const rotated = await typed(() => rotateKey({ data: dir, json: true }));
  const { retired, current, keys } = JSON.parse(rotated.out);
  expect(retired).not.toBe(current);
  expect(keys.map(({ kid }: { kid: string }) => kid)).toEqual([retired, current]);
  expect((await checked('all', { data: dir })).code).toBe(0);
  const [noted] = (await typed(() => showLog({ data: dir, json: true, last: '1' }))).out.split('\n');
  expect(JSON.parse(noted ?? '')).toMatchObject({ event: 'vendor.tollbridge.note', payload: { retired, current } });
  const after = join(dir, 'after');
  await typed(() => exportAll(after, { data: dir, events: false }));
  expect((await checked(after)).code).toBe(0);
  expect((await checked(after, { keys: join(before, 'keys.json') })).out).toMatch(
    /^BAD {2}the tree head cannot be trusted/,
  );
});
