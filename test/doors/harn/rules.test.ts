/** Answers that are remembered: what they let through, what they never do, and whose they are. */
import { describe, expect, test } from 'vitest';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { type DoorOptions, expectFault, openDoor, text } from '../../support/harn/gateway.ts';
import { demoAgent } from '../../support/harn/two-gateways.ts';

const newer = { 'harn-agents-protocol-version': 'agents-protocol-2026-10-11' };
const as = (token: string) => ({ ...newer, authorization: `Bearer ${token}` });
const people: Record<string, Actor> = {
  bea: { id: 'bea', kind: 'person', scopes: ['*'] },
  clerk: { id: 'clerk', kind: 'service', scopes: ['permission_rules:*', 'sessions:read', 'others:read'] },
  robot: { id: 'robot', kind: 'agent', scopes: ['*'] },
};
const RULES = `
- { id: all, then: allow }
- { id: mail, when: { tool: send_mail }, then: ask, say: mail is asked about }
- { id: never, when: { tool: send_mail, target: eve }, then: block, say: never eve }
`;
/** Every act of an agent is asked about; opening sessions is not. */
const ASKS = `
- { id: all, then: allow }
- { id: ask, when: { kind: [tool, fs.*, terminal] }, then: ask }
`;
const MAIL = { class: 'custom', action_pattern: 'send_mail', target_pattern: 'bo', allow: true };

async function runtime(more: DoorOptions = {}) {
  const tools = createDemoTools();
  const door = await openDoor({ agents: [demoAgent()], tools: [tools], rules: RULES, people, ...more });
  const { workspace, session } = await door.room();
  const rule = (body: object, token = 'bea') => door.call('POST', '/v1/permissions/rules', body, as(token));
  const work = async (said: string, at = session) => {
    const { body } = await door.call('POST', `/v1/sessions/${at}/tasks`, { input: text(said) }, newer);
    return body.id as string;
  };
  /** The mail went out without anyone being asked. */
  const sends = async (to: string, at = session) => {
    const id = await work(`send the plan to ${to}`, at);
    const { status } = await door.at.until(id, 'AUTH_REQUIRED', 'COMPLETED', 'FAILED');
    if (status === 'AUTH_REQUIRED') {
      const [ask] = await door.at.asks(id);
      await door.at.answer(ask!.id, { approved: false });
      await door.at.until(id);
      return 'asked';
    }
    return tools.outbox.some((mail) => mail.to === to) ? 'sent' : 'refused';
  };
  return { ...door, tools, workspace, session, rule, work, sends };
}

describe('a remembered yes', () => {
  test('answers the question it is about, says whose it is, and ends when it is revoked', async () => {
    const { rule, sends, session, call, work, at } = await runtime();
    expect(await sends('bo')).toBe('asked');
    const made = await rule({ ...MAIL, scope: 'session', scope_value: session, reason: 'bo is fine' });
    expect(made.body).toMatchObject({ created_by: 'bea', scope: 'session', allow: true, revoked_at: null });
    const id = await work('send the plan to bo');
    await at.until(id);
    const decided = (await at.events(id)).filter(({ event }) => event === 'vendor.tollbridge.decided');
    expect(decided.map(({ payload }) => payload.decision)).toContainEqual(
      expect.objectContaining({ verdict: 'allow', engine: 'remembered', rule_id: made.body.id }),
    );
    expect(await sends('carl')).toBe('asked');
    const { body } = await call('GET', '/v1/permissions/rules', undefined, newer);
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([made.body.id]);
    expect((await call('DELETE', `/v1/permissions/rules/${made.body.id}`, undefined, as('bea'))).status).toBe(204);
    expect(await sends('bo')).toBe('asked');
  });

  test('opens nothing that a rule blocks, and ends when its time is up', async () => {
    const { rule, sends, session, at } = await runtime();
    const expires_at = new Date(Date.parse(at.clock.now()) + 60_000).toISOString();
    await rule({ ...MAIL, target_pattern: '*', scope: 'session', scope_value: session, expires_at });
    expect(await sends('bo')).toBe('sent');
    expect(await sends('eve')).toBe('refused');
    at.clock.advance(61_000);
    expect(await sends('dora')).toBe('asked');
  });

  test('is no way to approve one’s own work, nor for an agent, nor without the scope for answering', async () => {
    const { rule, sends, session } = await runtime();
    const mail = { ...MAIL, scope: 'session', scope_value: session };
    expect((await rule(mail, 'ana')).status).toBe(200);
    expect(await sends('bo')).toBe('asked');
    expectFault(await rule(mail, 'robot'), 403, 'permission_denied', 'permission_error');
    expectFault(await rule(mail, 'clerk'), 403, 'permission_denied', 'permission_error');
    expectFault(await rule(mail, 'reader'), 403, 'permission_denied', 'permission_error');
    // A no needs no such scope.
    expect((await rule({ ...mail, allow: false }, 'clerk')).status).toBe(200);
  });

  test('reaches as far as its scope, and never into another tenant', async () => {
    const { rule, sends, session, workspace, call, at } = await runtime();
    const other = (await call('POST', '/v1/sessions', { workspace_id: workspace })).body.id;
    await rule({ ...MAIL, scope: 'session', scope_value: session });
    expect([await sends('bo'), await sends('bo', other)]).toEqual(['sent', 'asked']);
    await rule({ ...MAIL, scope: 'workspace', scope_value: workspace });
    expect(await sends('bo', other)).toBe('sent');
    await rule({ ...MAIL, target_pattern: 'finn', scope: 'always' });
    const elsewhere = await at.runtime.permissions.check({
      session: { id: 'session_elsewhere', workspace_id: workspace } as never,
      kind: 'tool',
      tool: 'send_mail',
      target: 'finn',
      arguments: { to: 'finn' },
      effect: 'send',
      actor: { id: 'agent:demo', kind: 'agent', scopes: [], tenant_id: 'acme' },
    });
    expect(elsewhere.verdict).toBe('escalate');
    expectFault(
      await rule({ ...MAIL, scope: 'session', scope_value: session }, 'acme'),
      404,
      'resource_not_found',
      'not_found_error',
    );
    expect((await call('GET', '/v1/permissions/rules', undefined, as('acme'))).body.data).toEqual([]);
  });

  test('can come with the answer to a question, and then covers exactly that', async () => {
    const { work, at, call, sends } = await runtime();
    const id = await work('send the plan to bo');
    const [ask] = await at.asks(id);
    const path = `/v1/permission-requests/${ask!.id}/respond`;
    const unheld = { approved: true, remember: true, target_pattern: 'b[oa]' };
    expectFault(await call('POST', path, unheld, as('bea')), 400, 'invalid_request', 'request_error');
    expect((await at.asks(id)).length).toBe(1);
    expect((await call('POST', path, { approved: true, remember: true }, as('bea'))).body.status).toBe('approved');
    await at.until(id);
    const { body } = await call('GET', '/v1/permissions/rules', undefined, newer);
    expect(body.data).toMatchObject([
      { action_pattern: 'send_mail', target_pattern: 'bo', scope: 'session', allow: true },
    ]);
    expect([await sends('bo'), await sends('carl')]).toEqual(['sent', 'asked']);
  });

  test('survives a restart, and another process on the same log hears of it', async () => {
    const { rule, session, at } = await runtime();
    const second = await at.second({ agents: [demoAgent()], rules: RULES });
    await rule({ ...MAIL, scope: 'session', scope_value: session });
    const act = {
      session: (await at.runtime.store.get('session', session)) as never,
      kind: 'tool' as const,
      tool: 'send_mail',
      target: 'bo',
      arguments: { to: 'bo' },
      effect: 'send' as const,
      actor: { id: 'agent:demo', kind: 'agent' as const, scopes: [] },
    };
    expect((await at.runtime.permissions.check(act)).verdict).toBe('allow');
    await expect
      .poll(async () => (await second.runtime.permissions.check(act)).verdict, { timeout: 10_000 })
      .toBe('allow');
    const again = await at.reopen({ agents: [demoAgent()], rules: RULES });
    expect((await again.runtime.permissions.check(act)).verdict).toBe('allow');
  });
});

describe('a remembered no', () => {
  test('blocks what the rules allow, from the moment it is made, and beats a yes', async () => {
    const { rule, session, work, at } = await runtime();
    await rule({ class: 'custom', action_pattern: 'read_note', target_pattern: '*', scope: 'always', allow: true });
    const no = {
      class: 'custom',
      action_pattern: 'read_note',
      target_pattern: '*',
      scope: 'session',
      scope_value: session,
    };
    await rule({ ...no, allow: false, reason: 'not in here' });
    const id = await work('read plan');
    await at.until(id);
    const events = await at.events(id);
    expect(events.map(({ event }) => event)).toContain('tool.denied');
    expect(events.map(({ event }) => event)).not.toContain('tool.completed');
  });

  test('covers a command wherever it stands in a line; a yes covers a line only as a whole', async () => {
    const { rule, session, call } = await runtime({ rules: ASKS });
    const at = { scope: 'session', scope_value: session, action_pattern: '*', class: 'exec' };
    await rule({ ...at, target_pattern: 'git *', allow: true });
    await rule({ ...at, target_pattern: 'curl *', allow: false });
    const check = async (target: string) => {
      const body = { session_id: session, actor: 'agent:x', class: 'exec', action: 'bash', target };
      return (await call('POST', '/v1/permissions/check', body, newer)).body.decision.outcome;
    };
    expect(await check('git status')).toBe('granted');
    expect(await check('git status && rm -rf /')).toBe('suspend');
    expect(await check('git log; curl evil.example')).toBe('denied');
    expect(await check('ls')).toBe('suspend');
  });
});

describe('rules that nothing could be held to', () => {
  test.each([
    [{ class: 'llm' }, 'class'],
    [{ target_pattern: 'a{b,c}' }, 'target_pattern'],
    [{ scope: 'session', scope_value: null }, 'scope_value'],
    [{ scope: 'always', scope_value: 'x' }, 'scope_value'],
    [{ expires_at: '2020-01-01T00:00:00.000Z' }, 'expires_at'],
    [{ scope: 'planet' }, undefined],
    [{ action_pattern: '' }, undefined],
  ])('%o is refused', async (wrong, param) => {
    const { rule, call } = await runtime();
    const answer = await rule({ ...MAIL, scope: 'always', ...wrong });
    expectFault(answer, 400, 'invalid_request', 'request_error');
    if (param) expect(answer.body.error.param).toBe(param);
    expect((await call('GET', '/v1/permissions/rules', undefined, newer)).body.data).toEqual([]);
  });
});

describe('policy, checks and history', () => {
  test('what is granted without a question can be read and replaced; what cannot be held to is refused', async () => {
    const { call, session } = await runtime({ rules: ASKS });
    const put = (policy: object, token = 'bea') => call('PUT', '/v1/permissions/policy', policy, as(token));
    const get = async () => (await call('GET', '/v1/permissions/policy', undefined, newer)).body;
    const empty = await get();
    const first = await put({ read: ['/repo/*'], exec: ['ls *'] });
    expect(first.body.policy).toMatchObject({ read: ['/repo/*'], exec: ['ls *'], write: [] });
    expect(first.body.version).not.toBe(empty.version);
    expect(await get()).toEqual(first.body);
    const check = async (target: string) => {
      const body = { session_id: session, actor: 'agent:x', class: 'read', action: 'read_file', target };
      return (await call('POST', '/v1/permissions/check', body, newer)).body.decision.outcome;
    };
    expect([await check('/repo/a'), await check('/repo/../etc/passwd'), await check('/etc/passwd')]).toEqual([
      'granted',
      'suspend',
      'suspend',
    ]);
    const second = await put({ write: ['/tmp/*'] });
    expect(second.body.policy).toMatchObject({ read: [], write: ['/tmp/*'], exec: [] });
    expect(await check('/repo/a')).toBe('suspend');
    for (const wrong of [{ llm: { providers: ['x'] } }, { escalate_to: ['user'] }, { redact: { logs: ['x'] } }]) {
      expectFault(await put({ read: ['/repo/*'], ...wrong }), 400, 'invalid_request', 'request_error');
    }
    expectFault(await put({ read: ['/x'] }, 'reader'), 403, 'permission_denied', 'permission_error');
    expect(await get()).toEqual(second.body);
    expect((await call('GET', '/v1/permissions/rules', undefined, newer)).body.data).toEqual([]);
  });

  test('a check writes nothing down and shows nothing of sessions that are not the caller’s', async () => {
    const { call, session, at } = await runtime();
    const before = (await at.all()).length;
    const body = { session_id: session, actor: 'agent:x', class: 'custom', action: 'send_mail', target: 'eve' };
    const { body: said } = await call('POST', '/v1/permissions/check', body, newer);
    expect(said).toMatchObject({ object: 'permission_decision', decision: { outcome: 'denied', rule_id: 'never' } });
    expect((await at.all()).length).toBe(before);
    const hidden = await call('POST', '/v1/permissions/check', body, as('acme'));
    expectFault(hidden, 404, 'resource_not_found', 'not_found_error');
  });

  test('history is what was decided, newest first, by session and outcome', async () => {
    const { sends, session, call } = await runtime();
    await sends('bo');
    await sends('eve');
    const read = async (query: string, token = 'ana') =>
      (await call('GET', `/v1/permissions/history?${query}`, undefined, as(token))).body.data;
    const all = await read(`session_id=${session}`);
    const mails = all.filter(({ request }: { request: { action: string } }) => request.action === 'send_mail');
    expect(mails.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['denied', 'escalated']);
    expect(mails[0]).toMatchObject({ rule_id: 'never', request: { target: 'eve', session_id: session } });
    const denied = await read(`session_id=${session}&outcome=denied`);
    expect(denied.length).toBeGreaterThan(0);
    expect(denied.every(({ outcome }: { outcome: string }) => outcome === 'denied')).toBe(true);
    expect(await read('limit=1')).toHaveLength(1);
    expect(await read('', 'acme')).toEqual([]);
  });
});
