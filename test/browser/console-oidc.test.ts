/** Sign-in to the console at an OpenID provider, in a real browser: with the role the provider's groups give, and nothing kept of it. */
import { expect, onTestFinished, test } from 'vitest';
import { DESKTOP, openConsole, seriousIssues, watched } from '../support/console/console.ts';
import { oidcConfig, openOidcProvider } from '../support/console/oidc-provider.ts';
import { openPage } from '../support/process/browser.ts';

const ROLES = 'roles_claim: groups, roles: { oncall: approver }';

/** A gateway whose people sign in at a provider of its own. */
async function openWithProvider() {
  const provider = await openOidcProvider();
  process.env.TOLLBRIDGE_SECRET_oidc = provider.client.secret;
  onTestFinished(() => {
    delete process.env.TOLLBRIDGE_SECRET_oidc;
  });
  return { provider, at: await openConsole(`demo: true\n${oidcConfig(provider, ROLES)}`) };
}

test('a person signs in at the provider and answers with the role of their group', async () => {
  const { provider, at } = await openWithProvider();
  provider.claims = { groups: ['oncall', 'others'] };
  const page = watched(await openPage(DESKTOP));
  await page.goto(at.gateway.url);
  const button = page.getByRole('button', { name: `Sign in at ${new URL(provider.issuer).host}` });
  await button.waitFor();
  expect(await seriousIssues(page)).toEqual([]);
  await button.click();
  await page.locator('nav').waitFor();
  expect(await page.locator('.who').textContent()).toBe(`oauth:${provider.issuer}#ana · approver`);
  expect(new URL(page.url()).search, 'the code does not stay in the address').toBe('');
  expect(await page.evaluate<number>('sessionStorage.length')).toBe(0);
  const [cookie] = await page.context().cookies(at.gateway.url);
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });

  await at.work('send report to ana');
  await page.goto(`${at.gateway.url}/approvals`);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.outcome', { hasText: 'Approved by you' }).waitFor();
  const { body } = await at.call('GET', '/v1/permission-requests?status=approved');
  expect(body.data[0].response.answered_by).toBe(`oauth:${provider.issuer}#ana`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await button.waitFor();
});

test('a person without a role, and an answer that was begun elsewhere, sign no one in', async () => {
  const { provider, at } = await openWithProvider();
  provider.claims = { groups: ['others'] };
  const page = watched(await openPage(DESKTOP));
  await page.goto(at.gateway.url);
  await page.getByRole('button', { name: 'Sign in at' }).click();
  await page.getByRole('alert').filter({ hasText: 'no role here' }).waitFor();
  expect(await page.context().cookies(at.gateway.url)).toEqual([]);

  // Another browser began; its answer is brought here, as a page that wants us signed in as itself would.
  provider.claims = { groups: ['oncall'] };
  const begun = await fetch(`${at.gateway.url}/console/oidc`, { method: 'POST', headers: { origin: at.gateway.url } });
  const { location } = (await begun.json()) as { location: string };
  const back = await fetch(location, { redirect: 'manual' });
  await page.goto(back.headers.get('location') ?? '');
  await page.getByRole('alert').filter({ hasText: 'not begun in this browser' }).waitFor();
  expect(await page.locator('nav').count()).toBe(0);
  expect(new URL(page.url()).search).toBe('');
});

test('only a page of the console begins or ends a sign-in', async () => {
  const { at } = await openWithProvider();
  const status = async (headers: Record<string, string>, path = '/console/oidc', method = 'POST') =>
    (await fetch(`${at.gateway.url}${path}`, { method, headers, ...(method === 'POST' && { body: '{}' }) })).status;
  expect(await status({ origin: 'https://evil.example' })).toBe(403);
  expect(await status({ 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await status({}), 'a request without an origin is of no page').toBe(400);
  expect(await status({ origin: at.gateway.url }, '/console/oidc', 'DELETE')).toBe(404);
  const plain = await openConsole();
  const answer = await fetch(`${plain.gateway.url}/console/oidc`);
  expect([answer.status, await answer.json()]).toEqual([200, { name: null }]);
  const post = { method: 'POST', headers: { origin: plain.gateway.url }, body: '{}' };
  expect((await fetch(`${plain.gateway.url}/console/oidc`, post)).status).toBe(404);
});
