/** The page Proof in a real browser: the signed tree and its growth, an export made in the page, witnesses, and links between gateways. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { type ConsoleGateway, openConsole, seriousIssues } from '../support/console/console.ts';

const done = (at: ConsoleGateway, task: string) =>
  expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toMatch(/COMPLETED|FAILED/);
const state = (page: Page, check: string) => page.locator(`[data-check="${check}"]`).getAttribute('data-state');

async function downloaded(page: Page, name: string): Promise<string> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: `Download ${name}` }).click(),
  ]);
  return await readFile(await file.path(), 'utf8');
}

test('the head is signed, continues the one seen before, and a shorter or another tree is found out', async () => {
  const at = await openConsole('demo: true\nwitness: { beside: { file: heads.jsonl } }\n');
  for (const name of ['plan', 'todo', 'readme']) await done(at, await at.work(`read ${name}`));
  const page = await at.page();
  await page.goto(`${at.gateway.url}/proof`);
  await page.getByText('it keeps this one').waitFor();
  expect(await state(page, 'Head')).toBe('ok');
  for (const name of ['plan', 'todo']) await done(at, await at.work(`read ${name}`));
  await page.reload();
  await page.getByText('It continues the 3 receipts').waitFor();
  expect([await state(page, 'Head'), await state(page, 'Consistency')]).toEqual(['ok', 'ok']);
  expect(await seriousIssues(page)).toEqual([]);
  await page.getByText('beside', { exact: false }).first().waitFor();

  // This browser remembers five receipts with another root, as if the gateway had since changed one of them.
  await page.evaluate(
    "localStorage.setItem('tollbridge-console-tree-head', JSON.stringify({ ...JSON.parse(localStorage.getItem('tollbridge-console-tree-head')), root: 'sha256:' + 'a'.repeat(64) }))",
  );
  await done(at, await at.work('read plan'));
  await page.reload();
  await page.getByText('some were changed or removed').waitFor();
  expect(await state(page, 'Consistency')).toBe('bad');
  await page.reload();
  await page.getByText('some were changed or removed').waitFor();
  // And one that is longer than the gateway's.
  await page.evaluate(
    "localStorage.setItem('tollbridge-console-tree-head', JSON.stringify({ ...JSON.parse(localStorage.getItem('tollbridge-console-tree-head')), size: 100 }))",
  );
  await page.reload();
  await page.getByText('It does not continue the 100 receipts').waitFor();
});

test('an export made in the page has the receipts, the keys and a signed head of them', async () => {
  const at = await openConsole();
  await done(at, await at.work('read plan'));
  const page = await at.page();
  await page.goto(`${at.gateway.url}/proof`);
  const receipts = await downloaded(page, 'receipts.jsonl');
  const head = JSON.parse(await downloaded(page, 'tree-head.json'));
  const keys = JSON.parse(await downloaded(page, 'keys.json'));
  expect(receipts.trimEnd().split('\n')).toHaveLength(head.size);
  // A page that lists some of the receipts exports all of them: the head is of all.
  const task = await at.work('read todo');
  await done(at, task);
  await page.goto(`${at.gateway.url}/proof?task=${task}`);
  await page.getByText('1 receipt of one task').waitFor();
  expect((await downloaded(page, 'receipts.jsonl')).trimEnd().split('\n')).toHaveLength(head.size + 1);
  expect(keys.keys.map(({ kid }: { kid: string }) => kid)).toContain(head.signature.key_id);
});

test('links to another gateway hold against its documents, and not against changed ones', async () => {
  const callee = await openConsole();
  const key = await callee.key('a2a-peer', 'caller');
  process.env.TOLLBRIDGE_SECRET_peer = key;
  onTestFinished(() => {
    delete process.env.TOLLBRIDGE_SECRET_peer;
  });
  const caller = await openConsole(
    `demo: true\nagents: { far: { a2a: { url: "${callee.gateway.url}/a2a/demo", secret: peer } } }\nrules: [{ id: all, when: {}, then: allow }]\n`,
  );
  const session_id = await caller.session();
  const { body } = await caller.call('POST', '/v1/tasks', { session_id, agent: 'far', input: { text: 'read plan' } });
  await done(caller, body.id);
  const mine = (await caller.call('GET', `/v1/receipts?task_id=${body.id}`)).body.data[0];
  expect(mine.wire.payload.metadata.linked_receipts).toHaveLength(1);

  const far = await callee.page();
  await far.goto(`${callee.gateway.url}/proof`);
  const [receipts, keys] = [await downloaded(far, 'receipts.jsonl'), await downloaded(far, 'keys.json')];
  const page = await caller.page();
  await page.goto(`${caller.gateway.url}/proof/${mine.id}`);
  await page.getByText("to be checked against the other gateway's export").waitFor();
  const choose = async (text: string) => {
    const files = { 'receipts.jsonl': text, 'keys.json': keys };
    for (const [name, content] of Object.entries(files)) await writeFile(join(caller.dir, name), content);
    await page.locator('input[type=file]').setInputFiles(Object.keys(files).map((name) => join(caller.dir, name)));
  };
  await choose(receipts);
  await page.getByText('each names the other').waitFor();
  expect(await state(page, 'Links')).toBe('ok');
  await choose(receipts.replace('"read_note"', '"send_note"'));
  await expect.poll(() => state(page, 'Links'), { timeout: 20_000 }).toBe('bad');
  expect(await seriousIssues(page)).toEqual([]);
}, 60_000);
