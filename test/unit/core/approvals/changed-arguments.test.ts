/** "Yes, but with these": an approver's own arguments are checked, decided, written down, and then exactly they run. */
import { expect, test } from 'vitest';
import type { AskRecord } from '../../../../src/model/asks.ts';
import type { CommandBody } from '../../../../src/model/commands.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { hashOf } from '../../../../src/receipt/seal/canonical-json.ts';
import { bo } from '../../../support/gateway/actors.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { asking, outside } from '../../../support/gateway/asking-work.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools, SEND } from '../../../support/gateway/tools.ts';
import { violations } from '../../../support/oracle/oracle.ts';

const RULES = `
- { id: no-eve, when: { tool: send, kind: tool, arguments: { to: eve } }, then: block, say: not to eve }
- { id: boss, when: { tool: send, kind: tool, arguments: { to: boss } }, then: ask, to: security }
- { id: copies, when: { tool: send, kind: tool, arguments: { to: all } }, then: modify, set: { bcc: audit } }
- { id: mail, when: { tool: send, kind: tool }, then: ask }
`;

async function waiting(options: Parameters<typeof asking>[0] = {}) {
  const runtime = await asking({ rules: RULES, ...options });
  const [ask] = (await runtime.t.asks(runtime.task.id)) as [AskRecord];
  const yes = (args: unknown, more: object = {}) =>
    ({ ask_id: ask.id, approved: true, arguments: args, ...more }) as CommandBody<'ask.answer'>;
  return { ...runtime, ask, yes };
}

test('what the approver gave runs, and nothing else; log and receipt have both hashes and the approver', async () => {
  const { t, task, tools, yes } = await waiting();
  await t.send('ask.answer', yes({ to: 'cy' }, { reason: 'cy is on duty' }), { actor: bo });
  await t.until(task.id);
  expect(tools.calls.map((call) => call.arguments)).toEqual([{ to: 'cy' }]);

  const [asked_hash, arguments_hash] = [hashOf({ to: 'bo' }), hashOf({ to: 'cy' })];
  const log = await t.events(task.id);
  expect(of(log, 'user.tool_confirmation')[0]).toMatchObject({
    actor: 'bo',
    payload: { approved: true, arguments: { to: 'cy' }, asked_hash, arguments_hash },
  });
  const order = log.map(({ event }) => event);
  const decided = log.findLast(({ event }) => event === 'vendor.tollbridge.decided')!;
  expect(decided.payload.decision).toMatchObject({
    verdict: 'modify',
    code: 'changed_by_approver',
    arguments: { to: 'cy' },
  });
  expect(log.indexOf(decided)).toBeLessThan(order.indexOf('tool.completed'));
  expect(of(log, 'tool.approved').at(-1)?.payload).toMatchObject({ input: { to: 'cy' }, changed_by: 'bo' });

  const [receipt] = await t.receipts(task.id);
  expect(receipt!.side_effects.tool_calls).toMatchObject([
    {
      input_hash: arguments_hash,
      metadata: { requested_input_hash: asked_hash, changed_by: 'bo' },
      status: 'succeeded',
    },
  ]);
  expect(receipt!.approvals).toMatchObject([{ actor: 'bo', decision: 'approved' }]);
  const digest = (args: JsonObject) => digestOf(decided.payload.decision as JsonObject, args);
  const after = Number.MAX_SAFE_INTEGER;
  expect(violations(log, [{ tool: 'send', arguments: { to: 'cy' }, after } as never], digest)).toEqual([]);
  expect(violations(log, [{ tool: 'send', arguments: { to: 'bo' }, after } as never], digest)).toHaveLength(1);
});

/** Stands for the keyed digest: known for the arguments that were decided on. */
function digestOf(decision: JsonObject, args: JsonObject): string {
  return JSON.stringify(args) === JSON.stringify(decision.arguments) ? String(decision.arguments_digest) : 'another';
}

test('a replay of a changed act repeats the change and runs nothing', async () => {
  const { t, task, tools, yes } = await waiting();
  await t.send('ask.answer', yes({ to: 'cy' }), { actor: bo });
  await t.until(task.id);
  const { resource } = await t.send('task.replay', { task_id: task.id });
  const again = await t.until(resource.id);
  expect(again.status, JSON.stringify(again.failure)).toBe('COMPLETED');
  expect(tools.calls).toHaveLength(1);
});

test.each([
  ['what a rule blocks', { to: 'eve' }, 'policy_violation', /not to eve/],
  ['what a rule rewrites', { to: 'all' }, 'policy_violation', /rewrites/],
  ['what a rule leaves to others', { to: 'boss' }, 'permission_denied', /put to others/],
])('%s is refused and the question stays open', async (_what, args, kind, message) => {
  const { t, task, tools, ask, yes } = await waiting();
  const fault = await t.refused('ask.answer', yes(args), { actor: bo });
  expect(fault).toMatchObject({ kind, message: expect.stringMatching(message) });
  expect(await t.runtime.store.get('ask', ask.id)).toMatchObject({ state: 'open' });
  expect(of(await t.events(task.id), 'vendor.tollbridge.answer_refused')[0]?.payload).toMatchObject({ by: 'bo' });
  expect(tools.calls).toEqual([]);
  await t.send('ask.answer', yes({ to: 'cy' }), { actor: bo });
  await t.until(task.id);
  expect(tools.calls.map((call) => call.arguments)).toEqual([{ to: 'cy' }]);
});

test('a rule that names this very approver is satisfied by them', async () => {
  const { t, task, tools, yes } = await waiting();
  const security = { id: 'sue', kind: 'person', scopes: ['*', 'security'], interactive: true } as const;
  await t.send('ask.answer', yes({ to: 'boss' }), { actor: security });
  await t.until(task.id);
  expect(tools.calls.map((call) => call.arguments)).toEqual([{ to: 'boss' }]);
});

test.each([
  ['a prototype', JSON.parse('{"to":"cy","__proto__":{"to":"eve"}}')],
  ['a prototype further in', JSON.parse('{"to":"cy","more":{"__proto__":{"to":"eve"}}}')],
  ['a mark of something redacted', { to: '[redacted: known secret]' }],
  ['a list', ['cy']],
  ['a text', 'cy'],
])('%s is refused', async (_what, args) => {
  const { t, ask, tools, yes } = await waiting();
  expect(await t.refused('ask.answer', yes(args), { actor: bo })).toMatchObject({ kind: 'invalid_request' });
  expect(await t.runtime.store.get('ask', ask.id)).toMatchObject({ state: 'open' });
  expect(tools.calls).toEqual([]);
});

test('arguments that do not fit the tool are refused', async () => {
  const tools = countingTools({ send: { effect: 'send' } });
  const strict = {
    type: 'object',
    properties: { to: { type: 'string' } },
    required: ['to'],
    additionalProperties: false,
  };
  const agent = scriptedAgent(async (sink) => {
    await sink.act(SEND);
    return undefined;
  });
  const list = async () => (await tools.list()).map((skill) => ({ ...skill, input_schema: strict }));
  const t = await openTestGateway({ rules: RULES, agents: [agent], tools: [{ ...tools, list }] });
  const task = await (await t.room()).task();
  const [ask] = await t.asks(task.id);
  for (const args of [{ to: 3 }, {}, { to: 'cy', cc: 'eve' }, { To: 'cy', to: 'cy' }]) {
    const fault = await t.refused('ask.answer', { ask_id: ask!.id, approved: true, arguments: args }, { actor: bo });
    expect(fault).toMatchObject({ kind: 'invalid_request', param: '/arguments' });
  }
  await t.send('ask.answer', { ask_id: ask!.id, approved: true, arguments: { to: 'cy' } }, { actor: bo });
  await t.until(task.id);
  expect(tools.calls.map((call) => call.arguments)).toEqual([{ to: 'cy' }]);
});

test('two approvers at once: one set of arguments runs, the other hears that it came too late', async () => {
  const { t, task, tools, yes } = await waiting();
  const both = await Promise.allSettled([
    t.send('ask.answer', yes({ to: 'cy' }), { actor: bo }),
    t.send('ask.answer', yes({ to: 'di' })),
    t.send('ask.answer', yes({ to: 'cy' }), { actor: { ...bo, id: 'flo' } }),
  ]);
  await t.until(task.id);
  expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(tools.calls).toHaveLength(1);
  const [closed] = of(await t.events(task.id), 'vendor.tollbridge.ask_closed');
  expect(tools.calls[0]!.arguments).toEqual((closed!.payload.answer as JsonObject).arguments);
});

test('sent twice under one key it is one answer; without a key the second comes too late', async () => {
  const { t, task, tools, yes } = await waiting();
  const once = { actor: bo, idempotency: { key: 'k1' } };
  const first = await t.send('ask.answer', yes({ to: 'cy' }), once);
  const again = await t.send('ask.answer', yes({ to: 'cy' }), once);
  expect([first.repeated, again.repeated]).toEqual([false, true]);
  expect(await t.refused('ask.answer', yes({ to: 'di' }), once)).toMatchObject({ kind: 'idempotency_key_reused' });
  expect(await t.refused('ask.answer', yes({ to: 'di' }), { actor: bo })).toMatchObject({ kind: 'conflict' });
  await t.until(task.id);
  expect(tools.calls.map((call) => call.arguments)).toEqual([{ to: 'cy' }]);
});

test('the arguments that were asked about are no change', async () => {
  const { t, task, tools, yes } = await waiting();
  await t.send('ask.answer', yes({ to: 'bo' }), { actor: bo });
  await t.until(task.id);
  expect(tools.calls.map((call) => call.arguments)).toEqual([{ to: 'bo' }]);
  expect(of(await t.events(task.id), 'user.tool_confirmation')[0]?.payload).not.toHaveProperty('arguments');
});

test('neither the proposer nor the principal that gave the work changes what it approves', async () => {
  const { t, task, propose } = await outside({ rules: RULES });
  const program = { id: 'bot', kind: 'service', scopes: ['*'] } as const;
  await propose({}, program);
  const [ask] = await t.asks(task.id);
  const body = { ask_id: ask!.id, approved: true, arguments: { to: 'cy' } };
  expect(await t.refused('ask.answer', body, { actor: program })).toMatchObject({ kind: 'permission_denied' });
  const agent = { id: 'agent:x', kind: 'agent', scopes: ['*'] } as const;
  expect(await t.refused('ask.answer', body, { actor: agent })).toMatchObject({ kind: 'permission_denied' });
  await t.send('ask.answer', body, { actor: bo });
  const asked = await propose({}, program, 1000);
  expect(asked.decision).toMatchObject({ verdict: 'modify', arguments: { to: 'cy' } });
});

test('an asker that can only hear yes or no cannot be given other arguments', async () => {
  const answers: unknown[] = [];
  const { t, task, yes, ask } = await waiting({
    script: async (sink) => {
      answers.push(await sink.ask({ kind: 'approval', action: { ...SEND, effect: 'send' } }));
    },
  });
  const fault = await t.refused('ask.answer', yes({ to: 'cy' }), { actor: bo });
  expect(fault).toMatchObject({ kind: 'invalid_request', details: { code: 'cannot_change' } });
  expect(fault.message).toMatch(/only hear yes or no/);
  await t.answer(ask.id, undefined, bo);
  await t.until(task.id);
  expect(answers).toMatchObject([{ kind: 'approved' }]);
});

test('a command and a file path stay what was asked about; a file\u2019s content may change', async () => {
  const ran: unknown[] = [];
  const effect = async (args: JsonObject) => {
    ran.push(args);
    return { status: 'ok', output: null } as const;
  };
  const acts = [
    { kind: 'terminal', tool: 'terminal', target: 'ls -l', arguments: { command: 'ls', args: ['-l'] } },
    { kind: 'fs.write', tool: 'fs.write', target: '/w/a', arguments: { path: '/w/a', content: 'one' } },
  ] as const;
  const t = await openTestGateway({
    agents: [
      scriptedAgent(async (sink) => {
        for (const [at, act] of acts.entries())
          await sink.act({ ...act, effect: 'write', tool_call_id: `c${at}` }, effect);
        return undefined;
      }),
    ],
  });
  const task = await (await t.room()).task();
  const [command] = await t.asks(task.id);
  const other = { ask_id: command!.id, approved: true, arguments: { command: 'rm', args: ['-r'] } };
  expect(await t.refused('ask.answer', other, { actor: bo })).toMatchObject({ kind: 'invalid_request' });
  await t.answer(command!.id, undefined, bo);
  await t.seen(
    task.id,
    'vendor.tollbridge.ask_opened',
    ({ payload }) => (payload.ask as JsonObject).tool_call_id === 'c1',
  );
  const [file] = await t.asks(task.id);
  const moved = { ask_id: file!.id, approved: true, arguments: { path: '/etc/passwd', content: 'one' } };
  expect(await t.refused('ask.answer', moved, { actor: bo })).toMatchObject({ kind: 'invalid_request' });
  await t.send('ask.answer', { ...moved, arguments: { path: '/w/a', content: 'two' } }, { actor: bo });
  await t.until(task.id);
  expect(ran).toEqual([acts[0].arguments, { path: '/w/a', content: 'two' }]);
});

test('answered in another process, with a secret the log does not hold, exactly those bytes run', async () => {
  const { t, task, tools, ask } = await waiting();
  const other = await t.second({ rules: RULES });
  const token = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz';
  const args = { to: 'cy', token };
  await other.send('ask.answer', { ask_id: ask.id, approved: true, arguments: args }, { actor: bo });
  await t.until(task.id);
  expect(tools.calls.map((call) => call.arguments)).toEqual([args]);
  expect(JSON.stringify(await t.all())).not.toContain(token);
});

test('answered, and then the process died before the act: the changed arguments run after the restart, once', async () => {
  const { t, task, ask } = await waiting({ resume: true });
  await t.close();
  const tools = countingTools({ send: { effect: 'send' } });
  const between = await openTestGateway({ dir: t.dir, rules: RULES, started: false });
  await between.send('ask.answer', { ask_id: ask.id, approved: true, arguments: { to: 'cy' } }, { actor: bo });
  await between.close();
  const agent = scriptedAgent(
    async (sink) => {
      await sink.act(SEND);
      return undefined;
    },
    { resume: true },
  );
  const next = await openTestGateway({ dir: t.dir, rules: RULES, agents: [agent], tools: [tools] });
  await next.until(task.id);
  expect(tools.calls.map((call) => call.arguments)).toEqual([{ to: 'cy' }]);
});

test('rules that changed in between have the last word on the changed arguments', async () => {
  const { t, task, tools, ask } = await waiting({ load: async () => ({ rules: RULES, files: [] }) });
  // The process that takes the answer has other rules than the one that runs the act.
  const lax = '- { id: mail, when: { tool: send, kind: tool }, then: ask }';
  const other = await t.second({ load: async () => ({ rules: lax, files: [] }) });
  await other.send('ask.answer', { ask_id: ask.id, approved: true, arguments: { to: 'eve' } }, { actor: bo });
  await t.until(task.id);
  expect(tools.calls).toEqual([]);
  expect(of(await t.events(task.id), 'tool.denied').at(-1)?.payload).toMatchObject({ code: 'approval_void' });
});
