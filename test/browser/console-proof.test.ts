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
  expect(keys.keys.map(({ kid }: { kid: string }) => kid)).toContain(head.signature.key_id);
});

test('receipts are listed newest first, older ones on request, and an export has those that are not listed too', async () => {
  const at = await openConsole();
  const first = await at.work('hello');
  await done(at, first);
  const session = await at.session();
  await Promise.all(Array.from({ length: 100 }, () => at.work('hello', session)));
  await expect.poll(async () => (await receiptsOf(at)).length, { timeout: 60_000 }).toBe(101);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/proof`);
  const rows = page.locator('#page section').first().locator('td a');
  await expect.poll(() => rows.count(), { timeout: 20_000 }).toBe(100);
  const ids = (await receiptsOf(at)).map(({ id }) => id);
  expect(await rows.allTextContents()).toEqual(ids.toReversed().slice(0, 100));
  expect((await downloaded(page, 'receipts.jsonl')).trimEnd().split('\n')).toHaveLength(101);
  await page.getByRole('button', { name: 'Older receipts' }).click();
  await expect.poll(() => rows.count(), { timeout: 20_000 }).toBe(101);
  expect(await page.getByRole('button', { name: 'Older receipts' }).count()).toBe(0);
  // The second of them: the one before it in the chain is read for the check, though no list has it.
  await page.goto(`${at.gateway.url}/proof/${ids[1]}`);
  await page.getByText('Checked in this browser: nothing is wrong').waitFor();
  expect(await state(page, 'Chain')).toBe('ok');
  await page.goto(`${at.gateway.url}/proof?task=${first}`);
  await expect.poll(() => page.locator('#page td a').allTextContents(), { timeout: 20_000 }).toEqual([ids[0]]);
}, 120_000);

async function receiptsOf(at: ConsoleGateway): Promise<readonly { readonly id: string }[]> {
  const found: { readonly id: string }[] = [];
  let cursor = '';
  do {
    const { body } = await at.call('GET', `/v1/receipts?limit=200${cursor && `&cursor=${cursor}`}`);
    found.push(...body.data);
    cursor = body.page.has_more ? body.page.next_cursor : '';
  } while (cursor);
  return found;
}

/** The document with one value changed, for each value of it, with the path to it. */
function* tampered(value: unknown, path: readonly string[] = []): Generator<readonly [string, unknown]> {
  if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      for (const [where, changed] of tampered(member, [...path, name])) {
        yield [where, Array.isArray(value) ? value.with(Number(name), changed) : { ...value, [name]: changed }];
      }
    }
    return;
  }
  const where = path.join('.');
  if (typeof value === 'string')
    yield [where, value === '' ? 'x' : `${value.slice(0, -1)}${value.endsWith('0') ? '1' : '0'}`];
  else if (typeof value === 'number') yield [where, value + 1];
  else if (typeof value === 'boolean') yield [where, !value];
  else yield [where, 'x'];
}

test('whichever value of a receipt is changed, a check fails; and a page without cryptography says that it checks nothing', async () => {
  const at = await openConsole('demo: true\nrules: [{ id: all, when: {}, then: allow }]\n');
  await done(at, await at.work('hello'));
  await done(at, await at.work('read plan then send report to ana then artifact'));
  const row = (await receiptsOf(at))[1] as unknown as { id: string; wire: { payload: object } };
  const page = await at.page();
  await page.goto(`${at.gateway.url}/proof/${row.id}`);
  const heading = page.locator('#page section h2').nth(1);
  const says = (text: RegExp) => expect.poll(() => heading.textContent(), { timeout: 20_000 }).toMatch(text);
  await says(/nothing is wrong/);
  // Each value of the document in turn, in the page, by the browser's own cryptography.
  const changes = [...tampered(row.wire.payload)].map(([where, changed]) => [where, JSON.stringify(changed)] as const);
  expect(changes.length).toBeGreaterThan(100);
  const unnoticed = await page.evaluate<readonly string[]>(`(async () => {
    const area = document.querySelector('textarea');
    const write = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set;
    const heading = () => document.querySelectorAll('#page section h2')[1].textContent;
    const until = async (begins) => {
      for (const end = performance.now() + 5000; performance.now() < end; ) {
        if (heading().startsWith(begins)) return true;
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      return false;
    };
    const put = (text) => { write.call(area, text); area.dispatchEvent(new Event('input', { bubbles: true })); };
    const original = area.value;
    const found = [];
    for (const [where, text] of ${JSON.stringify(changes)}) {
      put(text);
      if (!(await until('Broken: '))) found.push(where);
      put(original);
      if (!(await until('Checked'))) found.push('not restored after ' + where);
    }
    return found;
  })()`);
  expect(unnoticed).toEqual([]);
  // And by hand: a byte of the signature, of its algorithm, of the chain, of the tree's leaf, and one that ends the JSON.
  const document = page.getByLabel('The receipt as JSON');
  const written = await document.inputValue();
  for (const [from, to, fails] of [
    ['"algorithm": "ed25519"', '"algorithm": "ed448"', /^Broken: log$/],
    ['"signature": "base64:', '"signature": "base64:A', /^Broken: signature, log$/],
    ['"previous_receipt_hash": "sha256:', '"previous_receipt_hash": "sha256:0', /^Broken: hash, signature, log, tree$/],
    ['"schema": ', '"scheme": ', /^Broken: schema, hash/],
    ['{', '', /^Broken: document$/],
  ] as const) {
    expect(written).toContain(from);
    await document.fill(written.replace(from, to));
    await says(fails);
    await page.getByRole('button', { name: 'Restore' }).click();
    await says(/nothing is wrong/);
  }

  await page.addInitScript("Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined })");
  await page.reload();
  await says(/^Not checked$/);
  await page.getByText('This browser checks nothing on a page that came over plain HTTP').waitFor();
  await page.goto(`${at.gateway.url}/proof`);
  await page.getByText('This browser checks nothing on a page that came over plain HTTP').waitFor();
}, 60_000);

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
