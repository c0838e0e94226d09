/** Approvals in the console, in a real browser: shown whole, answered once, by keyboard, on a phone, with other arguments. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { editorKey, speakTo } from '../support/acp/client.ts';
import { DESKTOP, openConsole, seriousIssues } from '../support/console/console.ts';
import { waitingCount } from '../support/console/traffic.ts';
import { ran } from '../support/process/cli.ts';

const MAIL = 'send report to ana';
/** An ACP agent that does what its task says, step by step. */
const SCRIPTED = fileURLToPath(new URL('../support/acp/agent.mjs', import.meta.url));

test('an approval appears while the page is open, and is answered by keyboard alone', async () => {
  const at = await openConsole();
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByText('Nothing waits for you').waitFor();
  const task = await at.work(MAIL);
  await page.locator('.question .headline').waitFor();
  expect(await page.title()).toBe('(1) Tollbridge');
  const shown = (await page.locator('.question').textContent()) ?? '';
  for (const part of ['send_mail', 'ana', 'report', 'send', 'held', 'outside-needs-a-human', 'left', 'First time']) {
    expect(shown).toContain(part);
  }
  expect(await seriousIssues(page)).toEqual([]);
  await page.keyboard.press('a');
  await page.keyboard.press('Enter');
  await page.getByRole('status').filter({ hasText: 'Approved by you' }).waitFor();
  await expect.poll(() => page.title(), { timeout: 20_000 }).toBe('Tollbridge');
  await expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toBe('COMPLETED');

  await at.work(MAIL);
  await page.keyboard.press('n');
  await page.getByText('Asked before: approved 1, denied 0.').waitFor();
  await page.keyboard.press('d');
  await page.keyboard.type('not today');
  await page.keyboard.press('Enter');
  await page.getByRole('status').filter({ hasText: 'Denied by you' }).waitFor();
  const { body } = await at.call('GET', '/v1/permission-requests?status=denied');
  expect(body.data[0].response).toMatchObject({
    answered_by: expect.stringMatching(/^local:console:[0-9a-f]{16}$/),
    reason: 'not today',
  });
});

test('an approval that is asked for while the page reads the list is in it', async () => {
  const at = await openConsole();
  const page = await at.page();
  // What the first page asks for is not held.
  await page.goto('about:blank');
  let held = 0;
  await page.route('**/v1/permission-requests?status=pending*', async (route) => {
    const response = await route.fetch();
    held += 1;
    if (held === 1) {
      await at.work(MAIL);
      await expect.poll(() => waitingCount(at), { timeout: 20_000 }).toBe(1);
    }
    await route.fulfill({ response });
  });
  await page.goto(`${at.gateway.url}/approvals`);
  await page.locator('.question .headline', { hasText: 'send_mail' }).waitFor();
  expect(await page.title()).toBe('(1) Tollbridge');
  expect(held, 'the list was read once, before the question').toBe(1);
});

test('j and k move between approvals, oldest first', async () => {
  const at = await openConsole();
  for (const to of ['ana', 'bea', 'cem']) {
    await at.work(`send report to ${to}`);
    await expect
      .poll(async () => (await at.call('GET', '/v1/permission-requests?status=pending')).body.data.length, {
        timeout: 20_000,
      })
      .toBeGreaterThanOrEqual(['ana', 'bea', 'cem'].indexOf(to) + 1);
  }
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.locator('.entry').nth(2).waitFor();
  const args = page.locator('.question-parts');
  await args.filter({ hasText: 'ana' }).waitFor();
  await page.keyboard.press('j');
  await args.filter({ hasText: 'bea' }).waitFor();
  await page.keyboard.press('j');
  await args.filter({ hasText: 'cem' }).waitFor();
  await page.keyboard.press('k');
  await args.filter({ hasText: 'bea' }).waitFor();
});

test('two browsers at once: one answer counts, and both say whose', async () => {
  const at = await openConsole();
  await at.work(MAIL);
  const first = await at.page();
  const second = await at.page();
  for (const page of [first, second]) {
    await page.goto(`${at.gateway.url}/approvals`);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
  }
  await Promise.all([
    first.getByRole('button', { name: 'Approve' }).click(),
    second
      .getByRole('button', { name: 'Deny' })
      // Gone, where the other answer has come already.
      .click({ timeout: 5000 })
      .catch(() => {}),
  ]);
  const said: string[] = [];
  for (const page of [first, second]) {
    const sentence = page.locator('.outcome', { hasText: /^(Approved|Denied) by (you|local:console:[0-9a-f]{16}) at/ });
    await sentence.waitFor();
    said.push(((await sentence.textContent()) ?? '').split(' at ', 1)[0] ?? '');
  }
  const { body } = await at.call('GET', '/v1/permission-requests');
  expect(body.data).toHaveLength(1);
  const { state, answered_by } = body.data[0].response;
  const [yes, no] = state === 'approved' ? [first, second] : [second, first];
  const word = state === 'approved' ? 'Approved' : 'Denied';
  // Each of the two signed in with a link of their own, and only one of them is told "you".
  expect(said.toSorted()).toEqual([`${word} by ${answered_by}`, `${word} by you`]);
  const who = (page: Page) => page.locator('.who').getAttribute('title');
  expect(await who(yes)).toBe(`signed in as ${answered_by}`);
  expect(await who(no)).not.toBe(`signed in as ${answered_by}`);
});

test('an answer given elsewhere is shown with its author', async () => {
  const at = await openConsole();
  await at.work(MAIL);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  const { body } = await at.call('GET', '/v1/permission-requests?status=pending');
  const key = await at.key('approver', 'paula');
  const answered = await fetch(`${at.gateway.url}/v1/permission-requests/${body.data[0].id}/respond`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
    },
    body: JSON.stringify({ approved: false, reason: 'no mail on Fridays' }),
  });
  expect(answered.status).toBe(200);
  await page.locator('.outcome', { hasText: 'Denied by paula' }).waitFor();
  expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
});

test('on a phone it is approved with changed arguments, and exactly those run', async () => {
  const at = await openConsole();
  const task = await at.work(MAIL);
  const page = await at.page({ width: 390, height: 780 });
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('button', { name: 'Change arguments' }).click();
  const field = page.getByLabel(/Arguments to run instead/);
  await field.fill('{ "to": "bea", "text": ');
  await page.getByRole('button', { name: 'Approve these arguments' }).click();
  await page.getByRole('alert').filter({ hasText: 'not JSON' }).waitFor();
  await field.fill('{ "to": "bea", "text": "the short report" }');
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  const button = page.getByRole('button', { name: 'Approve these arguments' });
  const { y = 0, height = 0 } = (await button.boundingBox()) ?? {};
  expect(y + height, 'the buttons are in sight').toBeLessThanOrEqual(780);
  await button.click();
  await page.locator('.outcome', { hasText: 'Approved by you' }).waitFor();
  await expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toBe('COMPLETED');
  const { body } = await at.call('GET', `/v1/tasks/${task}/events?limit=200`);
  const changed = body.data.find(({ payload }: { payload: { changed_by?: string } }) => payload.changed_by);
  expect(changed.payload).toMatchObject({
    changed_by: expect.stringMatching(/^local:console:[0-9a-f]{16}$/),
    input: { to: 'bea', text: 'the short report' },
  });
});

test('changed arguments are decided again: what a rule forbids does not run, though a person approves it', async () => {
  const at = await openConsole(`demo: true
rules:
  - { id: mail-asks, when: { effect: send }, then: ask }
  - { id: not-to-bea, when: { effect: send, target: bea }, then: deny, say: bea gets no mail }
`);
  const task = await at.work(MAIL);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('button', { name: 'Change arguments' }).click();
  const field = page.getByLabel(/Arguments to run instead/);
  await field.fill('{ "to": "bea", "text": "report" }');
  await page.getByRole('button', { name: 'Approve these arguments' }).click();
  await page.getByText('bea gets no mail').first().waitFor();
  const eventsNamed = async (name: string) =>
    (await at.call('GET', `/v1/tasks/${task}/events?limit=200`)).body.data.filter(
      ({ event }: { event: string }) => event === name,
    );
  expect(await eventsNamed('tool.completed'), 'nothing ran').toEqual([]);
  const [refused] = await eventsNamed('vendor.tollbridge.answer_refused');
  expect(refused.payload, 'what was tried is on record').toMatchObject({
    by: expect.stringMatching(/^local:console:/),
    rule_id: 'not-to-bea',
  });
  // The question is still open, for other arguments.
  await field.fill('{ "to": "cem", "text": "report" }');
  await page.getByRole('button', { name: 'Approve these arguments' }).click();
  await page.locator('.outcome', { hasText: 'Approved by you' }).waitFor();
  await expect.poll(async () => (await eventsNamed('tool.completed')).length, { timeout: 20_000 }).toBe(1);
});

test('a grant holds for the session and the time it was given for', async () => {
  const at = await openConsole();
  const session = await at.session();
  await at.work(MAIL, session);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByLabel('How long an approval holds').selectOption({ label: 'For 15 minutes in this session' });
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.outcome', { hasText: 'Approved by you' }).waitFor();
  const again = await at.work(MAIL, session);
  await expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${again}`)).body.status, { timeout: 20_000 })
    .toBe('COMPLETED');

  // The rule that it made is in sight until a person revokes it; then the next act asks again.
  await page.goto(`${at.gateway.url}/rules`);
  const made = page.locator('section', { hasText: 'Temporary rules from approvals' }).locator('tr');
  await made.getByText('allow', { exact: true }).waitFor();
  expect(await made.count()).toBe(1);
  expect(await made.textContent()).toMatch(/send_mail.*session.*until \d{4}-\d\d-\d\d.*local:console:[0-9a-f]{16}/);
  await made.getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('None. An approval that holds for a while').waitFor();
  await at.work(MAIL, session);
  await expect.poll(() => waitingCount(at), { timeout: 20_000 }).toBe(1);
});

test('a viewer sees approvals and has nothing to answer them with', async () => {
  const at = await openConsole();
  await at.work(MAIL);
  const page = await at.page(DESKTOP);
  const { key } = await at.viewer();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Or use an API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('nav').waitFor();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByText('answering it takes another role').waitFor();
  for (const name of ['Approve', 'Deny', 'Change arguments']) {
    expect(await page.getByRole('button', { name }).count()).toBe(0);
  }
  // What the page does not offer is refused to a viewer who asks for it by hand.
  const { body } = await at.call('GET', '/v1/permission-requests?status=pending');
  const { id, task_id } = body.data[0];
  const ask = (path: string, method: string, said: object) =>
    page.evaluate<number>(
      `fetch('${path}', { method: '${method}', body: ${JSON.stringify(JSON.stringify(said))}, headers: { 'content-type': 'application/json', 'harn-agents-protocol-version': 'agents-protocol-2026-04-25', 'x-tollbridge-console': localStorage.getItem('tollbridge-console-proof') } }).then(({ status }) => status)`,
    );
  expect(await ask(`/v1/permission-requests/${id}/respond`, 'POST', { approved: true })).toBe(403);
  expect(await ask(`/v1/tasks/${task_id}/replay`, 'POST', { mode: 'exact' })).toBe(403);
  expect(await ask(`/v1/tasks/${task_id}/cancel`, 'POST', {})).toBe(403);
  expect(await waitingCount(at), 'it still waits').toBe(1);
});

test('an answer that comes after the time is up does not count, and the page says so', async () => {
  const at = await openConsole('demo: true\napprovals: { expire_after: 3s }\n');
  await at.work(MAIL);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  // On its way while the time runs out: it reaches the gateway with the expiry or after it.
  await page.route('**/respond', async (route) => {
    await expect.poll(() => waitingCount(at), { timeout: 20_000 }).toBe(0);
    await route.continue();
  });
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.outcome', { hasText: 'Not answered in time, which counts as denied' }).waitFor();
  expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
  const { body } = await at.call('GET', '/v1/permission-requests');
  expect(body.data.map(({ status }: { status: string }) => status)).not.toContain('approved');
});

test('an approval names what the session has read from outside, in a badge of its own', async () => {
  const at = await openConsole();
  const session = await at.session();
  const taint = { server: 'web', what: 'fetch', target: 'https://evil.example/page' };
  const events = [
    {
      event: 'vendor.tollbridge.tainted' as const,
      resource: { object: 'session', id: session },
      session_id: session,
      workspace_id: 'workspace_default',
      payload: taint,
    },
  ];
  await at.gateway.core.log.commit({ decide: () => ({ events: events as never }) });
  await at.work(MAIL, session);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('note').filter({ hasText: 'web fetch https://evil.example/page' }).waitFor();
});

test('an editor and a terminal answer before the page does, and the page says whose answer it was', async () => {
  const at = await openConsole();
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  const outcome = (text: RegExp) => page.locator('.outcome', { hasText: text }).waitFor();

  const token = await editorKey(join(at.dir, 'data'));
  const editor = await speakTo({ url: at.gateway.url, token });
  void editor.prompt(await editor.session('/repo'), MAIL).catch(() => {});
  const { id, params } = await editor.next(({ method }) => method === 'session/request_permission');
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  const { optionId } = params.options.find(({ kind }: { kind: string }) => kind === 'reject_once');
  editor.answer(id, { outcome: { outcome: 'selected', optionId } });
  await outcome(/^Denied by (?!you)\S+ at/);

  await at.work(MAIL);
  await page.keyboard.press('n');
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  const { body } = await at.call('GET', '/v1/permission-requests?status=pending');
  await ran(['--data', join(at.dir, 'data'), 'approve', body.data[0].id], '', { cwd: at.dir });
  await outcome(/^Approved by (?!you)\S+ at/);
}, 60_000);

test('a write is shown as the lines that change, and exactly that is written', async () => {
  const at = await openConsole('', async (dir) => {
    await writeFile(join(dir, 'notes.txt'), 'kept\nold\n');
    const agent = { acp: { command: [process.execPath, SCRIPTED], cwd: dir } };
    return `agents: { worker: ${JSON.stringify(agent)} }\nrules: [{ id: writes, when: { kind: fs.write }, then: ask }, { id: rest, when: {}, then: allow }]\n`;
  });
  const file = join(at.dir, 'notes.txt');
  await at.work(JSON.stringify([{ ask: 'fs/write_text_file', params: { path: file, content: 'kept\nnew\n' } }]));
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  const diff = page.locator('.question-parts .diff');
  await diff.locator('.removed', { hasText: '-old' }).waitFor();
  await diff.locator('.added', { hasText: '+new' }).waitFor();
  await page.getByRole('button', { name: 'Approve' }).click();
  await expect.poll(() => readFile(file, 'utf8'), { timeout: 20_000 }).toBe('kept\nnew\n');
});

/** The browser's notices, which a browser without a screen does not have: kept in the page, with the permission as a person gives it. */
const NOTICES = `
  window.notices = [];
  window.Notification = class {
    static permission = 'default';
    static async requestPermission() { return (this.permission = 'granted'); }
    constructor(title, options) { window.notices.push({ title, options, notice: this }); }
  };
  window.away = false;
  Object.defineProperty(Document.prototype, 'hidden', { get: () => window.away });
`;

test('a notice tells a person who looks elsewhere that something waits, not what, and leads to it', async () => {
  const at = await openConsole();
  const page = await at.page();
  await page.addInitScript(NOTICES);
  await page.goto(`${at.gateway.url}/approvals`);
  const notices = () =>
    page.evaluate<readonly { title: string; options: { tag: string } }[]>(
      'window.notices.map(({ title, options }) => ({ title, options }))',
    );
  await page.getByRole('button', { name: 'Notify me' }).click();
  await expect.poll(() => page.getByRole('button', { name: 'Notify me' }).count(), { timeout: 20_000 }).toBe(0);
  await at.work('send first to ana');
  await page.locator('.entry').waitFor();
  expect(await notices(), 'a person who looks at the page sees it there').toEqual([]);

  await page.locator('nav').getByText('Overview', { exact: true }).click();
  await page.evaluate('window.away = true');
  await at.work('send second to bea');
  await expect.poll(async () => (await notices()).length, { timeout: 20_000 }).toBe(1);
  const { body } = await at.call('GET', '/v1/permission-requests?status=pending');
  const ids: readonly string[] = body.data.map(({ id }: { id: string }) => id);
  const [notice] = await notices();
  expect(ids).toContain(notice?.options.tag);
  expect(JSON.stringify(notice)).not.toMatch(/second|bea|send_mail/);
  expect(await page.title()).toBe('(2) Tollbridge');
  await page.evaluate('window.away = false; window.notices[0].notice.onclick()');
  await page.waitForURL(`**/approvals/${notice?.options.tag}`);
  await page.locator('.question-parts', { hasText: 'bea' }).waitFor();
});

test('without the permission there is no notice', async () => {
  const at = await openConsole();
  const page = await at.page();
  await page.addInitScript(NOTICES);
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('button', { name: 'Notify me' }).waitFor();
  await page.evaluate('window.away = true');
  await at.work(MAIL);
  await expect.poll(() => page.title(), { timeout: 20_000 }).toBe('(1) Tollbridge');
  expect(await page.evaluate<number>('window.notices.length')).toBe(0);
});
