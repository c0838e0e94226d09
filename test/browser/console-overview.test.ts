/** The overview: each number is followed to the rows it counts, and there are as many of them. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type ConsoleGateway, openConsole } from '../support/console/console.ts';
import { mailFrom, waitingCount } from '../support/console/traffic.ts';

const CONFIGURATION = `demo: true
rules:
  - { id: reads-are-fine, when: { effect: read }, then: allow }
  - { id: mail-asks, when: { effect: send }, then: ask }
  - { id: no-deleting, when: { effect: delete }, then: deny }
quotas: { monthly: { limits: { tool_calls: 500 } } }
`;
const ended = (at: ConsoleGateway, task: string) =>
  expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toMatch(/COMPLETED|FAILED/);

/** The number of a tile, and the page that it leads to. */
async function follow(page: Page, at: ConsoleGateway, name: string, least: number): Promise<number> {
  await page.goto(at.gateway.url);
  const tile = page.locator('.number', { hasText: name });
  await tile.waitFor();
  const number = async () => Number(await tile.locator('b').textContent());
  // Counted as the rows come.
  await expect.poll(number, { timeout: 20_000, message: name }).toBeGreaterThanOrEqual(least);
  const shown = await number();
  await tile.click();
  await page.locator('#page h1', { hasText: 'Overview' }).waitFor({ state: 'detached' });
  return shown;
}
const listed = async (page: Page) => Number((await page.locator('.list').getAttribute('data-count')) ?? '0');

test('each number of the overview leads to as many rows', async () => {
  const at = await openConsole(CONFIGURATION);
  await ended(at, await at.work('read plan then read todo'));
  await ended(at, await at.work('delete plan'));
  await ended(at, await at.work('read nothing-of-this-name'));
  for (const text of ['one', 'two']) mailFrom(at, text);
  await expect.poll(() => waitingCount(at), { timeout: 20_000 }).toBe(2);
  const page = await at.page();
  // The rows are there before the page is: a number is compared with what it leads to.
  await page.goto(`${at.gateway.url}/activity?group=decision`);
  await expect.poll(() => listed(page), { timeout: 20_000 }).toBeGreaterThan(6);

  for (const [name, least] of [
    ['acts allowed', 5],
    ['acts asked', 2],
    ['acts blocked', 1],
    ['calls failed', 1],
  ] as const) {
    // A number is read while rows may still come: followed again, it is the whole.
    const numberAndRows = async () => {
      const shown = await follow(page, at, name, least);
      await expect.poll(() => listed(page), { timeout: 2_000, message: name }).toBe(shown);
      return shown;
    };
    await expect.poll(numberAndRows, { timeout: 30_000, message: name }).toBeGreaterThanOrEqual(least);
  }
  expect(await follow(page, at, 'approvals pending', 2)).toBe(2);
  await expect.poll(() => page.locator('.entry').count(), { timeout: 20_000 }).toBe(2);

  // The plot: its sum, its highest column, and a column itself.
  for (const [which, more] of [
    ['.legend a >> nth=0', /since=\d+$/],
    ['.legend a >> nth=1', /until=/],
    ['.plot a >> nth=0', /until=/],
  ] as const) {
    const sameAsRows = async () => {
      await page.goto(at.gateway.url);
      const link = page.locator(which);
      await link.waitFor({ state: 'attached' });
      const text = ((await link.getAttribute('aria-label')) ?? (await link.textContent()) ?? '').split(': ').at(-1);
      await link.focus();
      await page.keyboard.press('Enter');
      await page.waitForURL(more);
      await expect.poll(() => listed(page), { timeout: 2_000 }).toBe(Number.parseInt(text ?? '', 10));
      return true;
    };
    await expect.poll(sameAsRows, { timeout: 30_000, message: which }).toBe(true);
  }

  // Numbers in tables: each is a link, or stands in a row with one.
  await page.goto(at.gateway.url);
  await page.getByText('read_note').first().waitFor();
  await page.getByText('tool calls: ').waitFor();
  const alone = await page.evaluate<readonly string[]>(`
    [...document.querySelectorAll('#page td.n, #page .card b')]
      .filter((cell) => /\\d/.test(cell.textContent) && !cell.querySelector('a') && !cell.closest('a') && !cell.closest('tr')?.querySelector('a'))
      .map((cell) => cell.textContent)
  `);
  expect(alone).toEqual([]);
  await page.locator('tr', { hasText: 'read_note' }).locator('td').nth(1).locator('a').click();
  await page.waitForURL(/tool=read_note&server=demo/);
  await expect.poll(() => listed(page), { timeout: 20_000 }).toBe(3);
}, 120_000);

test('a running task is counted, and listed with what it was given', async () => {
  const at = await openConsole('demo: true\nrules: [{ id: all, when: {}, then: allow }]\n');
  const page = await at.page();
  const task = await at.work('wait 60000 then read plan');
  await expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toBe('WORKING');
  await expect
    .poll(() => page.locator('.number', { hasText: 'tasks running' }).locator('b').textContent(), { timeout: 20_000 })
    .toBe('1');
  await page.locator('.number', { hasText: 'tasks running' }).click();
  await page.locator('tr', { hasText: 'wait 60000 then read plan' }).getByText('demo', { exact: true }).waitFor();
  await page.getByRole('link', { name: task }).click();
  await page.waitForURL(/\/sessions\/session_/);
  await at.call('POST', `/v1/tasks/${task}/cancel`, {});
}, 60_000);

test('where an hour has more events than are read at first, the page says since when it counts, and reads on when asked', async () => {
  const at = await openConsole();
  const events = (from: number) =>
    Array.from({ length: 500 }, (_, more) => ({
      event: 'vendor.tollbridge.note' as const,
      resource: { object: 'session', id: 'session_many' },
      workspace_id: 'workspace_default',
      payload: { text: `row ${from + more}` },
    }));
  for (let from = 0; from < 6000; from += 500)
    await at.gateway.core.log.commit({ decide: () => ({ events: events(from) }) });
  const page = await at.page();
  await page.getByText(/^since \d\d:\d\d:\d\d: this page reads the newest events first$/).waitFor();
  await page.getByRole('button', { name: 'Read the hour before' }).click();
  await page.getByText('the last hour', { exact: true }).waitFor();
});
