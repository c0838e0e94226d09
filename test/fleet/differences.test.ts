/**
 * Three replicas on one log in PostgreSQL that are not alike: their clocks are hours apart, and one has another configuration. What they
 * write together has the time of the database, and what one of them is told holds at the others.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CoreEvent } from '../../src/model/events.ts';
import type { Loose } from '../matrix/gateway-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Fleet, openFleet } from '../support/fleet/fleet.ts';
import { exchange } from '../support/mcp/wire-client.ts';
import { readEvents } from '../support/oracle/oracle.ts';
import { createDatabase, PASSWORD, type TestDatabase } from '../support/postgres/server.ts';

const HOUR_MS = 3_600_000;
const NATIVE = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
/** Before anything of the gateway is loaded. */
const SHIFTED = join(tmpdir(), `tb-shifted-${process.pid}.mjs`);

let database: TestDatabase;
let fleet: Fleet;
let key: string;

beforeAll(async () => {
  writeFileSync(
    SHIFTED,
    `const ahead = Number(process.env.CLOCK_AHEAD_MS);
     const Own = Date;
     globalThis.Date = class extends Own {
       constructor(...args) { super(...(args.length === 0 ? [Own.now() + ahead] : args)); }
       static now() { return Own.now() + ahead; }
     };`,
  );
  database = await createDatabase();
  fleet = await openFleet({
    env: (slot) => ({
      TOLLBRIDGE_SECRET_store: PASSWORD,
      CLOCK_AHEAD_MS: String([0, HOUR_MS, -HOUR_MS][slot % 3]),
      NODE_OPTIONS: `--import=${pathToFileURL(SHIFTED)}`,
    }),
    config: (_, slot) => ({
      store: { url: database.url, secret: 'store' },
      doors: { a2a: {} },
      rules: [{ id: slot === 1 ? 'other' : 'ask', when: { effect: 'send' }, then: slot === 1 ? 'block' : 'ask' }],
      quotas: { few: { limits: { tasks: slot === 1 ? 40 : 30 }, per: '1d' } },
      personas: { few: { quota: 'few' } },
    }),
  });
  key = await fleet.key('ana');
}, 120_000);
afterAll(async () => {
  await fleet?.close();
  await database?.drop();
  rmSync(SHIFTED, { force: true });
}, 60_000);

async function rest(url: string, method: 'GET' | 'POST', path: string, body?: object): Promise<Loose> {
  const headers = { authorization: `Bearer ${key}`, ...NATIVE };
  const { status, frames } = await exchange(`${url}${path}`, { method, headers, ...(body && { body }) });
  expect([path, status < 300, frames[0]]).toEqual([path, true, frames[0]]);
  return frames[0];
}
async function begin(url: string, text: string): Promise<Loose> {
  const session = await rest(url, 'POST', '/v1/sessions', { workspace_id: 'workspace_default' });
  const input = { role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] };
  return await rest(url, 'POST', `/v1/sessions/${session.id}/tasks`, { input });
}
const over = (url: string, id: string) =>
  eventually(
    async () => /COMPLETED|FAILED|CANCELED/.exec((await rest(url, 'GET', `/v1/tasks/${id}`)).status)?.[0],
    `the end of ${id}`,
  );
const bySlot = () => fleet.replicas.toSorted((one, other) => one.slot - other.slot);
const urls = () => bySlot().map(({ url }) => url) as [string, string, string];
const events = (): Promise<CoreEvent[]> => readEvents({ url: database.url, password: PASSWORD });

test('all times in the log are those of the database', async () => {
  for (const url of urls()) expect(await over(url, (await begin(url, 'hello')).id)).toBe('COMPLETED');
  const times = (await events()).map(({ created_at }) => Date.parse(created_at));
  expect(times).toEqual(times.toSorted((one, other) => one - other));
  for (const time of times) expect(Math.abs(time - Date.now())).toBeLessThan(HOUR_MS / 4);
});

test('a question that is asked at one of them stays open, and is answered at another', async () => {
  const [first, ahead, behind] = urls();
  const { id } = await begin(first, 'send the plan to ana');
  const pending = async (url: string) =>
    (await rest(url, 'GET', '/v1/permission-requests?status=pending')).data.find((ask: Loose) => ask.task_id === id);
  for (const url of [first, ahead, behind]) await eventually(() => pending(url), 'the question');
  // One that starts an hour ahead expires what is due by its clock.
  await fleet.stop(bySlot()[1]!);
  await fleet.start();
  const ask = await eventually(() => pending(behind), 'the question');
  await rest(behind, 'POST', `/v1/permission-requests/${ask.id}/respond`, { approved: true });
  expect(await over(first, id)).toBe('COMPLETED');
});

test('what one of them holds is handed on to it, although their clocks are hours apart', async () => {
  const headers = { authorization: `Bearer ${key}`, 'mcp-protocol-version': '2025-11-25' };
  for (const holder of urls()) {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
    const opened = await exchange(`${holder}/mcp`, {
      headers,
      body: { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    });
    const session = { ...headers, 'mcp-session-id': opened.headers['mcp-session-id'] as string };
    for (const url of urls())
      expect(
        (await exchange(`${url}/mcp`, { headers: session, body: { jsonrpc: '2.0', id: 2, method: 'tools/list' } }))
          .status,
      ).toBe(200);
  }
});

test('each decides by its own rules and says by which; what is in the log is one for all, and nobody rewrites it for ever', async () => {
  const [, other] = urls();
  const { id } = await begin(other, 'send the plan to ana');
  await over(other, id);
  const decided = (await events()).filter(
    ({ event, task_id }) => event === 'vendor.tollbridge.decided' && task_id === id,
  );
  expect(decided.map(({ payload }) => (payload as Loose).decision).at(-1)).toMatchObject({
    verdict: 'block',
    rule_id: 'other',
  });
  const declared = async () =>
    (await events()).filter(({ payload }) => JSON.stringify(payload).includes('"quota_few"')).length;
  const before = await declared();
  expect(await over(urls()[0], (await begin(urls()[0], 'hello')).id)).toBe('COMPLETED');
  expect(await declared()).toBe(before);
});
