/** Many tabs of one browser, which opens six connections to a host for all of them together. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { openConsole, watched } from '../support/console/console.ts';

/** A browser without a screen shows every tab: whether anyone looks is said here, as the browser says it. */
const OUT_OF_SIGHT = `
  window.inSight = false;
  Object.defineProperty(Document.prototype, 'hidden', { get: () => !window.inSight });
`;
const look = (page: Page, inSight: boolean) =>
  page.evaluate(`window.inSight = ${inSight}; document.dispatchEvent(new Event('visibilitychange'))`);

test('ten tabs stay usable: those out of sight rest, tell what waits, and read on without losing a row', async () => {
  const at = await openConsole();
  const first = await at.page();
  const tabs: Page[] = [];
  for (let count = 0; count < 9; count += 1) {
    const tab = watched(await first.context().newPage());
    await tab.addInitScript(OUT_OF_SIGHT);
    await tab.goto(`${at.gateway.url}/activity?event=vendor.tollbridge.ask_opened`);
    await tab.locator('nav').waitFor();
    tabs.push(tab);
  }
  await at.work('send report to ana');
  for (const tab of tabs) await expect.poll(() => tab.title(), { timeout: 20_000 }).toBe('(1) Tollbridge');
  const [tab] = tabs as [Page];
  expect(await tab.locator('.row').count(), 'it has read nothing meanwhile').toBe(0);
  await look(tab, true);
  await expect.poll(() => tab.locator('.row').count(), { timeout: 20_000 }).toBe(1);
  await tab.locator('.state.live').waitFor();
  await look(tab, false);
  await at.work('send report to bea');
  await expect.poll(() => tab.title(), { timeout: 20_000 }).toBe('(2) Tollbridge');
  expect(await tab.locator('.row').count()).toBe(1);
  await look(tab, true);
  await expect.poll(() => tab.locator('.row').count(), { timeout: 20_000 }).toBe(2);
  // The tab that followed the log for all of them goes; another one does it.
  await first.close();
  await at.work('send report to cem');
  for (const one of tabs) await expect.poll(() => one.title(), { timeout: 20_000 }).toBe('(3) Tollbridge');
}, 60_000);
