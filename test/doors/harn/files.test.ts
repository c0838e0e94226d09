import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createFileTools } from '../../../adapters/harn/server/workspace-files.ts';
import { openDoor } from '../../support/harn/gateway.ts';

const ALLOW =
  '[{ id: reads, when: { effect: read }, then: allow }, { id: writes, when: { effect: write }, then: allow }]';

async function open(rules = ALLOW, root = (home: string) => `file://${home}/site`) {
  const home = await mkdtemp(join(tmpdir(), 'tb-files-'));
  onTestFinished(() => rm(home, { recursive: true }));
  await mkdir(join(home, 'site', 'docs'), { recursive: true });
  await writeFile(join(home, 'site', 'index.md'), '# Hello\n');
  await writeFile(join(home, 'outside.txt'), 'not yours');
  const files = [join(home, 'site')];
  const door = await openDoor({ tools: [createFileTools(files)], config: { files }, rules });
  const { body } = await door.call('POST', '/v1/workspaces', { name: 'w', root: root(home) });
  return { door, home, path: `/v1/workspaces/${body.id}/files` };
}

test('files are read, listed and written; each access is a task with a receipt', async () => {
  const { door, home, path } = await open();
  const { call } = door;
  const read = await call('GET', `${path}?path=index.md`);
  expect([read.status, read.body]).toEqual([
    200,
    {
      object: 'file',
      workspace_id: path.split('/')[3],
      path: 'index.md',
      encoding: 'utf-8',
      content: '# Hello\n',
      bytes: 8,
    },
  ]);
  for (const query of ['', '?path=.']) {
    expect((await call('GET', `${path}${query}`)).body).toMatchObject({
      object: 'file_listing',
      path: '.',
      entries: [
        { name: 'docs', path: 'docs', kind: 'directory', size: 0 },
        { name: 'index.md', path: 'index.md', kind: 'file', size: 8 },
      ],
    });
  }
  const key = { 'idempotency-key': 'w1' };
  const wrote = await call('PUT', `${path}?path=docs/a.md`, { content: 'new' }, key);
  expect([wrote.status, wrote.body.path, wrote.body.bytes]).toEqual([200, 'docs/a.md', 3]);
  expect(await readFile(join(home, 'site/docs/a.md'), 'utf8')).toBe('new');
  expect((await call('PUT', `${path}?path=docs/a.md`, { content: 'new' }, key)).status).toBe(200);
  const named = await call('PUT', `${path}?path=ignored`, { path: './docs/a.md', content: 'newer' });
  expect(named.body.path).toBe('docs/a.md');
  expect(await readdir(join(home, 'site'))).toEqual(['docs', 'index.md']);

  const { data: tasks } = (await call('GET', '/v1/tasks')).body;
  expect(tasks.map(({ status }: { status: string }) => status)).toEqual(Array(5).fill('COMPLETED'));
  const last = (await call('GET', `/v1/receipts/${tasks.at(-1).receipt_id}`)).body.wire.payload;
  expect(last.side_effects.fs_writes).toMatchObject([{ path: 'docs/a.md', operation: 'modify' }]);
  expect(last.side_effects.tool_calls).toMatchObject([{ tool: 'write_workspace_file', status: 'succeeded' }]);
});

test('nothing outside of the workspace is reached, by any spelling or link', async () => {
  const { door, home, path } = await open();
  await symlink(join(home, 'outside.txt'), join(home, 'site', 'link.txt'));
  await symlink(home, join(home, 'site', 'up'));
  for (const wanted of [
    '../outside.txt',
    '/etc/passwd',
    'docs/../../outside.txt',
    'link.txt',
    'up/outside.txt',
    'a\0b',
    '..\\x',
  ]) {
    const query = `?path=${encodeURIComponent(wanted)}`;
    const read = await door.call('GET', `${path}${query}`);
    expect([read.status, read.body.error.code], wanted).toEqual([400, 'invalid_request']);
    const write = await door.call('PUT', `${path}${query}`, { content: 'x' });
    expect([write.status, write.body.error.code], wanted).toEqual([400, 'invalid_request']);
    expect(JSON.stringify([read.body, write.body])).not.toContain(home);
  }
  expect(await readFile(join(home, 'outside.txt'), 'utf8')).toBe('not yours');
  expect((await door.call('GET', `${path}?path=nothing.md`)).status).toBe(404);
  expect((await door.call('PUT', `${path}?path=no/such/dir.md`, { content: 'x' })).status).toBe(404);
  expect((await door.call('PUT', path, { content: 'x' })).status).toBe(400);
  expect((await door.call('PUT', `${path}?path=docs`, { content: 'x' })).status).toBe(400);
});

test('files that are no text, or too much of it, are refused', async () => {
  const { door, home, path } = await open();
  await writeFile(join(home, 'site', 'bytes'), Buffer.from([0xff, 0xfe, 0x00]));
  await writeFile(join(home, 'site', 'large'), 'x'.repeat(1024 * 1024 + 1));
  expect((await door.call('GET', `${path}?path=bytes`)).status).toBe(400);
  expect((await door.call('GET', `${path}?path=large`)).status).toBe(413);
});

test('policy decides, and says so', async () => {
  const { door, home, path } = await open(
    '[{ id: no-writes, when: { effect: write }, then: deny, say: "look, do not touch" }, { id: reads, when: { effect: read }, then: allow }]',
  );
  const refused = await door.call('PUT', `${path}?path=index.md`, { content: 'x' });
  expect([refused.status, refused.body.error.code, refused.body.error.message]).toEqual([
    422,
    'policy_violation',
    'look, do not touch',
  ]);
  expect(await readFile(join(home, 'site/index.md'), 'utf8')).toBe('# Hello\n');
  const { data } = (await door.call('GET', '/v1/tasks')).body;
  expect(data[0]).toMatchObject({ status: 'FAILED', failure: { message: 'look, do not touch' } });
});

test('a write that needs a person waits for one', async () => {
  const { door, home, path } = await open('[{ id: ask, when: { effect: write }, then: ask }]');
  const writing = door.call('PUT', `${path}?path=index.md`, { content: 'approved' });
  let asks: { id: string }[] = [];
  while (asks.length === 0) asks = (await door.call('GET', '/v1/permission-requests?status=pending')).body.data;
  expect(await readFile(join(home, 'site/index.md'), 'utf8')).toBe('# Hello\n');
  await door.call('POST', `/v1/permission-requests/${asks[0]!.id}/respond`, { approved: true });
  expect((await writing).status).toBe(200);
  expect(await readFile(join(home, 'site/index.md'), 'utf8')).toBe('approved');
});

test('a root that was not allowed is not served, whatever the workspace says', async () => {
  for (const root of [
    (home: string) => `file://${home}`,
    (home: string) => `${home}/site/../`,
    () => '/etc',
    () => 'harn://site',
    () => 'file://evil.example/etc',
    (home: string) => `${home}/site-2`,
  ]) {
    const { door, path } = await open(ALLOW, root);
    const answer = await door.call('GET', `${path}?path=.`);
    expect([answer.status, answer.body.error.code]).toEqual([501, 'not_implemented']);
  }
});
