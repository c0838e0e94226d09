/**
 * The console with more than a person reads: 100,000 rows, a burst of events, sessions of 10,000 rows and strings of a megabyte, each of
 * them hostile. What is proved is counted (elements, redraws, rows), because the time that a redraw takes depends on the machine.
 */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type ConsoleGateway, openConsole } from '../support/console/console.ts';
import { mailFrom, waitingCount } from '../support/console/traffic.ts';

const MANY = 100_000;
/** HTML, script, terminal codes, a reversed text, tag characters. */
const HOSTILE = '<img src=x onerror=alert(1)><script>alert(2)</script>\u001b[2J\u202eevil\u{e0041}';
/** More than a screen of rows needs, and far less than one for each row. */
const MOST_ELEMENTS = 2500;

const elements = (page: Page) => page.evaluate<number>("document.querySelectorAll('*').length");
const listed = async (page: Page) => Number(await page.locator('.list').getAttribute('data-count'));

/** Notes straight into the log, as fast as it takes them. */
async function write(at: ConsoleGateway, count: number, text: (at: number) => string, session?: string): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const events = Array.from({ length: Math.min(500, count - from) }, (_, more) => ({
      event: 'vendor.tollbridge.note' as const,
      resource: { object: 'session', id: session ?? 'session_many' },
      workspace_id: 'workspace_default',
      ...(session && { session_id: session }),
      payload: { text: text(from + more) },
    }));
    await at.gateway.core.log.commit({ decide: () => ({ events }) });
  }
}

/** Nothing of the page was made by text, and no invisible character is in it as such. */
async function expectInert(page: Page, where: string): Promise<void> {
  const found = await page.evaluate<readonly [number, boolean]>(
    "[document.querySelectorAll('#page img, #page script').length, /[\\u001b\\u202e\\u{e0041}]/u.test(document.querySelector('#page').textContent)]",
  );
  expect([where, ...found]).toEqual([where, 0, false]);
}

test('100,000 rows and a burst of 5,000 more: few elements, one redraw a frame, no row lost, and the keys answer', async () => {
  const at = await openConsole();
  await write(at, MANY, (row) => `row ${row} ${HOSTILE}`);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/activity`);
  // The newest come by themselves, older ones on request.
  await expect.poll(() => listed(page), { timeout: 30_000 }).toBe(5000);
  for (let wanted = 25_000; wanted < MANY + 20_000; wanted += 20_000) {
    await page.getByRole('button', { name: 'Load older' }).click();
    await expect.poll(() => listed(page), { timeout: 30_000 }).toBeGreaterThanOrEqual(Math.min(wanted, MANY));
  }
  for (const share of [0, 0.5, 1]) {
    await page.evaluate(
      `document.querySelector('.list').scrollTop = ${share} * document.querySelector('.list').scrollHeight`,
    );
    await expect.poll(() => page.locator('.row').count(), { timeout: 20_000 }).toBeGreaterThan(10);
    expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
    await expectInert(page, `at ${share}`);
  }
  await page.getByText('row 0 <img', { exact: false }).waitFor();
  await page.evaluate("document.querySelector('.list').scrollTop = 0");

  await page.evaluate(`
    window.frames_drawn = 0; window.redraws = 0;
    const frame = () => { window.frames_drawn += 1; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
    new MutationObserver(() => { window.redraws += 1; }).observe(document.querySelector('.list'), { attributes: true, attributeFilter: ['data-count'] });
  `);
  const before = await listed(page);
  const burst = write(at, 5000, (row) => `burst ${row} ${HOSTILE}`);
  await page.keyboard.press('p');
  await page.getByRole('button', { name: /^Resume/ }).waitFor();
  await page.keyboard.press('p');
  await page.getByRole('button', { name: /^Pause/ }).waitFor();
  await burst;
  await expect.poll(() => listed(page), { timeout: 30_000 }).toBe(before + 5000);
  const { redraws, frames } = await page.evaluate<{ redraws: number; frames: number }>(
    '({ redraws: window.redraws, frames: window.frames_drawn })',
  );
  // The two presses of a key redraw as well.
  expect(redraws).toBeLessThanOrEqual(frames + 4);
  expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);

  await page.getByLabel('Text', { exact: true }).fill('burst 4999');
  await expect.poll(() => listed(page), { timeout: 20_000 }).toBe(1);
  await page.locator('.row').click();
  await page.locator('.detail pre', { hasText: '<script>alert(2)</script>' }).first().waitFor();
  await expectInert(page, 'an event');
  for (const path of ['/', '/map']) {
    await page.locator(`nav a[href="${path}"]`).last().click();
    await page.locator('#page h1').waitFor();
    await expectInert(page, path);
  }
}, 120_000);

test('a session of 10,000 rows is drawn in every view with few elements, and its text is inert', async () => {
  const at = await openConsole();
  const session = await at.session();
  const task = await at.work('read plan', session);
  await expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toBe('COMPLETED');
  const resource = { object: 'task', id: task };
  const where = { workspace_id: 'workspace_default', session_id: session, task_id: task };
  for (let from = 0; from < 5000; from += 250) {
    const events = Array.from({ length: 250 }, (_, more) => {
      const tool_call_id = `call_${from + more}`;
      const name = `${HOSTILE} ${from + more}`;
      return [
        {
          event: 'tool.requested' as const,
          resource,
          ...where,
          payload: { tool_call_id, name, input: { text: HOSTILE } },
        },
        {
          event: 'vendor.tollbridge.side_effect' as const,
          resource,
          ...where,
          payload: { type: 'fs_write', path: `/${name}`, diff: `+${HOSTILE}` },
        },
      ];
    }).flat();
    await at.gateway.core.log.commit({ decide: () => ({ events: events as never }) });
  }
  const page = await at.page();
  for (const [view, wanted] of [
    ['timeline', 5000],
    ['events', 10_000],
  ] as const) {
    await page.goto(`${at.gateway.url}/sessions/${session}?view=${view}`);
    await expect.poll(() => listed(page), { timeout: 30_000 }).toBeGreaterThanOrEqual(wanted);
    expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
    await expectInert(page, view);
  }
  await page.goto(`${at.gateway.url}/sessions/${session}?view=files`);
  await page.getByText('<img src=x', { exact: false }).first().waitFor();
  await page.getByRole('button', { name: /Show more of 5,000/ }).waitFor();
  expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
  await expectInert(page, 'files');
  await page.goto(`${at.gateway.url}/sessions/${session}?view=conversation`);
  await page.locator('.turn').first().waitFor();
  await expectInert(page, 'conversation');
}, 90_000);

test('a string of a megabyte is shown inert: in its approval whole, elsewhere cut with the rest on request', async () => {
  const at = await openConsole();
  const text = `${HOSTILE}${'x'.repeat(100)}\n`.repeat(Math.ceil(1_000_000 / (HOSTILE.length + 101)));
  mailFrom(at, text);
  await expect.poll(() => waitingCount(at), { timeout: 20_000 }).toBe(1);
  const { body } = await at.call('GET', '/v1/permission-requests?status=pending');
  const session: string = body.data[0].session_id;
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  const whole = page.locator('.question-parts pre', { hasText: '<script>alert(2)</script>' }).first();
  await whole.waitFor();
  const lines = ((await whole.textContent()) ?? '').split('<script>alert(2)</script>').length - 1;
  expect(lines, 'the act is shown whole').toBe(text.split('\n').length - 1);
  await expectInert(page, 'approval');
  await page.getByRole('button', { name: 'Approve' }).waitFor();

  await page.goto(`${at.gateway.url}/activity?text=send_mail&event=tool.requested`);
  await page.locator('.row').first().click();
  const shown = page.locator('.detail pre').first();
  await shown.waitFor();
  await expectInert(page, 'event');
  for (const view of ['timeline', 'events', 'conversation', 'files']) {
    await page.goto(`${at.gateway.url}/sessions/${session}?view=${view}`);
    await page.locator('#page h1').waitFor();
    await expectInert(page, view);
  }
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByLabel('Reason').fill('too long');
  await page.keyboard.press('Enter');
  await page.locator('.outcome', { hasText: 'Denied by you' }).waitFor();
}, 90_000);
