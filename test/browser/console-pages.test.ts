/** The console's pages in a real browser, with real traffic from all six protocols. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type ConsoleGateway, openConsole } from '../support/console/console.ts';
import { ran } from '../support/process/cli.ts';

const RULES = `# Kept as it is written.
rules:
  # Reading is fine.
  - { id: reads-are-fine, when: { effect: read }, then: allow }
  - { id: outside-needs-a-human, when: { effect: [send, publish, pay] }, then: ask }
demo: true
`;
interface Decided {
  readonly action: { readonly effect?: string; readonly actor: { readonly id: string; readonly door?: string } };
  readonly decision: { readonly verdict: string };
}
const stateOf = async (at: ConsoleGateway, task: string) => (await at.call('GET', `/v1/tasks/${task}`)).body.status;
const done = (at: ConsoleGateway, task: string) =>
  expect.poll(() => stateOf(at, task), { timeout: 20_000 }).toMatch(/COMPLETED|FAILED/);
const rowIds = (page: Page) =>
  page.evaluate<string[]>("[...document.querySelectorAll('.row')].map((row) => row.dataset.id)");

test('activity: filters are the address, a pause holds the list, and an event shows whole', async () => {
  const at = await openConsole();
  const page = await at.page();
  await done(at, await at.work('read plan'));
  await page.goto(`${at.gateway.url}/activity`);
  await page.getByLabel('Decision').selectOption('allow');
  await page.waitForURL(/verdict=allow/);
  await page.getByLabel('Tool').selectOption('read_note');
  await expect.poll(() => page.locator('.row').count(), { timeout: 20_000 }).toBe(1);
  await page.locator('.row').click();
  await page.locator('.detail pre', { hasText: 'reads-are-fine' }).first().waitFor();
  const address = page.url();
  await page.goto('about:blank');
  await page.goto(address);
  await page.locator('.detail pre', { hasText: 'reads-are-fine' }).first().waitFor();
  await page.keyboard.press('Escape');
  // The event of the address is read apart from the list, which is paused as it is.
  await expect.poll(() => page.locator('.row').count(), { timeout: 20_000 }).toBe(1);
  await page.keyboard.press('p');
  await done(at, await at.work('read plan'));
  await page.getByRole('button', { name: 'Resume (1 new)' }).waitFor();
  expect(await page.locator('.row').count()).toBe(1);
  await page.keyboard.press('p');
  await expect.poll(() => page.locator('.row').count(), { timeout: 20_000 }).toBe(2);
});

test('each filter leaves the rows that fit it, alone and with others, and stands in the address', async () => {
  const at = await openConsole(RULES);
  const session = await at.session();
  await done(at, await at.work('read plan then read todo', session));
  const page = await at.page();
  await at.work('send report to ana', session);
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByLabel('Reason').fill('a word of its own');
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.locator('.outcome', { hasText: 'Denied by you' }).waitFor();
  const { body } = await at.call('GET', '/v1/events?limit=200');
  const events: readonly { id: string; event: string; payload: Decided }[] = body.data;
  const acts = events.filter(({ event }) => event === 'vendor.tollbridge.decided');
  const actOf = ({ payload }: { payload: Decided }) => payload.action;
  const list = page.locator('.list');
  const listed = async () => {
    const ids = new Set<string>();
    const count = Number(await list.getAttribute('data-count'));
    for (const id of await rowIds(page)) ids.add(id);
    return { count, ids };
  };
  const shows = async (wanted: readonly { id: string }[]) => {
    await expect.poll(() => list.getAttribute('data-count'), { timeout: 20_000 }).toBe(String(wanted.length));
    expect([...(await listed()).ids].sort()).toEqual(wanted.map(({ id }) => id).sort());
  };
  const choose = async (label: string, value: string) => {
    await page.getByLabel(label, { exact: true }).selectOption(value);
  };
  await page.goto(`${at.gateway.url}/activity?session=${session}`);
  await choose('Kind', 'decision');
  await shows(acts);
  await choose('Effect', 'read');
  await shows(acts.filter((act) => actOf(act).effect === 'read'));
  await choose('Effect', '');
  await choose('Decision', 'escalate');
  await shows(acts.filter(({ payload }) => payload.decision.verdict === 'escalate'));
  await choose('Decision', '');
  await choose('Door', 'harn');
  await shows(acts.filter((act) => actOf(act).actor.door === 'harn'));
  await choose('Door', '');
  await choose('Agent', 'agent:demo');
  await shows(acts.filter((act) => actOf(act).actor.id === 'agent:demo'));
  await choose('Agent', '');
  await choose('Kind', '');
  const { data } = (await at.call('GET', '/v1/permission-requests?status=denied')).body;
  await choose('Person', data[0].response.answered_by);
  await page.getByLabel('Text', { exact: true }).fill('a word of its OWN');
  await expect.poll(async () => Number(await list.getAttribute('data-count')), { timeout: 20_000 }).toBeGreaterThan(0);
  const found = (await listed()).ids;
  expect(events.filter(({ id }) => found.has(id)).map(({ event }) => event)).toContain('vendor.tollbridge.ask_closed');
  const address = new URL(page.url()).searchParams;
  expect(Object.fromEntries(address)).toEqual({
    session,
    person: data[0].response.answered_by,
    text: 'a word of its OWN',
  });
  await page.reload();
  await expect.poll(async () => [...(await listed()).ids].sort(), { timeout: 20_000 }).toEqual([...found].sort());
  await page.getByRole('link', { name: 'Clear' }).click();
  await expect
    .poll(async () => Number(await list.getAttribute('data-count')), { timeout: 20_000 })
    .toBeGreaterThan(acts.length);
  // An agent has one name, however an event spells it.
  const names = await page.getByLabel('Agent', { exact: true }).locator('option').allTextContents();
  expect(names.filter((name) => /demo/.test(name))).toEqual(['agent:demo']);
});

test('every page is reached, and its parts are used, by keyboard alone', async () => {
  const at = await openConsole();
  await done(at, await at.work('read plan'));
  const page = await at.page();
  const pages = ['Overview', 'Approvals', 'Activity', 'Sessions', 'Proof', 'Rules', 'Catalog', 'Map', 'Replay'];
  for (const [index, name] of pages.entries()) {
    await page.keyboard.press(String(index + 1));
    await page.locator('#page h1', { hasText: name }).waitFor();
  }
  const focused = () => page.evaluate<string>('document.activeElement?.textContent ?? ""');
  /** Tab until this has the focus; a person can get no further than round the page once. */
  const tabTo = async (text: string) => {
    for (let presses = 0; presses < 80; presses += 1) {
      if ((await focused()) === text) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`${text} is not reached by Tab`);
  };
  await page.keyboard.press('7');
  await page.locator('#page h1', { hasText: 'Catalog' }).waitFor();
  await tabTo('Connect');
  await page.keyboard.press('Enter');
  await page.locator('pre', { hasText: '/.well-known/agent-card.json' }).waitFor();
  await page.keyboard.press('3');
  await page.locator('.row').first().waitFor();
  await page.keyboard.press('j');
  await page.locator('.detail h2').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.detail').waitFor({ state: 'detached' });
  await page.keyboard.press('9');
  const task = await page.locator('#page td a').first().textContent();
  await tabTo(task ?? '');
  await page.keyboard.press('Enter');
  await tabTo('Start the replay');
  await page.keyboard.press('Enter');
  await page.getByText('Each event of the replay has the kind and the content of its source.').waitFor();
});

test('one session: its work as nested spans, what was said, what it used, and each event as it came in and as it leaves', async () => {
  const at = await openConsole(
    'demo: true\nrules: [{ id: mail, when: { effect: send }, then: ask }, { id: rest, when: {}, then: allow }]\n',
  );
  const session = await at.session();
  const task = await at.work(
    'read plan then send report to ana then handoff to second: read todo then artifact',
    session,
  );
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('button', { name: 'Approve' }).click();
  await done(at, task);
  await page.goto(`${at.gateway.url}/sessions/${session}`);
  const spans = page.locator('.span-row');
  await spans.filter({ hasText: 'report.patch' }).waitFor();
  const kinds = new Set(await spans.locator('.badge').allTextContents());
  for (const kind of ['task', 'call', 'approval', 'handoff', 'artifact', 'model']) expect([...kinds]).toContain(kind);
  const depth = (text: string) =>
    spans
      .filter({ hasText: text })
      .first()
      .locator('.span-name')
      .evaluate((element) =>
        Number.parseInt((element as unknown as { style: { paddingLeft: string } }).style.paddingLeft, 10),
      );
  expect(await depth('read_note')).toBeGreaterThan(await depth('demo'));
  expect(await depth('approval')).toBeGreaterThan(await depth('read_note'));
  // The work that was handed over has a session of its own, and stands inside its handoff.
  const names = await spans.locator('.span-name').allTextContents();
  const at_ = (text: RegExp) => names.findIndex((name) => text.test(name));
  const [handoff, handed, inside] = [
    at_(/^handoff/),
    at_(/^task *second/),
    names.findLastIndex((name) => /read_note/.test(name)),
  ];
  expect([handoff, handed, inside].map((found) => found >= 0)).toEqual([true, true, true]);
  expect([handed > handoff, inside > handed]).toEqual([true, true]);
  const depths = await spans
    .locator('.span-name')
    .evaluateAll((all) =>
      all.map((one) => Number.parseInt((one as unknown as { style: { paddingLeft: string } }).style.paddingLeft, 10)),
    );
  expect(depths[handed]).toBeGreaterThan(depths[handoff] ?? 0);
  expect(depths[inside]).toBeGreaterThan(depths[handed] ?? 0);
  // What the session was given, and what a model call used.
  expect(names[at_(/^task *demo/)]).toContain('read plan then send report');
  expect(names[at_(/^model/)]).toMatch(/\d+ tokens in · \d+ tokens out/);

  await page.getByRole('link', { name: 'Conversation' }).click();
  await page.locator('.turn.person', { hasText: 'read plan then send' }).first().waitFor();
  await page.locator('.turn', { hasText: 'plan says: First look, then leap.' }).first().waitFor();
  await page.getByRole('link', { name: 'Cost' }).click();
  const used = page.locator('#page tbody tr').first();
  expect(await used.textContent()).toMatch(/agent:demo.*USD/);
  await used.locator('a').click();
  await page.waitForURL(/event=vendor.tollbridge.usage/);

  const { body } = await at.call('GET', `/v1/tasks/${task}/events?limit=200`);
  const ended = body.data.find(({ event }: { event: string }) => event === 'tool.completed').id;
  await page.goto(`${at.gateway.url}/sessions/${session}?view=events&open=${ended}`);
  const [came, leaves] = [page.getByText('As it came in'), page.getByText('As it leaves at the door')];
  await leaves.waitFor();
  const [left, right] = [await came.boundingBox(), await leaves.boundingBox()];
  expect(right?.x ?? 0, 'side by side').toBeGreaterThan((left?.x ?? 0) + 100);
  for (const [door, member] of [
    ['harn', '"tool.completed"'],
    ['mcp', 'structuredContent'],
    ['a2a', 'statusUpdate'],
  ]) {
    await page
      .locator('.detail')
      .getByLabel('Door')
      .selectOption(door ?? '');
    await page
      .locator('.detail .side > div')
      .nth(1)
      .getByText(member ?? '')
      .first()
      .waitFor();
  }
});

test('while the list is paused, rows from further back and newer ones leave it as it is', async () => {
  const at = await openConsole();
  const note = (text: string) => ({
    event: 'vendor.tollbridge.note' as const,
    resource: { object: 'session', id: 'session_many' },
    workspace_id: 'workspace_default',
    payload: { text },
  });
  const write = (from: number, count: number) =>
    at.gateway.core.log.commit({
      decide: () => ({ events: Array.from({ length: count }, (_, more) => note(`row ${from + more}`)) }),
    });
  // The page reads the newest 5,000 by itself.
  for (let from = 0; from < 6000; from += 500) await write(from, 500);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/activity`);
  const list = page.locator('.list');
  const count = () => list.getAttribute('data-count');
  await expect.poll(count, { timeout: 20_000 }).toBe('5000');
  await page.evaluate("document.querySelector('.list').scrollTop = 30000");
  const inSight = () =>
    page.evaluate<string[]>(
      "[...document.querySelectorAll('.row')].filter((row) => { const { top, bottom } = row.getBoundingClientRect(); const box = document.querySelector('.list').getBoundingClientRect(); return top < box.bottom && bottom > box.top; }).map((row) => row.dataset.id)",
    );
  await expect.poll(async () => (await inSight()).length, { timeout: 20_000 }).toBeGreaterThan(5);
  const before = await inSight();
  await page.keyboard.press('p');
  await write(6000, 3);
  await page.getByRole('button', { name: 'Resume (3 new)' }).waitFor();
  await page.getByRole('button', { name: 'Load older' }).click();
  await page.getByRole('button', { name: 'Load older' }).waitFor({ state: 'detached' });
  expect(Number(await count()), 'rows from further back are below').toBeGreaterThanOrEqual(6000);
  expect(await inSight()).toEqual(before);
  await page.getByRole('button', { name: 'Resume (3 new)' }).waitFor();
  await page.keyboard.press('p');
  await page.getByRole('button', { name: /^Pause/ }).waitFor();
  expect(await inSight(), 'new rows are above what is in sight').toEqual(before);
});

test('after a restart of the gateway no row is lost and none is there twice', async () => {
  const at = await openConsole();
  const page = await at.page();
  await done(at, await at.work('read plan'));
  await page.goto(`${at.gateway.url}/activity?event=task.completed`);
  await expect.poll(() => page.locator('.row').count(), { timeout: 20_000 }).toBe(1);
  await at.restart();
  await done(at, await at.work('read todo'));
  await expect.poll(() => page.locator('.row').count(), { timeout: 20_000 }).toBe(2);
  // The same page, which read some of these rows before the restart and some after it.
  await page.getByRole('link', { name: 'Clear' }).click();
  await page.locator('.state.live').waitFor();
  await done(at, await at.work('read readme'));
  const { body } = await at.call('GET', '/v1/events?limit=200');
  const all: readonly string[] = body.data.map(({ id }: { id: string }) => id);
  const list = page.locator('.list');
  await expect.poll(() => list.getAttribute('data-count'), { timeout: 20_000 }).toBe(String(all.length));
  const shown = new Set<string>();
  for (let top = 0; top < all.length * 30; top += 300) {
    await page.evaluate(`document.querySelector('.list').scrollTop = ${top}`);
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    for (const id of await rowIds(page)) shown.add(id);
  }
  expect([...shown].sort()).toEqual(all.toSorted());
});

test('a receipt is checked in the browser, and a changed byte fails the checks it breaks', async () => {
  const at = await openConsole();
  const task = await at.work('read plan');
  await done(at, task);
  const { body } = await at.call('GET', `/v1/receipts?task_id=${task}`);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/proof/${body.data[0].id}`);
  await page.getByText('Checked in this browser: nothing is wrong').waitFor();
  const state = (check: string) => page.locator(`[data-check="${check}"]`).getAttribute('data-state');
  for (const check of ['Schema', 'Hash', 'Signature', 'Chain', 'Log', 'Events', 'Tree', 'Links']) {
    expect([check, await state(check)]).toEqual([check, 'ok']);
  }
  const document = page.getByLabel('The receipt as JSON');
  const text = await document.inputValue();
  await document.fill(text.replace('"read_note"', '"send_note"'));
  await page.getByText('Broken: hash, signature, log, tree').waitFor();
  expect([await state('Schema'), await state('Events')]).toEqual(['ok', 'ok']);
  const root = /"sha256": "sha256:(.)/.exec(text)?.[1] === 'a' ? 'b' : 'a';
  await document.fill(text.replace(/("kind": "event_log"[\s\S]*?"sha256": "sha256:)./, `$1${root}`));
  await page.getByText('Broken: hash, signature, log, events, tree').waitFor();
  await page.getByRole('button', { name: 'Restore' }).click();
  await page.getByText('nothing is wrong').waitFor();
});

test('rules: mistakes are shown, past decisions are asked again, and an admin saves', async () => {
  const at = await openConsole(RULES);
  await done(at, await at.work('read plan'));
  const page = await at.page();
  await page.goto(`${at.gateway.url}/rules`);
  const editor = page.getByLabel('Rules', { exact: true });
  const text = await editor.inputValue();
  expect(text).toContain('# Reading is fine.');
  // A word that is begun is continued on request.
  await editor.fill('- { id: x, wh');
  await page.getByRole('button', { name: 'when:', exact: true }).click();
  expect(await editor.inputValue()).toBe('- { id: x, when: ');
  await editor.fill(text.replace('then: allow', 'then: perhaps'));
  await page.locator('.problems li').first().waitFor();
  expect(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true);
  await editor.fill(text.replace('then: allow', 'then: deny'));
  await expect.poll(() => page.locator('.problems li').count(), { timeout: 20_000 }).toBe(0);
  const cases = page.getByLabel('Test cases');
  await cases.fill('- { name: plans are read, action: { tool: read_note, effect: read }, expect: alow }');
  await page.getByRole('button', { name: 'Run the cases' }).click();
  await page.locator('.would .problems li').first().waitFor();
  const written = '- { name: plans are read, action: { tool: read_note, effect: read }, expect: allow }\n';
  await cases.fill(written);
  await page.getByRole('button', { name: 'Run the cases' }).click();
  await page.getByText('1 of 1 otherwise.').waitFor();
  await page.getByText('expected allow, got deny').waitFor();
  await page.getByRole('button', { name: 'Save the cases' }).click();
  await page.getByText('Saved in').waitFor();
  expect(await readFile(join(at.dir, 'tollbridge.cases.yaml'), 'utf8')).toBe(written);
  for (const period of ['day', 'week', 'month']) {
    await page.getByLabel('Period').selectOption(period);
    await page.getByRole('button', { name: 'Ask these rules' }).click();
    await page.getByText(/^1 would change, 0 cannot be told/).waitFor();
  }
  const group = page.locator('.would .table-wrap', { hasText: 'reads-are-fine' });
  await group.locator('td', { hasText: 'allowed → blocked' }).waitFor();
  const behind = await group.locator('td a').getAttribute('href');
  const { body: act } = await at.call('GET', `/v1/events?limit=200`);
  const asked = act.data.find(({ id }: { id: string }) => behind?.endsWith(id));
  expect(asked.payload.action.tool).toBe('read_note');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Saved, and in force.').waitFor();
  const saved = await readFile(join(at.dir, 'tollbridge.yaml'), 'utf8');
  expect(saved).toBe(RULES.replace('then: allow', 'then: deny'));
  const task = await at.work('read plan');
  await done(at, task);
  const { body } = await at.call('GET', `/v1/tasks/${task}/events?limit=100`);
  const decided = body.data.find(
    ({ payload }: { payload: { action?: { tool?: string } } }) => payload.action?.tool === 'read_note',
  );
  expect(decided.payload.decision).toMatchObject({ verdict: 'block', rule_id: 'reads-are-fine' });
  await page.reload();
  await page.getByText('by local:console').waitFor();
});

test('rules: the editor finds what policy check finds, and a comparison of many decisions says how far it is', async () => {
  const at = await openConsole('demo: true\n', async (dir) => {
    await writeFile(join(dir, 'rules.yaml'), '- { id: reads-are-fine, when: { effect: read }, then: allow }\n');
    await writeFile(join(dir, 'tried-config.yaml'), 'policies: [tried.yaml]\n');
    return 'policies: [rules.yaml]\n';
  });
  const task = await at.work('read plan');
  await done(at, task);
  // Decisions as they are on record, many times: asking for each would take its time.
  const { body } = await at.call('GET', `/v1/tasks/${task}/events?limit=200`);
  const one = body.data.find(
    ({ payload }: { payload: { action?: { tool?: string } } }) => payload.action?.tool === 'read_note',
  );
  const { event, resource, workspace_id, session_id, task_id, payload } = one;
  const decided = { event, resource, workspace_id, session_id, task_id, actor: one.actor, payload };
  for (let batch = 0; batch < 6; batch += 1) {
    await at.gateway.core.log.commit({
      decide: () => ({ events: Array.from({ length: 500 }, () => decided) as never }),
    });
  }
  const page = await at.page();
  await page.goto(`${at.gateway.url}/rules`);
  const editor = page.getByLabel('Rules', { exact: true });
  const wrong = `- { id: x, when: { efect: read }, then: allow }
- { id: x, when: { effect: reed }, then: perhaps }
- { id: y, when: { tool: [ }, then: deny }
`;
  for (const text of [
    wrong,
    wrong.split('\n').slice(0, 2).join('\n'),
    '- nothing\n',
    '- { id: z, then: allow, when: 7 }\n',
  ]) {
    await editor.fill(text);
    await writeFile(join(at.dir, 'tried.yaml'), text);
    const check = ['--config', join(at.dir, 'tried-config.yaml'), 'policy', 'check', '--json'];
    const { out } = await ran(check, '', { cwd: at.dir });
    const { problems } = JSON.parse(out) as {
      problems: { line?: number; column?: number; rule?: string; message: string }[];
    };
    expect(problems.length).toBeGreaterThan(0);
    const lines = problems.map(
      ({ line, column, rule, message }) => `${line ? `${line}:${column} ` : ''}${rule ? `${rule}: ` : ''}${message}`,
    );
    const shown = page.locator('.problems').first().locator('li');
    await expect.poll(() => shown.allTextContents(), { timeout: 20_000 }).toEqual(lines);
  }
  await editor.fill('- { id: reads-are-fine, when: { effect: read }, then: deny }\n');
  await expect.poll(() => page.locator('.problems li').count(), { timeout: 20_000 }).toBe(0);
  await page.evaluate(`
    window.said = [];
    new MutationObserver(() => {
      const text = document.querySelector('.would [role=status]')?.textContent;
      if (text && window.said.at(-1) !== text) window.said.push(text);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  `);
  await page.getByRole('button', { name: 'Ask these rules' }).click();
  await page.getByText(/^3,?001 would change, 0 cannot be told/).waitFor();
  const said = await page.evaluate<readonly string[]>('window.said');
  expect(said.filter((text) => text.startsWith('So far: ')).length, 'it is said on the way').toBeGreaterThan(1);
  await page.locator('.would h3', { hasText: 'reads-are-fine' }).waitFor();
}, 60_000);

test('overview and catalog: numbers of tools and callers lead to their rows, and keys say when they were last used', async () => {
  const at = await openConsole();
  await done(at, await at.work('read plan then read todo'));
  const key = await at.key('approver', 'paula');
  const headers = { authorization: `Bearer ${key}`, 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
  expect((await fetch(`${at.gateway.url}/v1/tasks`, { headers })).status).toBe(200);
  await at.key('approver', 'unused');
  const page = await at.page();
  const rowsBehind = async (path: string, row: string, column: number) => {
    await page.goto(`${at.gateway.url}${path}`);
    const number = page
      .locator('tr', { has: page.getByRole('link', { name: row, exact: true }) })
      .locator('td')
      .nth(column);
    await number.locator('a').waitFor();
    const shown = await number.textContent();
    await number.locator('a').click();
    await page.waitForURL(/activity/);
    await page.locator('.row').first().waitFor();
    return [shown, await page.locator('.row').count()] as const;
  };
  // A number is read while rows may still come: followed again, it is the whole.
  const leads = (path: string, row: string, column: number) =>
    expect.poll(() => rowsBehind(path, row, column), { timeout: 20_000, message: `${path} ${row} ${column}` });
  await leads('/', 'read_note', 1).toEqual(['2', 2]);
  await leads('/', 'agent:demo', 1).toEqual(['2', 2]);
  // Calls that took a time.
  await leads('/', 'agent:demo', 5).toEqual([expect.any(String), 2]);
  await leads('/catalog', 'read_note', 1).toEqual(['2', 2]);
  await leads('/catalog', 'read_note', 4).toEqual([expect.any(String), 2]);
  await page.goto(`${at.gateway.url}/catalog`);
  const line = (name: string) => page.locator('tr', { hasText: name });
  await line('paula').getByText('last used').waitFor();
  await line('unused').getByText('not used since the gateway started').waitFor();
});

test('catalog: what is copied for each door works as it is pasted', async () => {
  const at = await openConsole('demo: true\nrules: [{ id: all, when: {}, then: allow }]\n');
  const page = await at.page();
  await page.goto(`${at.gateway.url}/catalog`);
  const copied: string[] = [];
  const doors = page.locator('section', { has: page.getByRole('heading', { name: 'Doors', exact: true }) });
  for (let at = 0; at < 6; at += 1) {
    await doors.getByRole('button', { name: 'Connect' }).nth(at).click();
    copied.push(...(await doors.locator('pre').allTextContents()));
    await doors.getByRole('button', { name: 'Hide' }).click();
  }
  const token = at.gateway.token ?? '';
  const pasted = copied.map((text) => text.replace('<TOKEN>', token));
  const answers: string[] = [];
  for (const line of pasted.filter((text) => text.startsWith('curl '))) {
    const { stdout } = await promisify(execFile)('bash', ['-c', line.replace('curl ', 'curl -sS --fail-with-body ')]);
    answers.push(stdout);
  }
  // In the order of the doors: A2A, AHP, the native one, runs.
  expect(answers.map((text) => JSON.parse(text))).toMatchObject([
    { result: { task: { status: {} } } },
    { result: { decision: 'allow' } },
    { object: 'list' },
    { status: expect.any(String) },
  ]);
  const card = pasted.find((text) => text.endsWith('/agent-card.json')) ?? '';
  expect((await fetch(card)).status).toBe(200);
  const mcp = JSON.parse(pasted.find((text) => text.includes('mcpServers')) ?? '{}').mcpServers.tollbridge;
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const opened = await fetch(mcp.url, {
    method: 'POST',
    headers: { ...mcp.headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  });
  expect(opened.status).toBe(200);
});

test('sessions and tasks are listed newest first, and older ones on request', async () => {
  const at = await openConsole();
  const made: string[] = [];
  for (let count = 0; count < 105; count += 1) made.push(await at.session());
  const page = await at.page();
  await page.goto(`${at.gateway.url}/sessions`);
  const shown = page.locator('#page td a');
  await shown.first().waitFor();
  expect(await shown.allTextContents()).toEqual(made.toReversed().slice(0, 100));
  await page.getByRole('button', { name: 'Older sessions' }).click();
  await expect.poll(() => shown.count(), { timeout: 20_000 }).toBe(105);
  expect(await shown.allTextContents()).toEqual(made.toReversed());
  expect(await page.getByRole('button', { name: 'Older sessions' }).count()).toBe(0);
});

test('a replay runs with another answer, and from one of its events on', async () => {
  const at = await openConsole();
  const task = await at.work('read plan then read todo');
  await done(at, task);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/replay`);
  await page.getByText('read plan then read todo').waitFor();
  await page.goto(`${at.gateway.url}/replay/${task}`);
  const start = page.getByRole('button', { name: 'Start the replay' });
  await page.getByLabel('Mode').selectOption('with_overrides');
  expect(await start.isDisabled(), 'no answer is replaced yet').toBe(true);
  await page.getByLabel('Answer to replace').selectOption({ label: 'read_note call1' });
  const answer = page.getByLabel('read_note call1, as JSON', { exact: false });
  expect(JSON.parse(await answer.inputValue())).toEqual({ text: 'plan says: First look, then leap.' });
  await answer.fill('{ "text": ');
  await start.click();
  await page.getByRole('alert').filter({ hasText: 'is not JSON' }).waitFor();
  await answer.fill('{ "text": "plan says: Sleep." }');
  await start.click();
  await page.getByText(/[1-9]\d* of \d+ events differ/).waitFor();
  await page.locator('tr.different', { hasText: 'plan says: Sleep.' }).first().waitFor();

  await page.goto(`${at.gateway.url}/replay/${task}`);
  await page.getByLabel('Mode').selectOption('from_checkpoint');
  const { body } = await at.call('GET', `/v1/tasks/${task}/events?limit=200`);
  const first = body.data.find(({ event }: { event: string }) => event === 'tool.completed').id;
  await page.getByLabel('Begin after this event').selectOption(first);
  await start.click();
  await page.getByText(/events differ/).waitFor();
  const { body: tasks } = await at.call('GET', '/v1/tasks?limit=100');
  expect(tasks.data.filter(({ id }: { id: string }) => id.startsWith('task_replay_'))).toHaveLength(2);
});
