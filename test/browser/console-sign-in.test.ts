/** Sign-in to the console: a link that works once, a session that is worth nothing elsewhere, roles, and its end. */
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openApiKeys } from '../../src/auth/api-keys.ts';
import { openConsoleSessions } from '../../src/auth/console-sessions.ts';
import { systemClock } from '../../src/core/clock.ts';
import { DESKTOP, openConsole, watched } from '../support/console/console.ts';
import { openPage } from '../support/process/browser.ts';

const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

test('the printed link signs one browser in, once', async () => {
  const at = await openConsole();
  const link = (await at.gateway.consoleLink?.()) ?? '';
  const page = watched(await openPage(DESKTOP));
  await page.goto(link);
  await page.locator('nav').waitFor();
  expect(new URL(page.url()).hash, 'the code does not stay in the address').toBe('');
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
  expect(await page.evaluate<string>('document.cookie')).toBe('');
  await page.reload();
  await page.locator('nav').waitFor();

  const other = watched(await openPage(DESKTOP));
  await other.goto(link);
  await other.getByRole('alert').waitFor();
  expect(await other.getByRole('alert').textContent()).toContain('used before, or is too old');
  expect(await other.locator('nav').count()).toBe(0);
});

test('a session ends by sign-out in the page, and from the command line', async () => {
  const at = await openConsole();
  const page = await at.page();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Or use an API key').waitFor();
  await page.reload();
  await page.getByLabel('Or use an API key').waitFor();

  const again = await at.page();
  const dataDir = join(at.dir, 'data');
  const keyActor = openApiKeys(dataDir, systemClock).activeActor;
  const sessions = openConsoleSessions({ files: dataDir, clock: systemClock, keyActor });
  expect(await sessions.list()).toHaveLength(1);
  expect(await sessions.end()).toBe(1);
  await again.reload();
  await again.getByLabel('Or use an API key').waitFor();
});

test('with an API key a person is who the key says, and only while the key is valid', async () => {
  const at = await openConsole();
  const key = await at.key('approver', 'paula');
  const page = watched(await openPage(DESKTOP));
  await page.goto(at.gateway.url);
  await page.getByLabel('Or use an API key').fill(`${key.slice(0, -3)}AAA`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Or use an API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('nav').waitFor();
  expect(await page.locator('.who').textContent()).toBe('paula · approver');
  expect(await page.evaluate<string>('JSON.stringify(localStorage)')).not.toContain(key);

  const keys = openApiKeys(join(at.dir, 'data'), systemClock);
  const [made] = await keys.list();
  await keys.revoke(made?.id ?? '');
  await page.reload();
  await page.getByLabel('Or use an API key').waitFor();
});

test('two tabs have one session: who signs in or out in one is who the other shows', async () => {
  const at = await openConsole();
  const key = await at.key('approver', 'paula');
  const one = await at.page();
  const two = watched(await one.context().newPage());
  await two.goto(`${at.gateway.url}/rules`);
  await two.getByLabel('Rules', { exact: true }).waitFor();
  await one.getByRole('button', { name: 'Sign out' }).click();
  await two.getByLabel('Or use an API key').waitFor();
  await one.getByLabel('Or use an API key').fill(key);
  await one.getByRole('button', { name: 'Sign in' }).click();
  await one.locator('nav').waitFor();
  await two.locator('nav').waitFor();
  expect(await two.locator('.who').textContent()).toBe('paula · approver');
  await two.close();
});

test.each(['while the page reads its first rows', 'long after the page was opened'])(
  'a session that is over asks to sign in, and shows nothing more: %s',
  async (when) => {
    const at = await openConsole('demo: true\ndoors: { harn: { stream: { recheck_ms: 500 } } }\n');
    const page = await at.page();
    if (when.startsWith('long')) {
      // A page that asks for nothing by itself: only its stream says that the session is over.
      await page.goto(`${at.gateway.url}/approvals`);
      await page.getByText('Nothing waits for you').waitFor();
      await page.locator('.state.live').waitFor();
    }
    // As time does it: the session is the same, and its end has passed.
    const file = join(at.dir, 'data', 'auth', 'console-sessions.json');
    const kept = JSON.parse(await readFile(file, 'utf8'));
    for (const session of kept.sessions) session.expires_at = '2026-01-01T00:00:00.000Z';
    await writeFile(file, JSON.stringify(kept));
    await page.getByLabel('Or use an API key').waitFor();
    expect(await page.locator('nav').count()).toBe(0);
    await page.reload();
    await page.getByLabel('Or use an API key').waitFor();
  },
);

test('the cookie alone is worth nothing: not to a program, not to another origin, not to another port', async () => {
  const at = await openConsole();
  const page = await at.page();
  const [cookie] = await page.context().cookies();
  const proof = await page.evaluate<string>("localStorage.getItem('tollbridge-console-proof')");
  const headers = { ...VERSION, cookie: `${cookie?.name}=${cookie?.value}` };
  const tasks = `${at.gateway.url}/v1/tasks`;
  const whole = { ...headers, 'x-tollbridge-console': proof };
  const status = async (more: Record<string, string>) => (await fetch(tasks, { headers: more })).status;
  expect(await status(whole), 'both halves together are the session').toBe(200);
  expect(await status(headers), 'what another port of this host would be sent').toBe(401);
  expect(await status({ ...whole, cookie: '' })).toBe(401);
  expect(await status({ ...whole, 'sec-fetch-site': 'same-site' }), 'a page of another port').toBe(401);
  expect(await status({ ...whole, 'sec-fetch-site': 'cross-site' })).toBe(401);
  expect(await status({ ...whole, origin: 'http://127.0.0.1:1' })).toBe(403);
  expect(await status({ ...VERSION, authorization: `Bearer ${cookie?.value}` })).toBe(401);
  const mcp = await fetch(`${at.gateway.url}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer tbc.${cookie?.value}.${proof}`, 'content-type': 'application/json' },
    body: '{}',
  });
  expect(mcp.status, 'the session is not valid at other doors').toBe(401);
  const elsewhere = await fetch(tasks.replace('127.0.0.1', 'localhost'), { headers: whole });
  expect(elsewhere.status, 'the session is bound to the host it was opened under').toBe(401);
  // A name of the attacker's that points at this machine, as after DNS rebinding: no page, no sign-in, no session.
  for (const path of ['/', '/console/session', '/console/api/catalog', '/v1/tasks']) {
    const answered = await statusAs(at.gateway.url, path, {
      ...whole,
      host: 'evil.example',
      'sec-fetch-site': 'same-origin',
    });
    expect([path, answered]).toEqual([path, 403]);
  }
  const forged = await fetch(`${at.gateway.url}/console/session`, { method: 'DELETE', headers });
  expect(forged.status).toBe(401);

  // A page of another port, in the same browser: its requests carry the cookie and reach nothing.
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<iframe src="${at.gateway.url}/"></iframe>`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const evil = await page.context().newPage();
  await evil.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const answer = await evil.evaluate<string>(
    `fetch('${tasks}', { credentials: 'include', headers: { 'x-tollbridge-console': 'x' } }).then((r) => 'read ' + r.status, (e) => e.name)`,
  );
  expect(answer).toBe('TypeError');
  const framed = evil.frames().find((frame) => frame.url().startsWith(at.gateway.url));
  expect(await framed?.locator('nav').count(), 'no page frames the console').toBeFalsy();
});

/** The status of an answer to a request with this Host: `fetch` sends its own. */
function statusAs(url: string, path: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(new URL(path, url), { headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).on('error', reject);
  });
}

test('every answer of the console carries the policy, and there is no inline script or style in it', async () => {
  const at = await openConsole();
  for (const path of ['/', '/approvals', '/activity', '/sign-in']) {
    const answer = await fetch(`${at.gateway.url}${path}`);
    expect(answer.status).toBe(200);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|data:|https?:/);
    expect(answer.headers.get('x-frame-options')).toBe('DENY');
    const html = await answer.text();
    expect(html).not.toMatch(/<style|<script(?![^>]*\bsrc=)| style=| on\w+=/i);
  }
});

test('the first load is at most 200 kB as it is sent', async () => {
  const at = await openConsole();
  const html = await (await fetch(at.gateway.url)).text();
  let bytes = Buffer.byteLength(html);
  for (const [, path] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
    const answer = await fetch(new URL(path ?? '', at.gateway.url), { headers: { 'accept-encoding': 'gzip' } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toContain('immutable');
    bytes += Number(answer.headers.get('content-length'));
  }
  expect(bytes).toBeLessThanOrEqual(200_000);
});
