/** The page behind a decision link, in a real browser: a person sees what is asked and answers with a button. */

import { expect, onTestFinished, test } from 'vitest';
import { linkDoor } from '../../src/inbox/door.ts';
import { createLinks } from '../../src/inbox/links.ts';
import type { HttpHost } from '../../src/ports/index.ts';
import { createHttpHost } from '../../src/transport/http/server.ts';
import { scriptedAgent } from '../support/gateway/agents.ts';
import { openTestGateway } from '../support/gateway/test-gateway.ts';
import { openPage } from '../support/process/browser.ts';

test('a person approves on a phone, and what they saw is what ran', async () => {
  const ran: unknown[] = [];
  const agent = scriptedAgent(async (sink) => {
    const action = {
      kind: 'tool' as const,
      tool: 'send_mail',
      arguments: { to: 'bob', text: 'Lunch at <noon>?', long: 'x'.repeat(900) },
    };
    await sink.act({ ...action, effect: 'send' }, async (args) => {
      ran.push(args);
      return { status: 'succeeded', output: null };
    });
    return undefined;
  });
  const runtime = await openTestGateway({
    agents: [agent],
    rules: '- { id: out, when: { effect: send }, then: ask, say: data leaves this host }',
  });
  const links = createLinks((text) => runtime.runtime.keyring.signer().mac(text));
  const url = await serve(async (http) => {
    const log = { info() {}, warn() {}, error() {} };
    await linkDoor({ http, log, clock: runtime.clock, links, recipients: ['duty'] }).open(runtime.bridge);
  });
  const room = await runtime.room();
  const task = await room.task();
  const [ask] = await runtime.asks(task.id);
  const link = `${url}/decide/${links.token('duty', ask?.id ?? '')}`;

  const page = await openPage();
  await page.goto(link);
  expect(await page.locator('h1').textContent()).toContain('send_mail');
  expect((await page.locator('pre').allTextContents()).join('\n')).toContain('Lunch at <noon>?');
  for (const size of [
    { width: 360, height: 560 },
    { width: 1280, height: 800 },
  ]) {
    await page.setViewportSize(size);
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect(wide, 'nothing runs out of the page sideways').toBeLessThanOrEqual(size.width);
    const { y = 0, height = 0 } = (await page.getByRole('button', { name: 'Approve' }).boundingBox()) ?? {};
    expect(y + height, 'the buttons are in sight').toBeLessThanOrEqual(size.height);
  }
  await page.getByLabel(/reason/).fill('fine by me');
  await page.getByRole('button', { name: 'Approve' }).click();
  expect(await page.locator('h1').textContent()).toBe('Approved');
  await runtime.until(task.id);
  expect(ran).toEqual([{ to: 'bob', text: 'Lunch at <noon>?', long: 'x'.repeat(900) }]);

  await page.goto(link);
  expect(await page.locator('h1').textContent()).toBe('Already approved');
  expect(await page.getByRole('button').count()).toBe(0);
});

async function serve(open: (http: HttpHost) => Promise<void>): Promise<string> {
  let count = 0;
  const host = createHttpHost({
    requestId: () => `req_${++count}`,
    log: { info() {}, warn() {}, error() {} },
    graceMs: 0,
  });
  await open(host);
  const { url } = await host.listen();
  onTestFinished(() => host.close());
  return url;
}
