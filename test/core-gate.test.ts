/** The gate on the real stack: nothing acts that was not decided and written down first, and whatever breaks is a no. */
import { describe, expect, test } from 'vitest';
import { createGate } from '../src/core/gate.ts';
import type { Action, Decision } from '../src/model/actions.ts';
import type { CoreEvent } from '../src/model/events.ts';
import type { JsonObject } from '../src/model/schema.ts';
import type { ActResult, PolicyEngine } from '../src/ports.ts';
import { ana } from './support/actors.ts';
import { latch, scriptedAgent } from './support/agents.ts';
import { pulledDisk } from './support/failing-store.ts';
import { kinds, of, openTestHouse, placeOf, states, type TestHouse, type TestHouseOptions } from './support/house.ts';
import { type CountingTools, countingTools } from './support/tools.ts';

interface Acted {
  readonly t: TestHouse;
  readonly tools: CountingTools;
  readonly result: ActResult;
  readonly log: CoreEvent[];
  readonly decision: Decision & { action: JsonObject };
}

/** One agent, one act: `send` to bo, unless told otherwise. */
async function act(
  options: TestHouseOptions & { persona?: JsonObject; tool?: string; answer?: boolean } = {},
): Promise<Acted> {
  const tools = countingTools({ send: { effect: 'send' }, look: { effect: 'read' }, odd: {} });
  const results: ActResult[] = [];
  const agent = scriptedAgent(async (sink) => {
    const call = { kind: 'tool' as const, tool: options.tool ?? 'send', tool_call_id: 'c1', arguments: { to: 'bo' } };
    results.push(await sink.act(call));
    return undefined;
  });
  const t = await openTestHouse({ ...options, agents: [agent], tools: [tools] });
  const room = await t.room(options.persona ? { persona: options.persona } : {});
  const task = await room.task();
  if (options.answer !== undefined) {
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id, { approved: options.answer });
  }
  await t.until(task.id);
  const log = await t.events(task.id);
  const { decision, action } = lastDecision(log).payload as unknown as { decision: Decision; action: JsonObject };
  return { t, tools, result: results[0]!, log, decision: { ...decision, action } };
}

/** The last decision about the act, not the one that let the task in. */
function lastDecision(log: readonly CoreEvent[]): CoreEvent {
  return of(log, 'vendor.tollbridge.decided')
    .filter(({ payload }) => (payload.action as JsonObject).kind === 'tool')
    .at(-1)!;
}

const ALLOW_SEND = '- { id: may-send, when: { kind: tool, tool: send }, then: allow, say: sending is fine }';

describe('an answer at once', () => {
  const quiet = { info() {}, warn() {}, error() {} };
  const about = { id: 'a', kind: 'tool', actor: ana, workspace_id: 'w', arguments: {} } as unknown as Action;
  const never = () => Promise.reject(new Error('was waited for'));
  const asked = (judge: () => unknown) =>
    createGate({ policy: { name: 'p', decide: never, judge } as PolicyEngine, timeoutMs: 100, log: quiet })(about);

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
      { tool_call_id: 'c1', name: 'send', by: 'cedar', reason: 'mail stays here', rule_id: 'no-mail' },
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

describe('decide, write down, then act', () => {
  test('a tool that reads the log finds its own decision there', async () => {
    const found: (CoreEvent | undefined)[] = [];
    let t: TestHouse | undefined;
    const tools = countingTools({
      send: {
        effect: 'send',
        run: async (_args, { task_id }) => {
          // Through a reader of its own, so that it sees only what is on disk.
          const reader = await t!.second({ started: false, agents: [], tools: [] });
          found.push(lastDecision(await reader.events(String(task_id))));
          await reader.close();
          return { status: 'ok', output: null };
        },
      },
    });
    const agent = scriptedAgent(async (sink) => {
      await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} });
      return undefined;
    });
    t = await openTestHouse({ agents: [agent], tools: [tools], rules: ALLOW_SEND });
    const task = await (await t.room()).task();
    await t.until(task.id);
    expect(found[0]?.payload).toMatchObject({
      action: { tool_call_id: 'c1' },
      decision: { verdict: 'allow', rule_id: 'may-send', engine: 'cedar' },
    });
  });

  test('an approval is spent in the log before the tool it was given for is called', async () => {
    const atCall: string[][] = [];
    let t: TestHouse | undefined;
    const tools = countingTools({
      send: {
        effect: 'send',
        run: async (_args, { task_id }) => {
          atCall.push(kinds(await t!.events(String(task_id))));
          return { status: 'ok', output: null };
        },
      },
    });
    const agent = scriptedAgent(async (sink) => {
      await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} });
      return undefined;
    });
    t = await openTestHouse({ agents: [agent], tools: [tools] });
    const task = await (await t.room()).task();
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id);
    await t.until(task.id);
    expect(atCall).toHaveLength(1);
    expect(atCall[0]).toContain('vendor.tollbridge.decided');
    expect(atCall[0]).toContain('vendor.tollbridge.ask_used');
    expect(atCall[0]).not.toContain('tool.completed');
  });

  test('the request, the decision and the end of a call stand in that order', async () => {
    const { log } = await act({ rules: ALLOW_SEND });
    const [request] = of(log, 'tool.requested');
    const [end] = of(log, 'tool.completed');
    expect(placeOf(request!)).toBeLessThan(placeOf(lastDecision(log)));
    expect(placeOf(lastDecision(log))).toBeLessThan(placeOf(end!));
  });
});

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
      settings: { policyTimeoutMs: 50 },
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
    const decision = await createGate({ policy, timeoutMs: 1000, log: logger })(action);
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
    const decision = await createGate({ policy, timeoutMs: 1000, log: logger })(action);
    expect(decision).toMatchObject({ verdict: 'block', code: 'policy_failed' });
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
    const t = await openTestHouse({ agents: [agent], tools: [tools] });
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

describe('a policy that cannot be read', () => {
  const BAD = { rules: '- { id: x, then: perhaps }', files: [] };
  const GOOD = { rules: ALLOW_SEND, files: [] };

  test.each([
    ['has a rule that makes no sense', async () => BAD],
    ['has a syntax error', async () => ({ files: [{ name: 'p.cedar', text: 'permit (' }] })],
    ['cannot be opened', async () => Promise.reject(new Error('gone'))],
  ])('at the start one that %s: nothing is let through', async (_how, load) => {
    const t = await openTestHouse({ load, tools: [countingTools({ send: { effect: 'send' } })] });
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
    const t = await openTestHouse({ load: async () => sources, agents: [agent], tools: [tools] });
    const room = await t.room();
    await t.until((await room.task()).id);
    expect(tools.calls).toHaveLength(1);

    sources = BAD;
    expect(await t.house.policy.reload()).toMatchObject({ outcome: 'refused', rules: 1 });
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
    const t = await openTestHouse({ load: async () => ({ rules, files: [] }), agents: [agent], tools: [tools] });
    const task = await (await t.room()).task();
    await t.seen(task.id, 'tool.completed');
    rules = '- { id: stop, when: { kind: tool }, then: block, say: closed }';
    expect(await t.house.policy.reload()).toMatchObject({ outcome: 'loaded' });
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

describe('a log that cannot be written', () => {
  test('nothing acts, everyone hears why, and work goes on when it can be written again', async () => {
    const disk = pulledDisk();
    const tools = countingTools({ send: { effect: 'send' } });
    const heard: unknown[] = [];
    const begun = latch();
    const pulled = latch();
    const back = latch();
    const agent = scriptedAgent(async (sink) => {
      begun.open();
      await pulled.promise;
      await sink
        .act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} })
        .catch((cause) => heard.push(cause));
      await sink
        .emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts: [] } } })
        .catch((cause) => heard.push(cause));
      await back.promise;
      await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} });
      return undefined;
    });
    const t = await openTestHouse({ agents: [agent], tools: [tools], rules: ALLOW_SEND, store: disk.wrap });
    const room = await t.room();
    const task = await room.task();
    await begun.promise;

    disk.down = true;
    pulled.open();
    const fault = await t.refused('task.submit', { session_id: room.session, input: {} });
    expect(fault).toMatchObject({ kind: 'unavailable' });
    expect(fault.message).toContain('free some disk space');
    await expect.poll(() => heard.length).toBe(2);
    expect(heard).toMatchObject([{ kind: 'unavailable' }, { kind: 'unavailable' }]);
    expect(tools.calls).toEqual([]);
    // Reading is not writing.
    expect(await t.bridge.view(ana, 'task', task.id)).toMatchObject({
      status: 'WORKING',
    });

    disk.down = false;
    expect(await t.send('session.create', { workspace_id: room.workspace })).toMatchObject({ repeated: false });
    back.open();
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(1);
  });

  test('what a tool did while the log was away is written down when it is back', async () => {
    const disk = pulledDisk();
    const tools = countingTools({
      send: {
        effect: 'send',
        run: () => {
          disk.down = true;
          setTimeout(() => {
            disk.down = false;
          }, 150);
          return { status: 'ok', output: { sent: 1 } };
        },
      },
    });
    const results: ActResult[] = [];
    const agent = scriptedAgent(async (sink) => {
      results.push(await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} }));
      return undefined;
    });
    const t = await openTestHouse({ agents: [agent], tools: [tools], rules: ALLOW_SEND, store: disk.wrap });
    const task = await (await t.room()).task();
    await t.until(task.id);
    expect(disk.refused).toBeGreaterThan(0);
    expect(tools.calls).toHaveLength(1);
    expect(results).toMatchObject([{ kind: 'done', result: { status: 'ok' } }]);
    expect(of(await t.events(task.id), 'tool.completed').map(({ payload }) => payload.output)).toEqual([{ sent: 1 }]);
  });
});

describe('new work and new sessions pass the gate too', () => {
  test('a prompt a rule blocks starts nothing, and the refusal stands in the log', async () => {
    const rules = '- { id: no-work, when: { kind: prompt }, then: block, say: closed today }';
    let started = 0;
    const agent = scriptedAgent(async () => {
      started += 1;
      return undefined;
    });
    const t = await openTestHouse({ rules, agents: [agent] });
    const room = await t.room();
    const fault = await t.refused('task.submit', { session_id: room.session, input: { a: 1 } });
    expect(fault).toMatchObject({ kind: 'policy_violation', message: 'closed today', details: { rule_id: 'no-work' } });
    const log = await t.all();
    expect(of(log, 'task.submitted')).toEqual([]);
    expect(of(log, 'vendor.tollbridge.decided').at(-1)?.payload.decision).toMatchObject({
      verdict: 'block',
      rule_id: 'no-work',
    });
    expect(started).toBe(0);
  });

  test('a prompt a rule defers is a rate limit that says when to come back', async () => {
    const rules = '- { id: slow, when: { kind: prompt }, then: defer, retry_after: 30s, say: one at a time }';
    const t = await openTestHouse({ rules, agents: [scriptedAgent(async () => undefined)] });
    const room = await t.room();
    expect(await t.refused('task.submit', { session_id: room.session, input: {} })).toMatchObject({
      kind: 'rate_limited',
      details: { retry_after_ms: 30_000 },
    });
  });

  test.each([
    [true, 'COMPLETED', 1],
    [false, 'FAILED', 0],
  ])('a prompt a rule asks about waits for a person (%s)', async (approved, state, times) => {
    const rules = '- { id: ask-work, when: { kind: prompt }, then: ask, say: is this wise }';
    let started = 0;
    const agent = scriptedAgent(async () => {
      started += 1;
      return undefined;
    });
    const t = await openTestHouse({ rules, agents: [agent] });
    const task = await (await t.room()).task();
    const [ask] = await t.asks(task.id);
    expect(started).toBe(0);
    await t.answer(ask!.id, { approved });
    expect(await t.until(task.id)).toMatchObject({ status: state });
    expect(started).toBe(times);
  });

  test('a session a rule forbids is not opened', async () => {
    const rules = '- { id: no-rooms, when: { kind: session.open }, then: block, say: no more rooms }';
    const t = await openTestHouse({ rules });
    const { resource } = await t.send('resource.create', {
      object: 'workspace',
      body: { name: 'w', root: 'file:///w' },
    });
    expect(await t.refused('session.create', { workspace_id: resource.id })).toMatchObject({
      kind: 'policy_violation',
      message: 'no more rooms',
    });
    expect(of(await t.all(), 'session.created')).toEqual([]);
  });
});
