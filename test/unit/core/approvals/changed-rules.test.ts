/** An approval that arrives after the rules changed: the rules of now decide on the act as well. */
import { expect, test } from 'vitest';
import type { ActResult } from '../../../../src/ports/index.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { asking } from '../../../support/gateway/asking-work.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools, SEND } from '../../../support/gateway/tools.ts';

const ASK = '- { id: mail-asks, when: { tool: send }, then: ask }';

/** An agent that wants to send and waits for an answer; then other rules come into force, then the answer. */
async function approvedAfter(change: { rules?: string; before?: string }) {
  const sources = { rules: change.before ?? ASK };
  const runtime = await asking({ load: async () => ({ rules: sources.rules, files: [] }) });
  const { t, task } = runtime;
  const [ask] = await t.asks(task.id);
  sources.rules = change.rules ?? sources.rules;
  await t.runtime.policy.reload();
  await t.answer(ask!.id);
  await t.until(task.id);
  const log = await t.events(task.id);
  const decided = of(log, 'vendor.tollbridge.decided').map(({ payload }) => payload.decision as { verdict: string });
  return { ...runtime, log, decided: decided.filter(({ verdict }) => verdict !== 'allow') };
}

test('what the new rules block does not run, and the refusal names the new rule', async () => {
  const { tools, results, log, decided } = await approvedAfter({
    rules: '- { id: no-mail, when: { tool: send, kind: tool }, then: block, say: no mail today }',
  });
  expect(tools.calls).toEqual([]);
  expect(results).toMatchObject([{ kind: 'refused', reason: 'no mail today', decision: { rule_id: 'no-mail' } }]);
  expect(decided).toMatchObject([
    { verdict: 'escalate', rule_id: 'mail-asks' },
    { verdict: 'block', rule_id: 'no-mail' },
  ]);
  expect(of(log, 'tool.denied').at(-1)?.payload).toMatchObject({ reason: 'no mail today', rule_id: 'no-mail' });
  expect(of(log, 'vendor.tollbridge.ask_used')).toHaveLength(1);
});

test('what the new rules rewrite does not run as it was approved', async () => {
  const { tools, results } = await approvedAfter({
    rules: '- { id: to-all, when: { tool: send }, then: modify, set: { to: everyone } }',
  });
  expect(tools.calls).toEqual([]);
  expect(results).toMatchObject([{ kind: 'refused', decision: { verdict: 'block', code: 'approval_void' } }]);
});

test('new rules that leave the question to other approvers void the answer', async () => {
  const { tools, results } = await approvedAfter({
    rules: '- { id: mail-asks, when: { tool: send }, then: ask, to: security }',
  });
  expect(tools.calls).toEqual([]);
  expect(results).toMatchObject([{ kind: 'refused', decision: { verdict: 'block', code: 'approval_void' } }]);
});

test.each([
  ['other rules that ask the same', `${ASK}\n- { id: other, when: { tool: publish }, then: block }`],
  ['rules that allow it by now', '- { id: free, when: { tool: send }, then: allow }'],
  ['the same rules', undefined],
])('%s leave the approval as it is', async (_what, rules) => {
  const { tools, results } = await approvedAfter(rules === undefined ? {} : { rules });
  expect(tools.calls).toHaveLength(1);
  expect(results).toMatchObject([{ kind: 'done' }]);
});

test('a persona whose tier was lowered while people were asked no longer acts', async () => {
  const tools = countingTools({ send: { effect: 'send' } });
  const results: ActResult[] = [];
  const agent = scriptedAgent(async (sink) => {
    results.push(await sink.act(SEND));
    return undefined;
  });
  const t = await openTestGateway({ agents: [agent], tools: [tools], rules: ASK });
  const room = await t.room({ persona: { autonomy_tier: 'act_auto' } });
  const task = await room.task();
  const [ask] = await t.asks(task.id);
  const body = { object: 'persona' as const, id: room.persona as string, body: { autonomy_tier: 'shadow' } };
  await t.send('resource.update', body);
  await t.answer(ask!.id);
  await t.until(task.id);
  expect(tools.calls).toEqual([]);
  expect(results).toMatchObject([{ kind: 'refused', decision: { verdict: 'block', code: 'tier_shadow' } }]);
});

test('an agent that acts by itself and only asks hears the refusal, and not the approval', async () => {
  const sources = { rules: ASK };
  const received: unknown[] = [];
  const { t, task } = await asking({
    load: async () => ({ rules: sources.rules, files: [] }),
    script: async (sink) => {
      received.push(await sink.ask({ kind: 'approval', action: { ...SEND, effect: 'send' } }));
    },
  });
  const [ask] = await t.asks(task.id);
  sources.rules = '- { id: no-mail, when: { tool: send, kind: tool }, then: block, say: no mail today }';
  await t.runtime.policy.reload();
  await t.answer(ask!.id);
  await t.until(task.id);
  expect(received).toMatchObject([{ kind: 'denied', reason: 'no mail today' }]);
});
