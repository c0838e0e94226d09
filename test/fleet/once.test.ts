/**
 * What the replicas on one log tell others: each question to the configured webhooks, the steps of a task to the address that a peer named,
 * the head of the log to its witness. Once by all three together, and by another one when the one that did it is killed.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readHeads } from '../../src/witness/record.ts';
import type { Loose } from '../matrix/gateway-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Fleet, openFleet } from '../support/fleet/fleet.ts';
import { exchange } from '../support/mcp/wire-client.ts';
import { createDatabase, PASSWORD, type TestDatabase } from '../support/postgres/server.ts';
import { about, openHook } from '../support/wire/webhook.ts';

const NATIVE = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

let database: TestDatabase;
let fleet: Fleet;
let key: string;
let inbox: Awaited<ReturnType<typeof openHook>>;
let peer: Awaited<ReturnType<typeof openHook>>;

beforeAll(async () => {
  database = await createDatabase();
  inbox = await openHook({ lasting: true });
  peer = await openHook({ lasting: true });
  fleet = await openFleet({
    count: 1,
    env: { TOLLBRIDGE_SECRET_store: PASSWORD, TOLLBRIDGE_SECRET_hook: 'the key of the webhook' },
    config: (dir) => ({
      store: { url: database.url, secret: 'store', lease_timeout: '2s' },
      witness: { kept: { file: headsIn(dir) } },
      approvals: { webhooks: { hook: { url: inbox.url, secret: 'hook' } } },
      doors: { a2a: { push: { allow: [peer.host] } } },
      rules: [{ id: 'ask', when: { effect: 'send' }, then: 'ask' }],
    }),
  });
  for (let more = 0; more < 2; more += 1) await fleet.start();
  key = await fleet.key('ana');
}, 120_000);
afterAll(async () => {
  await fleet?.close();
  await inbox?.close();
  await peer?.close();
  await database?.drop();
}, 60_000);

const headsIn = (dir: string) => join(dir, 'heads.jsonl');

async function rest(method: 'GET' | 'POST', path: string, body?: object): Promise<Loose> {
  const headers = { authorization: `Bearer ${key}`, ...NATIVE };
  const { status, frames } = await exchange(`${fleet.balancer.url}${path}`, { method, headers, ...(body && { body }) });
  expect(status).toBeLessThan(300);
  return frames[0];
}

async function ask(text: string): Promise<void> {
  const session = await rest('POST', '/v1/sessions', { workspace_id: 'workspace_default' });
  const input = { role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] };
  await rest('POST', `/v1/sessions/${session.id}/tasks`, { input });
}

const pending = async (): Promise<string[]> =>
  (await rest('GET', '/v1/permission-requests?status=pending')).data.map(({ id }: Loose) => id);

/** How often each message about each question came. */
function counted(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { body } of inbox.got) {
    const { type, data } = body as Loose;
    counts[`${type} ${data.id}`] = (counts[`${type} ${data.id}`] ?? 0) + 1;
  }
  return counts;
}

async function answerAll(ids: readonly string[]): Promise<void> {
  for (const id of ids) await rest('POST', `/v1/permission-requests/${id}/respond`, { approved: true });
  await eventually(() => ids.every((id) => counted()[`approval.closed ${id}`]), 'the ends to be sent', {
    timeoutMs: 20_000,
  });
}

test('a question is sent once, and by another replica when the one that sends is killed', {
  timeout: 90_000,
}, async () => {
  for (let count = 0; count < 3; count += 1) await ask(`send ${count} to ana`);
  await eventually(async () => (await pending()).length === 3, 'three questions');
  const first = await pending();
  await eventually(() => first.every((id) => counted()[`approval.requested ${id}`]), 'all of them to be sent');
  const [open = '', ...others] = first;
  await answerAll(others);
  // Whichever it is: the one that was started first had the choice.
  const [sender] = fleet.replicas;
  await fleet.stop(sender!, 'SIGKILL');
  await ask('send more to ana');
  await eventually(async () => (await pending()).length === 2, 'one more question');
  const later = (await pending()).filter((id) => id !== open);
  await eventually(() => later.every((id) => counted()[`approval.requested ${id}`]), 'it to be sent', {
    timeoutMs: 20_000,
  });
  await answerAll([open, ...later]);
  const counts = counted();
  for (const id of [...others, ...later]) {
    expect(counts[`approval.requested ${id}`]).toBe(1);
    expect(counts[`approval.closed ${id}`]).toBe(1);
  }
  // It was open when its sender died: sent again under the same id by the one that took over, and by no third.
  expect(counts[`approval.requested ${open}`]).toBeLessThanOrEqual(2);
  expect(counts[`approval.closed ${open}`]).toBe(1);
  await fleet.start();
});

test('a peer hears of the end once, though the replica that ran and reported the work is killed', {
  timeout: 90_000,
}, async () => {
  const [, second] = fleet.replicas;
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: peer.url, id: 'c1' } };
  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'send news to ana' }] };
  const sent = await exchange(`${second!.url}/a2a/demo`, {
    headers: { authorization: `Bearer ${key}`, 'a2a-version': '1.0' },
    body: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, configuration } },
  });
  expect(sent.status).toBe(200);
  const steps = () => peer.got.map(({ body }) => about(body));
  await eventually(() => steps().some((step) => /REQUIRED/.test(step)), 'the question to be reported');
  await fleet.stop(second!, 'SIGKILL');
  await eventually(async () => (await pending()).length === 1, 'the question to be open');
  await rest('POST', `/v1/permission-requests/${(await pending())[0]}/respond`, { approved: true });
  await eventually(() => steps().includes('TASK_STATE_COMPLETED'), 'the end to be reported', { timeoutMs: 40_000 });
  // What came before may be sent again: at least once, from the last cursor that was saved.
  const seen = steps();
  expect(seen.filter((step) => step === 'TASK_STATE_COMPLETED')).toHaveLength(1);
  expect(seen.at(-1)).toBe('TASK_STATE_COMPLETED');
  await fleet.start();
});

test('heads of the log are signed and sent by one of them at a time, each once', { timeout: 60_000 }, async () => {
  const sizes = () => readHeads(headsIn(fleet.dir)).then((heads) => heads.map(({ size }) => size));
  const before = (await sizes()).length;
  for (let round = 1; round <= 2; round += 1) {
    await ask('hello');
    await eventually(async () => (await sizes()).length >= before + round, 'a head that covers it', {
      timeoutMs: 25_000,
    });
  }
  const found = await sizes();
  expect(found).toEqual([...new Set(found)].toSorted((one, other) => one - other));
});
