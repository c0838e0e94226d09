/**
 * The inbox over HTTP, in a gateway as it is served: what waits for a person is listed, looked at and answered at one address, whichever
 * protocol it was raised on, once, and by nobody who may not.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { openApiKeys } from '../../src/auth/api-keys.ts';
import { PRESETS, type Preset } from '../../src/auth/presets.ts';
import { systemClock } from '../../src/core/clock.ts';
import { type Gateway, startGateway } from '../../src/runtime/gateway.ts';
import { speakTo } from '../support/acp/client.ts';
import { event } from '../support/ahp/gateway.ts';
import { configIn } from '../support/process/config-in.ts';
import { PROJECT } from '../support/process/project.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any;

const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
const INBOX = '/v1/permission-requests';

let dir: string;
let gateway: Gateway;
/** A person who may answer; the token that is printed starts the work, and approves none of it. */
let approver: Record<string, string>;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tb-inbox-api-'));
  gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  const { kind, scopes, doors } = PRESETS.get('approver') as Preset;
  const actor = { id: 'paula', kind, scopes: [...scopes], doors: [...(doors ?? [])] };
  const { key } = await openApiKeys(join(dir, 'data'), systemClock).create({ name: 'phone', actor });
  approver = { authorization: `Bearer ${key}` };
  return async () => {
    await gateway.close();
    await rm(dir, { recursive: true, force: true });
  };
});

async function call(method: string, path: string, body?: object, more: Record<string, string> = {}) {
  const answer = await fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json', ...VERSION, ...more },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Body };
}

/** A key of another caller, as `tollbridge keys create` makes them. */
async function holderOf(...scopes: readonly string[]): Promise<Record<string, string>> {
  const keys = openApiKeys(join(dir, 'data'), systemClock);
  const { key } = await keys.create({ name: 'k', actor: { id: 'holder', kind: 'service', scopes: [...scopes] } });
  return { authorization: `Bearer ${key}` };
}

async function aSession(): Promise<string> {
  return (await call('POST', '/v1/sessions', { workspace_id: 'workspace_default' })).body.id;
}

async function submitted(text: string, session?: string): Promise<string> {
  const path = `/v1/sessions/${session ?? (await aSession())}/tasks`;
  return (await call('POST', path, { input: { text } })).body.id;
}

/** The question about a mail to this address, once it is there. */
async function waiting(to: string): Promise<Body> {
  const find = async () => {
    const { body } = await call('GET', `${INBOX}?status=pending&limit=100`);
    return body.data.find(({ action }: Body) => JSON.stringify(action.arguments ?? {}).includes(to));
  };
  await expect.poll(find, { timeout: 20_000 }).toBeDefined();
  return await find();
}

const respond = (id: string, body: object, more: Record<string, string> = {}) =>
  call('POST', `${INBOX}/${id}/respond`, body, { ...approver, ...more });
const stateOf = async (task: string) => (await call('GET', `/v1/tasks/${task}`)).body.status;

test('what waits is listed and looked at with all that is needed to decide, and a yes lets it go on', async () => {
  const task = await submitted('send hello to yes@example.org');
  const found = await waiting('yes@example.org');
  expect(found).toMatchObject({
    object: 'permission_request',
    status: 'pending',
    task_id: task,
    action: { tool: 'send_mail', effect: 'send', arguments: { to: 'yes@example.org', text: 'hello' } },
    request: {
      kind: 'approval',
      question: 'May agent:demo use send_mail on yes@example.org?',
      rule_id: 'outside-needs-a-human',
      reason: 'data leaves this host, so a person decides',
    },
    response: null,
  });
  expect(Date.parse(found.expires_at)).toBeGreaterThan(Date.parse(found.created_at));
  expect(await call('GET', `${INBOX}/${found.id}`)).toEqual({ status: 200, body: found });
  expect((await call('GET', `/v1/tasks/${task}/permission-requests`)).body.data).toEqual([found]);

  const answered = await respond(found.id, { approved: true });
  expect([answered.status, answered.body]).toMatchObject([
    200,
    { id: found.id, status: 'approved', response: { state: 'approved', answered_by: 'paula' } },
  ]);
  await expect.poll(() => stateOf(task), { timeout: 20_000 }).toBe('COMPLETED');
  const { body } = await call('GET', `${INBOX}?status=pending&task_id=${task}`);
  expect(body.data).toEqual([]);
});

test('a no is kept with its reason, and nothing is sent', async () => {
  const task = await submitted('send hello to no@example.org');
  const { id } = await waiting('no@example.org');
  const answered = await respond(id, { approved: false, reason: 'not on a Friday' });
  expect(answered.body).toMatchObject({ status: 'denied', response: { state: 'denied', reason: 'not on a Friday' } });
  await expect.poll(() => stateOf(task), { timeout: 20_000 }).toMatch(/^(COMPLETED|FAILED)$/);
  const { body } = await call('GET', `/v1/events?task_id=${task}&limit=100`);
  const denied = body.data.filter((each: Body) => each.event === 'tool.denied');
  expect(denied).toHaveLength(1);
  expect(JSON.stringify(denied[0].payload)).toContain('not on a Friday');
  expect(body.data.filter((each: Body) => each.event === 'tool.completed')).toEqual([]);
});

test('a second answer is refused with the first approver and answer; the same answer sent twice counts once', async () => {
  await submitted('send hello to twice@example.org');
  const { id } = await waiting('twice@example.org');
  const key = { 'idempotency-key': 'mine' };
  const first = await respond(id, { approved: false }, key);
  const again = await respond(id, { approved: false }, key);
  const { answered_at, answered_by } = first.body.response;
  expect([again.status, again.body.response]).toMatchObject([200, { state: 'denied', answered_at, answered_by }]);
  const second = await respond(id, { approved: true });
  expect([second.status, second.body.error]).toMatchObject([409, { code: 'conflict', details: { state: 'denied' } }]);
  expect((await call('GET', `${INBOX}/${id}`)).body.status).toBe('denied');
});

test('of two answers at the same moment one counts', async () => {
  await submitted('send hello to race@example.org');
  const { id } = await waiting('race@example.org');
  const both = await Promise.all([respond(id, { approved: true }), respond(id, { approved: false })]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  const won = both.find(({ status }) => status === 200);
  expect((await call('GET', `${INBOX}/${id}`)).body.status).toBe(won?.body.status);
});

test('a caller that may not answer is refused, and a question that a caller may not see is not there', async () => {
  await submitted('send hello to scope@example.org');
  const { id } = await waiting('scope@example.org');
  const reader = await holderOf('tasks:read', 'tasks:write', 'others:read');
  expect((await call('GET', `${INBOX}/${id}`, undefined, reader)).status).toBe(200);
  expect(await respond(id, { approved: true }, reader)).toMatchObject({
    status: 403,
    body: { error: { code: 'permission_denied' } },
  });
  const outsider = { authorization: 'Bearer tbk_0000000000000000_nothing' };
  expect((await call('GET', INBOX, undefined, outsider)).status).toBe(401);
  expect((await respond(id, { approved: true }, outsider)).status).toBe(401);
  const keys = openApiKeys(join(dir, 'data'), systemClock);
  const actor = { id: 'other', kind: 'person' as const, tenant_id: 'elsewhere', scopes: ['*'] };
  const elsewhere = { authorization: `Bearer ${(await keys.create({ name: 'e', actor })).key}` };
  expect((await call('GET', INBOX, undefined, elsewhere)).body.data).toEqual([]);
  const absent = await respond('ask_01M7K0ED77YTSBVXKMHCA362ZK', { approved: true }, elsewhere);
  const hidden = await respond(id, { approved: true }, elsewhere);
  expect([hidden.status, hidden.body.error.code]).toEqual([404, 'resource_not_found']);
  expect([absent.status, absent.body.error.code]).toEqual([404, 'resource_not_found']);
  expect((await call('GET', `${INBOX}/${id}`)).body.status).toBe('pending');

  const answerer = await holderOf('approvals:write', 'tasks:read', 'others:read');
  const { body } = await respond(id, { approved: true }, answerer);
  expect(body.response.answered_by).toBe('holder');
});

test('a long list comes in pages, each question once, and a page is where it was when others came meanwhile', async () => {
  const session = await aSession();
  const asked = async (n: number) => {
    const own = await aSession();
    await submitted(`send hello to page${n}@example.org`, own);
    return (await waiting(`page${n}@example.org`)).id as string;
  };
  expect((await call('GET', `${INBOX}?session_id=${session}`)).body).toMatchObject({
    data: [],
    page: { has_more: false },
  });
  const ids: string[] = [];
  for (const n of [1, 2, 3]) ids.push(await asked(n));
  const seen: string[] = [];
  let cursor = '';
  do {
    const { status, body } = await call('GET', `${INBOX}?status=pending&limit=2${cursor && `&cursor=${cursor}`}`);
    expect(status).toBe(200);
    expect(body.data.length).toBeLessThanOrEqual(2);
    seen.push(...body.data.map(({ id }: Body) => id));
    if (seen.length === 2) ids.push(await asked(4));
    cursor = body.page.next_cursor ?? '';
    expect(Boolean(cursor)).toBe(body.page.has_more);
  } while (cursor);
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.filter((id) => ids.includes(id))).toEqual(ids);
  for (const query of ['limit=0', 'limit=x', 'cursor=nonsense', 'status=perhaps']) {
    expect([query, (await call('GET', `${INBOX}?${query}`)).status]).toEqual([query, 400]);
  }
});

test('a value that is wanted is given in its place', async () => {
  const task = await submitted('ask which colour');
  await expect.poll(() => stateOf(task), { timeout: 20_000 }).toBe('INPUT_REQUIRED');
  const { body } = await call('GET', `${INBOX}?task_id=${task}`);
  expect(body.data[0].request.kind).toBe('input');
  expect((await respond(body.data[0].id, { approved: true })).status).toBe(400);
  expect((await respond(body.data[0].id, { answer: 'blue' })).body.response).toMatchObject({
    state: 'answered',
    answer: 'blue',
  });
});

test('every request the page about it shows is answered as it says', async () => {
  const page = await readFile(join(PROJECT, 'docs/approvals.md'), 'utf8');
  const [, block = ''] = /^```http\n([\s\S]*?)^```/m.exec(page) ?? [];
  const requests = block.split('\n').filter(Boolean);
  expect(requests).toHaveLength(3);
  const task = await submitted('send hello to page@example.org');
  const { id } = await waiting('page@example.org');
  for (const request of requests) {
    const [, method = '', path = '', body] = /^(\S+) (\S+)(?: (.*))?$/.exec(request) ?? [];
    const { status } = await call(method, path.replace('ask_01K', id), body ? JSON.parse(body) : undefined);
    expect([request, status]).toEqual([request, 200]);
  }
  const { response } = (await call('GET', `${INBOX}/${id}`)).body;
  expect(response).toMatchObject({ state: 'denied', reason: 'not on a Friday', answered_by: 'local' });
  const { body } = await call('GET', `/v1/events?task_id=${task}&limit=100`);
  expect(body.data.map((each: Body) => each.event)).toEqual(
    expect.arrayContaining(['vendor.tollbridge.ask_opened', 'vendor.tollbridge.ask_closed']),
  );
});

describe('one inbox, whichever protocol the question was raised on', () => {
  const post = (path: string, body: object, more: Record<string, string> = {}) =>
    // Some answer only when the question is: what they say is not waited for.
    void call('POST', path, body, more).catch(() => {});

  const RAISED: Readonly<Record<string, (to: string) => Promise<void> | void>> = {
    harn: async (to) => void (await submitted(`send hello to ${to}`)),
    runs: (to) =>
      post(
        '/v1/runs',
        { input: { text: `send hello to ${to}` }, metadata: {} },
        {
          authorization: `Bearer local:${gateway.token}`,
          'idempotency-key': to,
        },
      ),
    a2a: (to) => {
      const message = { messageId: to, role: 'ROLE_USER', parts: [{ text: `send hello to ${to}` }] };
      post(
        '/a2a/demo',
        { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } },
        { 'a2a-version': '1.0' },
      );
    },
    mcp: (to) => {
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      };
      const params = { name: 'demo__send_mail', arguments: { to, text: 'hello' }, _meta };
      post(
        '/mcp',
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
        {
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'demo__send_mail',
        },
      );
    },
    ahp: (to) =>
      post('/ahp', {
        jsonrpc: '2.0',
        id: to,
        method: 'ahp/event',
        params: event('pre_action', { tool: 'send_mail', arguments: { to } }),
      }),
    acp: async (to) => {
      const editor = await speakTo(gateway);
      void editor.prompt(await editor.session('/repo'), `send hello to ${to}`).catch(() => {});
    },
  };

  test.each(Object.keys(RAISED))('%s', async (protocol) => {
    const to = `${protocol}@example.org`;
    await RAISED[protocol]?.(to);
    const { id } = await waiting(to);
    expect((await respond(id, { approved: false, reason: 'enough' })).body).toMatchObject({ status: 'denied' });
    expect((await call('GET', `${INBOX}/${id}`)).body.response).toMatchObject({ reason: 'enough' });
  });
});
