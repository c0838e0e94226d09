/** The console of a gateway whose log is in PostgreSQL: the same pages, answers and checks as with a file. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openConsole } from '../support/console/console.ts';
import { createDatabase, PASSWORD, type TestDatabase } from '../support/postgres/server.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

test('an approval is answered, its rows are read after a restart, and the receipt is checked in the browser', async () => {
  const at = await openConsole(`demo: true\nstore: { url: "${database.url}", secret: store }\n`, undefined, {
    TOLLBRIDGE_SECRET_store: PASSWORD,
  });
  const page = await at.page();
  await page.goto(`${at.gateway.url}/approvals`);
  const task = await at.work('read plan then send report to ana');
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.outcome', { hasText: 'Approved by you' }).waitFor();
  await expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toBe('COMPLETED');
  await page.goto(`${at.gateway.url}/activity?event=task.completed`);
  await expect.poll(() => page.locator('.row').count(), { timeout: 20_000 }).toBe(1);
  await at.restart();
  await at.work('read todo');
  await expect.poll(() => page.locator('.row').count(), { timeout: 20_000 }).toBe(2);
  await page.goto(`${at.gateway.url}/sessions`);
  await page.locator('#page td a').first().waitFor();
  const { body } = await at.call('GET', `/v1/receipts?task_id=${task}`);
  await page.goto(`${at.gateway.url}/proof/${body.data[0].id}`);
  await page.getByText('Checked in this browser: nothing is wrong').waitFor();
});
