/** What each verdict leads to, under each tier, and when what a policy speaks of is gone. */
import { describe, expect, test } from 'vitest';
import { createGate } from '../../../../src/core/actions/gate.ts';
import type { Action } from '../../../../src/model/actions.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { PolicyEngine } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { latch, scriptedAgent } from '../../../support/gateway/agents.ts';
import { ALLOW_SEND, act, lastDecision } from '../../../support/gateway/one-decision.ts';
import { of, openTestGateway, states } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';

describe('an answer at once', () => {
  const quiet = { info() {}, warn() {}, error() {} };
  const about = { id: 'a', kind: 'tool', actor: ana, workspace_id: 'w', arguments: {} } as unknown as Action;
  const never = () => Promise.reject(new Error('was waited for'));
  const asked = (judge: () => unknown) =>
    createGate({
      policy: { name: 'p', decide: never, judge } as PolicyEngine,
      timeoutMs: 100,
      log: quiet,
      digest: () => 'digest',
    })(about);

  test('is taken without waiting for anyone', async () => {
    expect(await asked(() => ({ verdict: 'allow', reason: 'fine', engine: 'p' }))).toMatchObject({ verdict: 'allow' });
  });
  test.each([
    ['thrown', () => JSON.parse('{')],
    ['nonsense', () => ({ verdict: 'sure', reason: 'fine' })],
    ['no answer at all', () => null],
  ])('that is %s is a no', async (_, judge) => {
    expect(await asked(judge)).toMatchObject({ verdict: 'block', code: 'policy_failed' });
  });
  test('that is not there yet is waited for', async () => {
    expect(await asked(() => undefined)).toMatchObject({ verdict: 'block', code: 'policy_failed' });
  });
});

describe('every verdict', () => {
  test('allow: the tool runs once, and the record says by which rule', async () => {
    const { tools, result, decision } = await act({ rules: ALLOW_SEND });
    expect(result).toEqual({ kind: 'done', result: { status: 'ok', output: { did: 'send' } } });
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'bo' } }]);
    expect(decision).toMatchObject({
      verdict: 'allow',
      rule_id: 'may-send',
      reason: 'sending is fine',
      engine: 'cedar',
      action: { kind: 'tool', tool: 'send', server: 'box', effect: 'send', evidence: 'held', tool_call_id: 'c1' },
    });
  });

  test('block: refused with the reason, never called, and the work goes on', async () => {
    const rules = '- { id: no-mail, when: { kind: tool, tool: send }, then: block, say: mail stays here }';
    const { tools, result, log, decision } = await act({ rules });
    expect(result).toMatchObject({ kind: 'refused', reason: 'mail stays here' });
    expect(tools.calls).toEqual([]);
    expect(decision).toMatchObject({ verdict: 'block', rule_id: 'no-mail', engine: 'cedar' });
    expect(of(log, 'tool.denied').map(({ payload }) => payload)).toEqual([
      {
        tool_call_id: 'c1',
        name: 'send',
        by: 'cedar',
        reason: 'mail stays here',
        rule_id: 'no-mail',
        outcome: 'refused',
      },
    ]);
    expect(states(log)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
  });

  test('modify: what the rule rewrote is what runs', async () => {
    const rules = '- { id: only-cy, when: { kind: tool, tool: send }, then: modify, set: { to: cy }, say: goes to cy }';
    const { tools, decision } = await act({ rules });
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'cy' } }]);
    expect(decision).toMatchObject({ verdict: 'modify', rule_id: 'only-cy', arguments: { to: 'cy' } });
  });

  test('escalate: a person says yes and it runs, says no and it does not', async () => {
    const rules = '- { id: ask-first, when: { tool: send }, then: ask, say: someone should look }';
    const yes = await act({ rules, answer: true });
    expect(yes.tools.calls).toHaveLength(1);
    expect(yes.decision).toMatchObject({ verdict: 'escalate', rule_id: 'ask-first' });
    const no = await act({ rules, answer: false });
    expect(no.tools.calls).toEqual([]);
    expect(no.result).toMatchObject({ kind: 'refused', reason: 'ana said no' });
  });

  test('defer: asked again, and refused when it is still too early after a while', async () => {
    const rules = '- { id: later, when: { tool: send }, then: defer, retry_after: 1s, say: not yet }';
    const { tools, result, log } = await act({ rules, settings: { deferTries: 2, deferCapMs: 1 } });
    const verdicts = of(log, 'vendor.tollbridge.decided').map(
      ({ payload }) => (payload.decision as JsonObject).verdict,
    );
    expect(verdicts).toEqual(['allow', 'defer', 'defer', 'defer', 'block']);
    expect(result).toMatchObject({
      kind: 'refused',
      reason: 'not yet; still so after 2 tries',
      decision: { verdict: 'block', code: 'deferred_too_long' },
    });
    expect(of(log, 'tool.requested')).toHaveLength(1);
    expect(of(log, 'tool.denied')).toHaveLength(1);
    expect(tools.calls).toEqual([]);
  });
});

describe('tiers', () => {
  test('shadow: nothing acts, and the log says what would have been', async () => {
    const rules = ALLOW_SEND;
    const allowed = await act({ rules, persona: { autonomy_tier: 'shadow' } });
    expect(allowed.tools.calls).toEqual([]);
    expect(allowed.decision).toMatchObject({ verdict: 'block', code: 'tier_shadow', would_be: 'allow' });
    const asked = await act({ persona: { autonomy_tier: 'shadow' } });
    expect(asked.decision).toMatchObject({ verdict: 'block', code: 'tier_shadow', would_be: 'escalate' });
    const read = await act({ persona: { autonomy_tier: 'shadow' }, tool: 'look' });
    expect(read.tools.calls).toEqual([]);
  });

  test('suggest: everything asks, reads too, whatever the rules allow', async () => {
    const send = await act({ rules: ALLOW_SEND, persona: { autonomy_tier: 'suggest' }, answer: true });
    expect(send.decision).toMatchObject({ verdict: 'escalate', code: 'tier_suggest' });
    expect(send.tools.calls).toHaveLength(1);
    const read = await act({ persona: { autonomy_tier: 'suggest' }, tool: 'look', answer: false });
    expect(read.decision).toMatchObject({ verdict: 'escalate', code: 'tier_suggest' });
    expect(read.tools.calls).toEqual([]);
  });

  test('act_with_approval: side effects ask, reads pass', async () => {
    const send = await act({ rules: ALLOW_SEND, persona: { autonomy_tier: 'act_with_approval' }, answer: true });
    expect(send.decision).toMatchObject({ verdict: 'escalate', code: 'tier_act_with_approval' });
    const read = await act({ persona: { autonomy_tier: 'act_with_approval' }, tool: 'look' });
    expect(read.decision).toMatchObject({ verdict: 'allow' });
    expect(read.tools.calls).toHaveLength(1);
    const odd = await act({ persona: { autonomy_tier: 'act_with_approval' }, tool: 'odd', answer: false });
    expect(odd.decision).toMatchObject({ verdict: 'escalate', action: { effect: 'unknown' } });
  });

  test('act_auto: the rules alone decide', async () => {
    const { decision, tools } = await act({ rules: ALLOW_SEND, persona: { autonomy_tier: 'act_auto' } });
    expect(decision).toMatchObject({ verdict: 'allow', rule_id: 'may-send' });
    expect(tools.calls).toHaveLength(1);
  });

  test('no rule: a side effect asks, a read passes, and a tool nobody knows counts as a side effect', async () => {
    const send = await act({ answer: true });
    expect(send.decision).toMatchObject({ verdict: 'escalate', code: 'no_rule', reason: 'no rule covers this' });
    const read = await act({ tool: 'look' });
    expect(read.decision).toMatchObject({ verdict: 'allow', code: 'no_rule' });
    const odd = await act({ tool: 'odd', answer: false });
    expect(odd.decision).toMatchObject({ verdict: 'escalate', code: 'no_rule' });
  });
});

describe('what a policy speaks of is withdrawn while the work goes on', () => {
  test.each(['persona', 'workspace'] as const)('a %s: nobody can say how far it may go, so it asks', async (object) => {
    const tools = countingTools({ look: { effect: 'read' } });
    const between = latch();
    const agent = scriptedAgent(async (sink) => {
      await sink.act({ kind: 'tool', tool: 'look', arguments: {} });
      await between.promise;
      await sink.act({ kind: 'tool', tool: 'look', arguments: {} });
      return undefined;
    });
    const t = await openTestGateway({ agents: [agent], tools: [tools] });
    const room = await t.room({ persona: { autonomy_tier: 'act_with_approval' } });
    const task = await room.task();
    await t.seen(task.id, 'tool.completed');
    await t.send('resource.delete', { object, id: String(room[object]) });
    between.open();
    await t.asks(task.id);
    expect(lastDecision(await t.events(task.id)).payload.decision).toMatchObject({
      verdict: 'escalate',
      code: 'tier_suggest',
    });
    t.clock.advance(2 * 60 * 60 * 1000);
    await t.until(task.id);
    expect(tools.calls).toHaveLength(1);
  });
});
