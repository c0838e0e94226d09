/** What a role may not use is not there: no page, no button, no answer of a route, and no request for it. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type ConsoleGateway, DESKTOP, openConsole, seriousIssues, watched } from '../support/console/console.ts';
import { waitingCount } from '../support/console/traffic.ts';
import { openPage } from '../support/process/browser.ts';

async function signedIn(at: ConsoleGateway, key: string): Promise<Page> {
  const page = watched(await openPage(DESKTOP));
  await page.goto(at.gateway.url);
  await page.getByLabel('Or use an API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('nav').waitFor();
  return page;
}

/** The status of a request that a page of the console does not send, as its session. */
const asked = (page: Page, path: string, method: string, body: object = {}) =>
  page.evaluate<number>(
    `fetch('${path}', { method: '${method}', ${method === 'GET' ? '' : `body: ${JSON.stringify(JSON.stringify(body))},`} headers: { 'content-type': 'application/json', 'harn-agents-protocol-version': 'agents-protocol-2026-04-25', 'x-tollbridge-console': localStorage.getItem('tollbridge-console-proof') } }).then(({ status }) => status)`,
  );

test('an approver answers, and finds no receipts, keys, or rules to save', async () => {
  const at = await openConsole();
  await at.work('send report to ana');
  await expect.poll(() => waitingCount(at), { timeout: 20_000 }).toBe(1);
  const page = await signedIn(at, await at.key('approver', 'paula'));
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${new URL(response.url()).pathname}`);
  });
  const pages = await page.locator('nav li a span').allTextContents();
  expect(pages).toEqual(['Overview', 'Approvals', 'Activity', 'Sessions', 'Rules', 'Catalog', 'Map', 'Replay']);
  for (const name of pages) {
    await page.locator('nav').getByRole('link', { name }).click();
    await page.locator('#page h1', { hasText: name }).waitFor();
    await page.locator('[aria-busy=true]').waitFor({ state: 'detached' });
    expect([name, await page.getByRole('alert').count()]).toEqual([name, 0]);
    expect([name, await seriousIssues(page)]).toEqual([name, []]);
  }
  expect(refused, 'the page asks for nothing that is refused').toEqual([]);
  await page.locator('nav').getByRole('link', { name: 'Rules' }).click();
  await page.getByLabel('Rules', { exact: true }).waitFor();
  expect(await page.getByRole('button', { name: 'Save', exact: true }).count()).toBe(0);
  // The key of a page that is not there, and its address: both as of a page that never was.
  await page.keyboard.press('5');
  await page.locator('#page h1', { hasText: 'Rules' }).waitFor();
  for (const path of ['/proof', '/proof/receipt_x', '/nothing-of-the-kind']) {
    const answer = await page.goto(`${at.gateway.url}${path}`);
    if (answer?.status() === 200) await page.getByText('There is no such page').waitFor();
    else expect([path, answer?.status()]).toEqual(['/nothing-of-the-kind', 404]);
  }
  await page.goto(at.gateway.url);
  for (const [path, method] of [
    ['/console/api/rules', 'PUT'],
    ['/console/api/rules/cases', 'PUT'],
    ['/console/api/pins/skill_pin_x', 'POST'],
    ['/console/api/proof', 'GET'],
    ['/console/api/proof/receipts/receipt_x', 'GET'],
    ['/console/api/newest/receipt', 'GET'],
    ['/console/api/nothing-of-the-kind', 'GET'],
  ] as const) {
    expect([path, await asked(page, path, method, {})]).toEqual([path, 404]);
  }
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.outcome', { hasText: 'Approved by you' }).waitFor();
}, 60_000);

test('a viewer sees no keys and cannot save rules, even by asking for it', async () => {
  const at = await openConsole('demo: true\nrules: [{ id: reads-are-fine, when: { effect: read }, then: allow }]\n');
  const { key } = await at.viewer();
  const page = await signedIn(at, key);
  await page.goto(`${at.gateway.url}/rules`);
  await page.getByLabel('Rules', { exact: true }).waitFor();
  expect(await page.getByRole('button', { name: 'Save', exact: true }).count()).toBe(0);
  expect(await asked(page, '/console/api/rules', 'PUT')).toBe(404);
  expect(await asked(page, '/console/api/rules/cases', 'PUT')).toBe(404);
  expect(await asked(page, '/console/api/pins/skill_pin_x', 'POST')).toBe(404);
  expect(await asked(page, '/console/api/nothing', 'GET')).toBe(404);
  await page.goto(`${at.gateway.url}/catalog`);
  await page.getByText('Doors', { exact: true }).waitFor();
  expect(await page.getByText('API keys', { exact: true }).count()).toBe(0);
});
