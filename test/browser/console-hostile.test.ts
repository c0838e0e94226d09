/** Text from agents, tools, keys and rules on every page that shows it: HTML, scripts, terminal codes and invisible characters stay text. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openConsole } from '../support/console/console.ts';
import { waitingCount } from '../support/console/traffic.ts';

/** HTML, script, terminal codes, a reversed text, tag characters: shown as what they are. */
const HOSTILE = '<img src=x onerror=alert(1)><script>alert(2)</script>\u001b[2J\u202eevil\u{e0041}';
/** As a person sees it. */
const SHOWN = '<img src=x onerror=alert(1)><script>alert(2)</script>';

/** A tool server whose only tool is described by an attacker. */
const SERVER = `
import { createInterface } from 'node:readline';
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const results = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'evil', version: '1' } }),
    'tools/list': () => ({ tools: [{ name: 'lure', description: ${JSON.stringify(HOSTILE)}, inputSchema: { type: 'object' } }] }),
    ping: () => ({}),
  };
  const result = results[method]?.();
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no such method' } }) }));
}
`;

test('text from agents, tools and keys is inert on every page', async () => {
  const at = await openConsole('demo: true\n', async (dir) => {
    await writeFile(join(dir, 'evil.mjs'), SERVER);
    return `tools: { evil: { mcp: { command: [${JSON.stringify(process.execPath)}, ${JSON.stringify(join(dir, 'evil.mjs'))}] } } }\n`;
  });
  const session = await at.session();
  const task = await at.work(`send ${HOSTILE} to ${HOSTILE}`, session);
  await expect.poll(() => waitingCount(at), { timeout: 20_000 }).toBe(1);
  await at.key('approver', HOSTILE.replace(/[^ -~]/g, ''));
  const page = await at.page();
  let asked = 0;
  page.on('dialog', (dialog) => {
    asked += 1;
    void dialog.dismiss();
  });
  const inert = async (path: string, shows = true) => {
    await page.goto(`${at.gateway.url}${path}`);
    await page.locator('#page h1').waitFor();
    const said = page.locator('#page').getByText(SHOWN, { exact: false });
    if (shows) await said.first().waitFor();
    const { elements, hidden } = await page.evaluate<{ elements: number; hidden: boolean }>(
      "({ elements: document.querySelectorAll('#page img, #page script').length, hidden: /[\\u001b\\u202e\\u{e0041}]/u.test(document.querySelector('#page').textContent) })",
    );
    expect([path, elements, hidden]).toEqual([path, 0, false]);
  };
  await inert('/approvals');
  await page.locator('.question-parts pre', { hasText: '\\u{202e}' }).first().waitFor();
  const { body } = await at.call('GET', '/v1/permission-requests?status=pending');
  await at.call('POST', `/v1/permission-requests/${body.data[0].id}/respond`, { approved: false, reason: HOSTILE });
  await expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toMatch(/COMPLETED|FAILED/);
  const receipt = (await at.call('GET', `/v1/receipts?task_id=${task}`)).body.data[0].id;
  const replay = (await at.call('POST', `/v1/tasks/${task}/replay`, { mode: 'exact' })).body.id;
  await inert('/', false);
  await inert('/activity');
  await inert('/activity?event=vendor.tollbridge.ask_closed');
  for (const view of ['timeline', 'conversation', 'files', 'cost', 'events']) {
    await inert(`/sessions/${session}?view=${view}`, view === 'conversation' || view === 'events');
  }
  await inert('/proof', false);
  await inert(`/proof/${receipt}`, false);
  await inert('/catalog');
  await inert('/map', false);
  await inert('/replay', false);
  await inert(`/replay/${task}?with=${replay}`);
  await inert('/rules', false);
  await page.getByRole('button', { name: 'Ask these rules' }).click();
  await page.getByText('would change').last().waitFor();
  await page.getByLabel('Rules', { exact: true }).fill(`- { id: ${HOSTILE}, then: perhaps }`);
  await page.locator('.problems li').first().waitFor();
  expect(await page.locator('#page img, #page script').count()).toBe(0);
  expect(asked).toBe(0);
}, 60_000);

/** One event of each kind that the lists tell in words of its own, with this text wherever an agent or a tool could have put it. */
function eventsOf(session: string, task: string): readonly object[] {
  const actor = { id: `agent:${HOSTILE}`, kind: 'agent', scopes: [], door: HOSTILE };
  const call = { tool_call_id: HOSTILE, name: HOSTILE, server: HOSTILE };
  const action = {
    ...{ id: 'act_x', kind: 'tool', tool: HOSTILE, server: HOSTILE, target: HOSTILE },
    ...{ effect: HOSTILE, evidence: HOSTILE, actor, arguments: { [HOSTILE]: HOSTILE } },
  };
  const decision = { verdict: 'block', reason: HOSTILE, rule_id: HOSTILE };
  const loss = [{ aspect: HOSTILE, why: HOSTILE }];
  const sent: readonly (readonly [string, object])[] = [
    ['vendor.tollbridge.decided', { action, decision }],
    ['vendor.tollbridge.decided', { action, decision: { ...decision, verdict: HOSTILE } }],
    ['tool.requested', { ...call, input: { [HOSTILE]: HOSTILE } }],
    ['tool.completed', { ...call, output: HOSTILE, loss }],
    ['tool.failed', { ...call, error: HOSTILE }],
    ['tool.approved', { ...call, by: HOSTILE, reason: HOSTILE }],
    ['tool.approval_required', { question: HOSTILE }],
    ['vendor.tollbridge.plan', { entries: [{ status: 'in_progress', content: HOSTILE }] }],
    ['agent.handoff', { target_agent: HOSTILE, status: HOSTILE }],
    ['agent.message', { message: { role: HOSTILE, parts: [{ type: 'text', text: HOSTILE }] } }],
    ['vendor.tollbridge.usage', { provider: HOSTILE, model: HOSTILE, input_tokens: 1, usd_micros: 5 }],
    ['vendor.tollbridge.side_effect', { type: 'fs_write', path: HOSTILE, operation: HOSTILE, evidence: HOSTILE }],
    ['vendor.tollbridge.tainted', { server: HOSTILE, what: HOSTILE, target: HOSTILE }],
    ['vendor.tollbridge.alarm', { message: HOSTILE }],
    ['vendor.tollbridge.note', { text: HOSTILE }],
  ];
  return sent.map(([event, payload]) => ({
    event,
    resource: { object: 'task', id: task },
    workspace_id: 'workspace_default',
    session_id: session,
    task_id: task,
    actor: `agent:${HOSTILE}`,
    payload,
  }));
}

test('hostile text in every column of every list, in the choices of filters, in tooltips and in names', async () => {
  const at = await openConsole();
  const session = await at.session();
  const task = await at.work('read plan', session);
  await expect
    .poll(async () => (await at.call('GET', `/v1/tasks/${task}`)).body.status, { timeout: 20_000 })
    .toBe('COMPLETED');
  // The log takes what an adapter lets through; here it is let through whole.
  await at.gateway.core.log.commit({ decide: () => ({ events: eventsOf(session, task) as never }) });
  const page = await at.page();
  const inert = async (path: string) => {
    await page.goto(`${at.gateway.url}${path}`);
    await page.locator('#page h1').waitFor();
    if (!path.startsWith('/map') && !path.startsWith('/replay/')) {
      await page.locator('#page').getByText(SHOWN, { exact: false }).filter({ visible: true }).first().waitFor();
    }
    const found = await page.evaluate<readonly [number, boolean]>(`[
      document.querySelectorAll('#page img, #page script').length,
      /[\\u001b\\u202e\\u{e0041}]/u.test(document.querySelector('#page').textContent + [...document.querySelectorAll('#page [title]')].map(({ title }) => title).join()),
    ]`);
    expect([path, ...found]).toEqual([path, 0, false]);
    expect([path, await page.evaluate<number>('document.querySelector("#page").scrollWidth - innerWidth')]).toEqual([
      path,
      expect.toSatisfy((over: number) => over <= 0),
    ]);
  };
  for (const path of ['/', '/activity', '/map']) await inert(path);
  for (const view of ['timeline', 'conversation', 'files', 'cost', 'events']) {
    await inert(`/sessions/${session}?view=${view}`);
  }
  await page.locator('.losses summary').click();
  await page.locator('.losses li').first().waitFor();
  expect(await page.evaluate<boolean>('/[\\u202e]/u.test(document.querySelector(".losses").textContent)')).toBe(false);
  await inert(`/replay/${task}`);
  await page.getByLabel('Mode').selectOption('with_overrides');
  expect(await page.evaluate<boolean>('/[\\u202e]/u.test(document.querySelector("#page").textContent)')).toBe(false);
}, 60_000);
