/** Grants for longer than once: which acts one covers, and for how long. Everything that differs is asked about again. */
import { describe, expect, test } from 'vitest';
import { grantFor } from '../../../src/core/approvals/grants.ts';
import type { Action, Actor, Decision } from '../../../src/model/actions.ts';
import type { AskRecord } from '../../../src/model/asks.ts';
import type { PermissionRule } from '../../../src/model/resources.ts';
import { createRememberedAnswers } from '../../../src/policy/remembered.ts';
import type { Row, Store } from '../../../src/ports/index.ts';

const BEGAN = Date.parse('2026-01-01T00:00:00Z');
const ASKED: Decision = { verdict: 'escalate', reason: 'ask', engine: 'cedar' };
const AGENT: Actor = { id: 'agent:coder', kind: 'agent', scopes: [], on_behalf_of: 'ann' };
const ACT = {
  id: 'act',
  kind: 'tool',
  tool: 'pay',
  server: 'bank',
  definition: 'sha256:one',
  actor: AGENT,
  workspace_id: 'w',
  session_id: 's1',
  task_id: 'anns',
  arguments: { sum: 1 },
  effect: 'pay',
  evidence: 'held',
} as unknown as Action;

const ROWS: readonly object[] = [
  { object: 'task', id: 'anns', created_by: 'ann', metadata: {} },
  { object: 'task', id: 'bens', created_by: 'ben', metadata: {} },
  { object: 'task', id: 'delegated', created_by: 'agent:lead', metadata: { tollbridge: { on_behalf_of: 'ann' } } },
  { object: 'workspace', id: 'w' },
  { object: 'workspace', id: 'acmes', tenant_id: 'acme' },
];

function remembering() {
  const rows = [...ROWS] as (Row & { object: string })[];
  let now = BEGAN;
  const clock = { now: () => new Date(now).toISOString() };
  const store = {
    list: async ({ object, after, limit }: { object: string; after?: string; limit: number }) => {
      const all = rows.filter((row) => row.object === object);
      const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
      return all.slice(from, from + limit);
    },
    get: async (object: string, id: string) => rows.find((row) => row.object === object && row.id === id),
  } as unknown as Pick<Store, 'list' | 'get'>;
  const open = () => createRememberedAnswers({ store, clock, read: () => ({ shows: undefined }) as never });
  const at = open();
  return {
    rows,
    open,
    pass(ms: number) {
      now += ms;
    },
    /** The session's first untrusted content, so long after now. */
    tainted(id: string, from: object, afterMs: number) {
      const created_at = new Date(now + afterMs).toISOString();
      rows.splice(0, rows.length, ...rows.filter(({ object }) => object !== 'taint'));
      rows.push({ object: 'taint', id, from, created_at } as unknown as Row);
    },
    /** A person approves the question about this act for longer than once. */
    async grants(act: Action, wanted: string, by: Partial<Actor> = {}, ask: Partial<AskRecord> = {}) {
      const { kind, tool, server, definition, actor, session_id, task_id, workspace_id } = act;
      const asked = { kind, tool, server, definition, actor: actor.id };
      const record = { id: 'ask', kind: 'approval', action: asked, session_id, task_id, workspace_id, ...ask };
      const boss: Actor = { id: 'boss', kind: 'person', scopes: ['*'], ...by };
      const draft = await grantFor(record as AskRecord, wanted, { actor: boss, now: clock.now(), store });
      await at.requireSound(draft);
      const made = { object: 'permission_rule', id: `rule_${rows.length}`, created_at: clock.now() };
      rows.push({ ...draft, ...made } as unknown as Row & PermissionRule);
      await at.refresh();
    },
    async runs(act: Action, decision = ASKED, by = at) {
      await by.refresh();
      return (await by.amended(act, decision)).verdict === 'allow';
    },
  };
}

describe.each(['session', '2h'])('for %s', (wanted) => {
  const bens = { ...ACT, task_id: 'bens', actor: { ...AGENT, on_behalf_of: 'ben' } };
  const others: readonly (readonly [string, Action])[] = [
    ['another tool', { ...ACT, tool: 'pay_all' }],
    ['a tool whose name differs in case', { ...ACT, tool: 'Pay' }],
    ['the same name at another server', { ...ACT, server: 'shop' }],
    ['the same name at no server', { ...ACT, server: undefined } as unknown as Action],
    ['another definition of the tool', { ...ACT, definition: 'sha256:two' }],
    ['another kind of act', { ...ACT, kind: 'terminal' }],
    ['another agent', { ...ACT, actor: { ...AGENT, id: 'agent:other' } }],
    ['the same agent for another principal', bens],
    ['an agent that says it acts for the principal', { ...bens, actor: AGENT }],
    ['the same id in a tenant', { ...ACT, actor: { ...AGENT, tenant_id: 'acme' } }],
    ['a session that has read untrusted content since', { ...ACT, attributes: { tainted: true } }],
  ];

  test.each(others)('%s is asked about', async (_, act) => {
    const at = remembering();
    await at.grants(ACT, wanted);
    expect([await at.runs(ACT), await at.runs(act)]).toEqual([true, false]);
  });

  test('content of the tool itself, read since, was to be expected; older content, other content and rules about it count', async () => {
    const at = remembering();
    await at.grants(ACT, wanted);
    const tainted = { ...ACT, attributes: { tainted: true } };
    const mark = async (from: object, after: number) => {
      at.tainted(String(ACT.session_id), from, after);
      return await at.runs(tainted);
    };
    const own = { server: ACT.server, what: ACT.tool };
    expect(await mark(own, 0)).toBe(true);
    expect(await mark(own, 1)).toBe(true);
    expect(await mark(own, -1)).toBe(false);
    expect(await mark({ ...own, what: 'read_page' }, 1)).toBe(false);
    expect(await mark({ ...own, server: 'shop' }, 1)).toBe(false);
    expect(await mark({ ...own, target: 'file:///x' }, 1)).toBe(false);
    at.tainted(String(ACT.session_id), own, 1);
    expect(await at.runs(tainted, { ...ASKED, rule_id: 'nothing-leaves' })).toBe(false);
    expect(
      await at.runs({ ...tainted, tool: 'shown', attributes: { tainted: true, own_name: String(ACT.tool) } }),
    ).toBe(false);
  });

  test('the same call with other arguments runs, and so does one of work that was given on for the principal', async () => {
    const at = remembering();
    await at.grants(ACT, wanted);
    expect(await at.runs({ ...ACT, arguments: { sum: 2 } })).toBe(true);
    expect(await at.runs({ ...ACT, task_id: 'delegated' })).toBe(true);
  });

  test('a question for another approver, or a block, stands', async () => {
    const at = remembering();
    await at.grants(ACT, wanted);
    expect(await at.runs(ACT, { ...ASKED, ask: { to: ['ceo'] } })).toBe(false);
    expect(await at.runs(ACT, { ...ASKED, ask: { to: ['ceo', 'boss'] } })).toBe(true);
    expect(await at.runs(ACT, { ...ASKED, verdict: 'block' })).toBe(false);
  });

  test('it holds after a restart', async () => {
    const at = remembering();
    await at.grants(ACT, wanted);
    expect(await at.runs(ACT, ASKED, at.open())).toBe(true);
  });

  test('one that the proposer gave itself counts for nothing', async () => {
    const at = remembering();
    await at.grants(ACT, wanted, { id: AGENT.id, kind: 'agent' });
    expect(await at.runs(ACT)).toBe(false);
  });

  test('one given in a tenant is for that tenant, also where its approver has none', async () => {
    const at = remembering();
    const theirs = { ...ACT, workspace_id: 'acmes', actor: { ...AGENT, tenant_id: 'acme' } };
    await at.grants(theirs, wanted);
    expect([await at.runs(theirs), await at.runs({ ...ACT, workspace_id: 'acmes' })]).toEqual([true, false]);
  });

  test('a caller without a server or a definition is covered by one about the same', async () => {
    const at = remembering();
    const own = { ...ACT, kind: 'terminal', server: undefined, definition: undefined } as unknown as Action;
    await at.grants(own, wanted);
    expect([await at.runs(own), await at.runs(ACT)]).toEqual([true, false]);
  });
});

test('for the session: not in another one, whatever time passes', async () => {
  const at = remembering();
  await at.grants(ACT, 'session');
  at.pass(30 * 24 * 3_600_000);
  expect([await at.runs(ACT), await at.runs({ ...ACT, session_id: 's2' })]).toEqual([true, false]);
});

test('for a time: in other sessions, and not a moment longer, also after a restart', async () => {
  const at = remembering();
  await at.grants(ACT, '2h');
  at.pass(2 * 3_600_000 - 1);
  expect([await at.runs(ACT), await at.runs({ ...ACT, session_id: 's2' })]).toEqual([true, true]);
  at.pass(1);
  expect([await at.runs(ACT), await at.runs(ACT, ASKED, at.open())]).toEqual([false, false]);
});

test('one that ended does not hide one that holds', async () => {
  const at = remembering();
  await at.grants(ACT, '1m');
  await at.grants(ACT, '2h');
  at.pass(3_600_000);
  expect(await at.runs(ACT)).toBe(true);
});

test('grants of sessions that have ended are not in the way of new ones', async () => {
  const at = remembering();
  for (let count = 0; count < 2_000; count += 1) {
    const covers = { kind: 'tool', tool: 't', server: null, definition: null, actor: 'a', principal: 'a' };
    const grant = { object: 'permission_rule', id: `g${count}`, scope: 'session', scope_value: `s${count}`, covers };
    at.rows.push(grant as unknown as Row & PermissionRule);
  }
  await at.runs(ACT);
  await expect(at.grants(ACT, 'session')).rejects.toThrow('at most 2000 approvals');
  at.rows.push({ object: 'session', id: 's7', state: 'CLOSED' } as unknown as Row & PermissionRule);
  await at.grants(ACT, 'session');
  expect(await at.runs(ACT)).toBe(true);
});
