/** A policy that breaks, dawdles, talks nonsense or cannot be read has not said yes. */
import { describe, expect, test } from 'vitest';
import { createGate } from '../../../../src/core/actions/gate.ts';
import type { Action, Decision } from '../../../../src/model/actions.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { PolicyEngine } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { latch, scriptedAgent } from '../../../support/gateway/agents.ts';
import { ALLOW_SEND, act, lastDecision } from '../../../support/gateway/one-decision.ts';
import { of, openTestGateway, states } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';

describe('a policy engine that does not decide has not said yes', () => {
  const engines: readonly [string, PolicyEngine['decide'], string][] = [
    [
      'throws',
      () => {
        throw new Error('secret stack');
      },
      'policy_error',
    ],
    ['rejects', async () => Promise.reject(new Error('secret stack')), 'policy_error'],
    ['answers nothing', async () => undefined as unknown as Decision, 'policy_error'],
    ['answers a word', async () => 'allow' as unknown as Decision, 'policy_error'],
    [
      'answers an unknown verdict',
      async () => ({ verdict: 'sure', reason: 'r', engine: 'x' }) as unknown as Decision,
      'policy_error',
    ],
    ['gives no reason', async () => ({ verdict: 'allow' }) as unknown as Decision, 'policy_error'],
    ['rewrites to nothing', async () => ({ verdict: 'modify', reason: 'r', engine: 'x' }), 'policy_error'],
    [
      'gives people longer than time lasts',
      async () => ({ verdict: 'escalate', reason: 'r', engine: 'x', ask: { expires_ms: 1e300 } }),
      'policy_failed',
    ],
    ['ignores its signal', () => new Promise<Decision>(() => {}), 'policy_timed_out'],
    [
      'answers when its time is over',
      (_action, signal) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve({ verdict: 'allow', reason: 'too late', engine: 'x' }));
        }),
      'policy_timed_out',
    ],
  ];

  test.each(engines)('one that %s', async (_how, decide, code) => {
    const engine: PolicyEngine = {
      name: 'outside',
      decide: async (action, signal) =>
        action.kind === 'tool' ? decide(action, signal) : { verdict: 'allow', reason: 'not mine', engine: 'outside' },
    };
    const { tools, result, decision, log } = await act({
      rules: ALLOW_SEND,
      engines: [engine],
      settings: { policyTimeoutMs: 500 },
    });
    expect(tools.calls).toEqual([]);
    expect(result.kind).toBe('refused');
    expect(decision).toMatchObject({ verdict: 'block', code });
    expect(decision.reason).not.toBe('');
    expect(of(log, 'tool.denied')[0]?.payload).toMatchObject({ tool_call_id: 'c1', code });
    expect(states(log).at(-1)).toBe('COMPLETED');
    expect(JSON.stringify(log)).not.toContain('secret stack');
  });
});

describe('the gate takes nothing for a decision that one could not act on', () => {
  const action: Action = {
    id: 'action_1',
    kind: 'tool',
    actor: ana,
    workspace_id: 'w',
    arguments: {},
    effect: 'send',
    evidence: 'held',
  };
  const logger = { info() {}, warn() {}, error() {} };

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a list', []],
    ['arguments that are a list', { verdict: 'modify', reason: 'r', engine: 'x', arguments: ['a'] }],
    ['people who are one text', { verdict: 'escalate', reason: 'r', engine: 'x', ask: { to: 'ana' } }],
    ['people who are numbers', { verdict: 'escalate', reason: 'r', engine: 'x', ask: { to: [1] } }],
    ['a time that is a word', { verdict: 'escalate', reason: 'r', engine: 'x', ask: { expires_ms: 'soon' } }],
    ['a time before now', { verdict: 'escalate', reason: 'r', engine: 'x', ask: { expires_ms: -1 } }],
    ['a wait that is no number', { verdict: 'defer', reason: 'r', engine: 'x', retry_after_ms: Number.NaN }],
  ])('%s', async (_what, answer) => {
    const policy: PolicyEngine = { name: 'outside', decide: async () => answer as Decision };
    const decision = await createGate({ policy, timeoutMs: 1000, log: logger, digest: () => 'digest' })(action);
    expect(decision).toEqual({
      verdict: 'block',
      code: 'policy_failed',
      reason: 'policy could not be evaluated',
      engine: 'outside',
    });
  });

  test('an engine that throws before it promises anything', async () => {
    const policy: PolicyEngine = {
      name: 'outside',
      decide: () => {
        throw new Error('at once');
      },
    };
    const decision = await createGate({ policy, timeoutMs: 1000, log: logger, digest: () => 'digest' })(action);
    expect(decision).toMatchObject({ verdict: 'block', code: 'policy_failed' });
  });
});

describe('a policy that cannot be read', () => {
  const BAD = { rules: '- { id: x, then: perhaps }', files: [] };
  const GOOD = { rules: ALLOW_SEND, files: [] };

  test.each([
    ['has a rule that makes no sense', async () => BAD],
    ['has a syntax error', async () => ({ files: [{ name: 'p.cedar', text: 'permit (' }] })],
    ['cannot be opened', async () => Promise.reject(new Error('gone'))],
  ])('at the start one that %s: nothing is let through', async (_how, load) => {
    const t = await openTestGateway({ load, tools: [countingTools({ send: { effect: 'send' } })] });
    const { resource: workspace } = await t.send('resource.create', {
      object: 'workspace',
      body: { name: 'w', root: 'file:///w' },
    });
    const fault = await t.refused('session.create', { workspace_id: workspace.id });
    expect(fault).toMatchObject({ kind: 'policy_violation', message: 'no policy is in force yet, which counts as no' });
    const [noted] = of(await t.all(), 'vendor.tollbridge.policy_loaded');
    expect(noted?.payload).toMatchObject({ outcome: 'refused', rules: 0 });
  });

  test('later: the old rules stay in force, and the refusal is written down', async () => {
    let sources = GOOD;
    const tools = countingTools({ send: { effect: 'send' } });
    const agent = scriptedAgent(async (sink) => {
      await sink.act({ kind: 'tool', tool: 'send', arguments: {} });
      return undefined;
    });
    const t = await openTestGateway({ load: async () => sources, agents: [agent], tools: [tools] });
    const room = await t.room();
    await t.until((await room.task()).id);
    expect(tools.calls).toHaveLength(1);

    sources = BAD;
    expect(await t.runtime.policy.reload()).toMatchObject({ outcome: 'refused', rules: 1 });
    const task = await room.task();
    await t.until(task.id);
    expect(tools.calls).toHaveLength(2);
    expect(lastDecision(await t.events(task.id)).payload.decision).toMatchObject({
      verdict: 'allow',
      rule_id: 'may-send',
    });
    const outcomes = of(await t.all(), 'vendor.tollbridge.policy_loaded').map(({ payload }) => payload.outcome);
    expect(outcomes).toEqual(['loaded', 'refused']);
  });

  test('a good one takes over at once, and only for what is decided after it', async () => {
    let rules = ALLOW_SEND;
    const tools = countingTools({ send: { effect: 'send' } });
    const between = latch();
    const agent = scriptedAgent(async (sink) => {
      await sink.act({ kind: 'tool', tool: 'send', arguments: {} });
      await between.promise;
      await sink.act({ kind: 'tool', tool: 'send', arguments: {} });
      return undefined;
    });
    const t = await openTestGateway({ load: async () => ({ rules, files: [] }), agents: [agent], tools: [tools] });
    const task = await (await t.room()).task();
    await t.seen(task.id, 'tool.completed');
    rules = '- { id: stop, when: { kind: tool }, then: block, say: closed }';
    expect(await t.runtime.policy.reload()).toMatchObject({ outcome: 'loaded' });
    between.open();
    await t.until(task.id);
    expect(tools.calls).toHaveLength(1);
    const decisions = of(await t.events(task.id), 'vendor.tollbridge.decided').map(
      ({ payload }) => payload.decision as JsonObject,
    );
    expect(decisions.map(({ verdict }) => verdict)).toEqual(['allow', 'allow', 'block']);
    expect(decisions[1]!.policy_version).not.toBe(decisions[2]!.policy_version);
  });
});
