/**
 * Every page of the console with real traffic from all six protocols: shown, without a serious issue, in light, dark and on a phone.
 * `npm run pictures` takes the pictures of `docs/images` here, so each is of a page that was checked.
 */
import { expect, test } from 'vitest';
import { openConsole, seriousIssues, watched } from '../support/console/console.ts';
import { PROTOCOLS, raiseOnAll, waitingCount } from '../support/console/traffic.ts';
import { openPage, picture } from '../support/process/browser.ts';

const WIDE = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 780 };
const CONFIGURATION = `demo: true
rules:
  - id: reads-are-fine
    when: { effect: read }
    then: allow
    say: reading changes nothing
  - id: notes-may-change
    when: { effect: write }
    then: allow
  - id: work-may-be-shared
    when: { kind: handoff }
    then: allow
  # Mail, posts and payments reach other people.
  - id: outside-needs-a-human
    when: { effect: [send, publish, pay] }
    then: ask
    say: data leaves this host, so a person decides
  - id: nothing-is-deleted
    when: { effect: delete }
    then: deny
    say: notes are kept
quotas: { monthly: { limits: { tool_calls: 500, usd: 20 } } }
`;
/** Work of every kind: a read, a change of a file, an act that asks, work handed over, and a file that is made. */
const WORK =
  'read plan then write plan Look twice before you leap then send the plan to ana then handoff to second: read todo then artifact';
test('every page shows the traffic of all six protocols, without a serious issue, in light, dark and on a phone', async () => {
  const at = await openConsole(CONFIGURATION);
  const ended = (id: string) =>
    expect
      .poll(async () => (await at.call('GET', `/v1/tasks/${id}`)).body.status, { timeout: 20_000 })
      .toMatch(/COMPLETED|FAILED/);
  const page = await at.page(WIDE);
  const task = await at.work(WORK);
  await expect.poll(() => waitingCount(at), { timeout: 20_000 }).toBe(1);
  const { body: asked } = await at.call('GET', '/v1/permission-requests?status=pending');
  // Who started work may not approve its acts.
  const answered = await fetch(`${at.gateway.url}/v1/permission-requests/${asked.data[0].id}/respond`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await at.key('approver', 'paula')}`,
      'content-type': 'application/json',
      'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
    },
    body: JSON.stringify({ approved: true, reason: 'as agreed' }),
  });
  expect(answered.status).toBe(200);
  await ended(task);
  await ended(await at.work('delete plan then read nothing'));
  const { session_id: session } = (await at.call('GET', `/v1/tasks/${task}`)).body;
  const receipts = await at.call('GET', `/v1/receipts?task_id=${task}`);
  const replay = await at.call('POST', `/v1/tasks/${task}/replay`, { mode: 'exact' });
  await ended(replay.body.id);

  /** As a link in the page does; that each address opens by itself is tested page by page. */
  const go = async (path: string, text: string | RegExp) => {
    await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new Event('popstate'))`);
    // A filter holds the same words in choices that are not open.
    await page.locator('#page').getByText(text).filter({ visible: true }).first().waitFor();
  };
  // Clients of some protocols wait a while and not for ever, so their questions are looked at first; an AHP agent waits some seconds.
  await raiseOnAll(at);
  await go('/approvals', 'pending, oldest first');
  for (const protocol of PROTOCOLS.filter((name) => name !== 'ahp')) {
    await page.locator('.queue', { hasText: `${protocol}@example.org` }).waitFor();
  }
  const look = async (colorScheme: 'light' | 'dark', size: { width: number; height: number }) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    await page.evaluate('new Promise(requestAnimationFrame)');
  };
  const show = async (path: string, text: string | RegExp, name?: string) => {
    const taken = async (as: string) => name && (await picture(page, `${name}-${as}`));
    await go(path, text);
    expect([path, 'light', await seriousIssues(page)]).toEqual([path, 'light', []]);
    await taken('light');
    await look('dark', WIDE);
    await taken('dark');
    await look('light', PHONE);
    await taken('phone');
    await look('dark', PHONE);
    expect([path, 'dark phone', await seriousIssues(page)]).toEqual([path, 'dark phone', []]);
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect([path, wide]).toEqual([path, PHONE.width]);
    // The pages are one row that scrolls; where one is, is in sight, and nothing of it is cut off.
    const current = await page.locator('nav a[aria-current]').first().boundingBox();
    const { x = -1, width = 0 } = current ?? {};
    expect([path, x >= 0 && x + width <= PHONE.width]).toEqual([path, true]);
    await look('light', WIDE);
  };

  await go('/', 'Health');
  await page.locator('.health', { hasText: 'signing key' }).getByText('ok', { exact: true }).nth(1).waitFor();
  await page.getByText('tool calls: 0 of 500').waitFor();
  await show('/', 'Health', 'overview');
  await show('/approvals', 'Arguments', 'approvals');
  await show('/activity', 'send_mail', 'activity');
  for (const protocol of PROTOCOLS) {
    await go(`/activity?text=${protocol}%40example.org`, `${protocol}@example.org`);
  }
  await show('/sessions', session, 'sessions');
  await show(`/sessions/${session}`, 'read_note', 'session');
  await show(`/sessions/${session}?view=conversation`, WORK);
  await show(`/sessions/${session}?view=files`, 'report.patch', 'files');
  await page.locator('.diff .added').first().waitFor();
  await show(`/sessions/${session}?view=cost`, 'Tokens in');
  const { data } = (await at.call('GET', `/v1/tasks/${task}/events?limit=200`)).body;
  const completed = data.find(({ event }: { event: string }) => event === 'tool.completed').id;
  await show(`/sessions/${session}?view=events&open=${completed}`, 'As it leaves at the door', 'frames');
  await page.locator('.detail').getByLabel('Door').selectOption('mcp');
  await page.locator('.detail pre', { hasText: 'structuredContent' }).waitFor();
  await show('/proof', 'Export and witnesses', 'proof');
  await show(`/proof/${receipts.body.data[0].id}`, 'nothing is wrong', 'receipt');
  await show('/rules', 'What would change', 'rules');
  await show('/catalog', 'paula', 'catalog');
  await show('/replay', task);
  await show(`/replay/${task}`, 'Start the replay');
  await show(
    `/replay/${task}?with=${replay.body.id}`,
    /the kind and the content of its source|events differ/,
    'replay',
  );
  await raiseOnAll(at, 'again');
  await expect.poll(() => waitingCount(at), { timeout: 15_000 }).toBeGreaterThanOrEqual(10);
  await show('/map', /built in · [1-9]\d* \/ min/, 'map');

  const caller = watched(await openPage(WIDE));
  await caller.goto(at.gateway.url);
  await caller.getByLabel('Or use an API key').waitFor();
  for (const [as, colorScheme, size] of [
    ['light', 'light', WIDE],
    ['dark', 'dark', WIDE],
    ['phone', 'light', PHONE],
  ] as const) {
    await caller.emulateMedia({ colorScheme });
    await caller.setViewportSize(size);
    await caller.evaluate('new Promise(requestAnimationFrame)');
    expect(['sign-in', as, await seriousIssues(caller)]).toEqual(['sign-in', as, []]);
    await picture(caller, `sign-in-${as}`);
  }
}, 120_000);
