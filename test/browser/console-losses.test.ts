/** What a translation could not carry is on the console: on the page of the session, and beside the event that says so. */
import { expect, test } from 'vitest';
import { LOSSY_CONFIG, LOSSY_WORK } from '../support/acp/lossy-agent.ts';
import { openConsole } from '../support/console/console.ts';

test('the session lists each loss, a loss leads to its event, and the event states it', async () => {
  const at = await openConsole(LOSSY_CONFIG);
  const task = await at.work(LOSSY_WORK);
  const { body } = await at.call('GET', `/v1/tasks/${task}`);
  const state = async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status;
  await expect.poll(state, { timeout: 20_000 }).toBe('COMPLETED');
  const page = await at.page();
  await page.goto(`${at.gateway.url}/sessions/${body.session_id}`);
  const losses = page.locator('.losses');
  await losses.locator('summary').click();
  expect(await losses.locator('summary').textContent()).toBe('Could not be carried: effects, usage, report');
  expect(await losses.locator('li').allTextContents()).toEqual([
    'effects the agent ran the call itself and does not say what it changed',
    'usage the agent reports neither tokens nor money',
    'report of what the agent did without asking, only its own report is known',
  ]);
  await losses.getByRole('button', { name: 'effects' }).click();
  await page.locator('.detail', { hasText: 'tool.completed' }).waitFor();

  await page.goto(`${at.gateway.url}/activity?event=tool.completed`);
  await page.locator('.row').first().click();
  const stated = page.getByLabel('What the translation could not carry');
  await stated.waitFor();
  expect(await stated.locator('li').allTextContents()).toEqual([
    'effects: the agent ran the call itself and does not say what it changed',
  ]);
});

test('a session whose work was carried whole lists none', async () => {
  const at = await openConsole();
  const task = await at.work('read plan');
  const state = async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status;
  await expect.poll(state, { timeout: 20_000 }).toBe('COMPLETED');
  const { body } = await at.call('GET', `/v1/tasks/${task}`);
  const page = await at.page();
  await page.goto(`${at.gateway.url}/sessions/${body.session_id}`);
  await page.locator('#page').getByText('read_note').first().waitFor();
  expect(await page.locator('.losses').count()).toBe(0);
});
