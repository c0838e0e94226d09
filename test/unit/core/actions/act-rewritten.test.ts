/** Arguments a rule rewrites: what runs is what was decided about, and the caller hears of it. */
import { describe, expect, test } from 'vitest';
import type { Decision } from '../../../../src/model/actions.ts';
import type { Answer } from '../../../../src/model/asks.ts';
import type { PolicyEngine } from '../../../../src/ports/index.ts';
import { ALLOW, play, sha256 } from '../../../support/gateway/scripted-run.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { SEND } from '../../../support/gateway/tools.ts';

/** Says the same about every act, and nothing about anything else. */
function saying(decision: Omit<Decision, 'engine'>): PolicyEngine {
  return {
    name: 'outside',
    decide: async ({ kind }) =>
      kind === 'tool'
        ? { ...decision, engine: 'outside' }
        : { verdict: 'allow', reason: 'not mine', engine: 'outside' },
  };
}

describe('rewritten arguments', () => {
  const TO_CY = '- { id: to-cy, when: { kind: tool }, then: modify, set: { to: cy }, say: everything goes to cy }';

  test('run instead of what was asked for, and the receipt says both', async () => {
    const { t, tools, task } = await play(
      async (sink) => {
        await sink.act(SEND);
      },
      { rules: TO_CY },
    );
    await t.until(task.id);
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'cy' } }]);
    const log = await t.events(task.id);
    expect(of(log, 'tool.requested')[0]?.payload.input).toEqual({ to: 'bo' });
    expect(of(log, 'tool.approved')[0]?.payload).toMatchObject({ input: { to: 'cy' }, rule_id: 'to-cy', by: 'cedar' });
    const [call] = (await t.receipts(task.id))[0]!.side_effects.tool_calls;
    expect(call).toMatchObject({
      call_id: 'c1',
      status: 'succeeded',
      input_hash: sha256('{"to":"cy"}'),
      metadata: { verdict: 'modify', requested_input_hash: sha256('{"to":"bo"}') },
    });
  });

  test('reach an asker that can take them, and are a refusal that says so to one that cannot', async () => {
    const answers: Answer[] = [];
    const { t, task } = await play(
      async (sink) => {
        answers.push(await sink.ask({ kind: 'approval', action: SEND, takesArguments: true }));
        answers.push(await sink.ask({ kind: 'approval', action: { ...SEND, tool_call_id: 'c2' } }));
      },
      { rules: TO_CY },
    );
    await t.until(task.id);
    expect(answers[0]).toMatchObject({ kind: 'approved', by: 'cedar', arguments: { to: 'cy' } });
    expect(answers[1]).toMatchObject({
      kind: 'denied',
      by: 'cedar',
      reason: 'everything goes to cy (the rule rewrites the arguments, which cannot be carried back to this agent)',
    });
    expect(of(await t.events(task.id), 'tool.denied')[0]?.payload).toMatchObject({
      tool_call_id: 'c2',
      code: 'cannot_modify',
    });
  });

  test('are what people are asked about, and nothing else runs when they say yes', async () => {
    const engines = [saying({ verdict: 'escalate', reason: 'look at this', arguments: { to: 'dee' } })];
    const { t, tools, task } = await play(
      async (sink) => {
        await sink.act(SEND);
      },
      { engines },
    );
    const [ask] = await t.asks(task.id);
    expect(ask).toMatchObject({ kind: 'approval', action: { tool: 'send', arguments: { to: 'dee' } } });
    await t.answer(ask!.id);
    await t.until(task.id);
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'dee' } }]);
    const [call] = (await t.receipts(task.id))[0]!.side_effects.tool_calls;
    expect(call).toMatchObject({ input_hash: sha256('{"to":"dee"}'), metadata: { verdict: 'escalate' } });
  });

  test('come with the yes to an agent that runs the act itself', async () => {
    const engines = [saying({ verdict: 'escalate', reason: 'look at this', arguments: { to: 'dee' } })];
    const answers: Answer[] = [];
    const { t, task } = await play(
      async (sink) => {
        answers.push(await sink.ask({ kind: 'approval', action: SEND, takesArguments: true }));
      },
      { engines },
    );
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id);
    await t.until(task.id);
    expect(answers).toMatchObject([{ kind: 'approved', by: 'ana', arguments: { to: 'dee' } }]);
  });

  test('a proposer hears them as a rewriting, never as a plain yes', async () => {
    const engines = [saying({ verdict: 'escalate', reason: 'look at this', arguments: { to: 'dee' } })];
    const t = await openTestGateway({ rules: ALLOW, engines });
    const task = await (await t.room()).task({ agent: 'none' });
    const waiting = t.send('action.propose', { task_id: task.id, action: SEND });
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id);
    expect((await waiting).decision).toMatchObject({ verdict: 'modify', arguments: { to: 'dee' } });
  });

  test('a proposer is never answered that we held what it runs itself', async () => {
    const t = await openTestGateway({ rules: ALLOW });
    const task = await (await t.room()).task({ agent: 'none' });
    await t.send('action.propose', { task_id: task.id, action: { ...SEND, evidence: 'held' } });
    expect(of(await t.events(task.id), 'tool.requested')[0]?.payload.evidence).toBe('asked');
  });
});
