import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { UpstreamConfig } from '../../../adapters/ahp/config.ts';
import { serveUnix } from '../../../adapters/ahp/server/door.ts';
import type { AhpEvent } from '../../../adapters/ahp/translate.ts';
import { event, openAgent, QUIET, type Said } from '../../support/ahp/gateway.ts';
import { action, answer, harness, NEVER, type Script, upstream, WELCOME } from '../../support/ahp/harness.ts';

async function decided(script: Script, config: UpstreamConfig = {}, about = action(), welcome?: object) {
  const { path, received } = await harness(script, welcome);
  const decision = await upstream({ socket: path, ...config }).decide(about, NEVER);
  return { decision, asked: received.find(({ method }) => method === 'ahp/event')?.params };
}

describe('what a harness says is what is decided', () => {
  test('about a tool, asked under both its names and with the way it came', async () => {
    const { decision, asked } = await decided(
      answer({ decision: 'block', reason: 'not that' }),
      {},
      action({ attributes: { via: ['them'], depth: 2 } }),
    );
    expect(decision).toEqual({ verdict: 'block', reason: 'not that', engine: 'ahp:h' });
    expect(asked).toMatchObject({
      event_type: 'pre_action',
      depth: 2,
      payload: { action_type: 'tool_call', tool_name: 'bash', tool: 'bash', arguments: { command: 'ls' } },
      metadata: { via: ['them', 'us'] },
    });
  });

  test.each([
    ['allow', { decision: 'allow' }, { verdict: 'allow' }],
    [
      'escalate',
      { decision: 'escalate', reason: 'r', escalation_target: 'ops' },
      { verdict: 'escalate', reason: 'r (ask ops)' },
    ],
    ['defer', { decision: 'defer', retry_after_ms: 500_000 }, { verdict: 'defer', retry_after_ms: 60_000 }],
    [
      'modify',
      { decision: 'modify', modified_payload: { arguments: { command: 'ls -l' } } },
      { verdict: 'modify', arguments: { command: 'ls -l' } },
    ],
    [
      'an allow that rewrites',
      { decision: 'allow', modified_payload: { args: { command: 'pwd' } } },
      { verdict: 'modify', arguments: { command: 'pwd' } },
    ],
    [
      'a rewrite nobody can read',
      { decision: 'modify', modified_payload: 'x' },
      { verdict: 'block', code: 'cannot_modify' },
    ],
    [
      'another tool instead',
      { decision: 'modify', modified_payload: { tool: 'rm', arguments: {} } },
      { verdict: 'block', code: 'cannot_modify' },
    ],
  ])('%s', async (_, said, wanted) => {
    expect((await decided(answer(said))).decision).toMatchObject(wanted);
  });

  test('a defer that means a person is looking is an approval', async () => {
    const { decision } = await decided(answer({ decision: 'defer', retry_after_ms: 1 }), { defer_means: 'approval' });
    expect(decision.verdict).toBe('escalate');
  });

  test('prompts and handoffs have their words; the rest is not asked about', async () => {
    const input = { role: 'user', parts: [{ type: 'text', text: 'fix it', visibility: 'public' }] };
    const prompt = await decided(
      answer({ decision: 'modify', modified_payload: { prompt: 'fix it safely' } }),
      {},
      action({ kind: 'prompt', arguments: { input } }),
    );
    expect(prompt.asked).toMatchObject({ event_type: 'pre_prompt', payload: { prompt: 'fix it' } });
    expect(prompt.decision.arguments).toMatchObject({ input: { parts: [{ text: 'fix it safely' }] } });
    const handoff = await decided(answer({ decision: 'allow' }), {}, action({ kind: 'handoff', target: 'helper' }));
    expect(handoff.asked.payload.tool_name).toBe('a2a:helper');
    const answering = await decided(answer({ decision: 'block', reason: 'r' }), {}, action({ kind: 'answer' }));
    expect([answering.decision.verdict, answering.asked]).toEqual(['allow', undefined]);
  });
});

describe('whatever is not a decision is a no', () => {
  const nonsense: [string, Script][] = [
    ['silence', () => {}],
    ['an error', (message, say) => say({ jsonrpc: '2.0', id: message.id, error: { code: -32603, message: 'boom' } })],
    ['another version', (message, say) => say({ jsonrpc: '1.0', id: message.id, result: { decision: 'allow' } })],
    ['no result', (message, say) => say({ jsonrpc: '2.0', id: message.id, result: null })],
    ['another id', (_, say) => say({ jsonrpc: '2.0', id: 'other', result: { decision: 'allow' } })],
    ['an id that is a number', (_, say) => say({ jsonrpc: '2.0', id: 7, result: { decision: 'allow' } })],
    ['another shape', answer({ decision: 'approve' })],
    ['a word with another case', answer({ decision: 'ALLOW' })],
    ['no JSON', (_, say) => say('allow')],
    ['hanging up', (_message, _say, socket) => socket.destroy()],
    ['no version', (message, say) => say({ id: message.id, result: { decision: 'allow' } })],
    ['a list of answers', (message, say) => say([{ jsonrpc: '2.0', id: message.id, result: { decision: 'allow' } }])],
    ['half an answer', (message, say) => say(`{"jsonrpc":"2.0","id":"${message.id}","result":{"decision":"allow"`)],
    ['its own question back', (message, say) => say(message)],
    ['a result and an error', (message, say) => say({ ...allowed(message), error: { code: -1, message: 'no' } })],
    ['an error that is none', (message, say) => say({ ...allowed(message), error: false })],
    ...(
      [
        'allow',
        true,
        1,
        [],
        {},
        ['allow'],
        { decision: null },
        { decision: ['allow'] },
        { decision: { allow: null } },
        { decision: ' allow' },
        { decision: 'allow', metadata: 'x' },
        { decision: 'modify' },
        { decision: 'defer' },
        { decision: 'defer', retry_after_ms: -1 },
        { decision: 'defer', retry_after_ms: '5' },
        { decision: 'escalate' },
        { action: 'continue' },
        { result: { decision: 'allow' } },
      ] as const
    ).map((result): [string, Script] => [`the result ${JSON.stringify(result)}`, answer(result)]),
  ];
  const allowed = ({ id }: Said) => ({ jsonrpc: '2.0', id, result: { decision: 'allow' } });
  test.each(nonsense)('%s', async (_, script) => {
    expect((await decided(script)).decision).toMatchObject({
      verdict: 'block',
      code: 'harness_failed',
      engine: 'ahp:h',
    });
  });

  test('unless it was asked for advice, or a person is to decide', async () => {
    expect((await decided(() => {}, { on_failure: 'ignore' })).decision.verdict).toBe('allow');
    expect((await decided(() => {}, { on_failure: 'escalate' })).decision.verdict).toBe('escalate');
  });

  test('and so is a harness that is not there, another major version, and a call that is too deep', async () => {
    expect((await upstream({ socket: '/nowhere/h.sock' }).decide(action(), NEVER)).verdict).toBe('block');
    expect((await upstream({ url: 'http://127.0.0.1:1/ahp' }).decide(action(), NEVER)).verdict).toBe('block');
    expect((await upstream({ url: 'ws://127.0.0.1:1/ahp' }).decide(action(), NEVER)).verdict).toBe('block');
    expect((await upstream({ command: ['/nowhere/harness'] }).decide(action(), NEVER)).verdict).toBe('block');
    const other = await decided(answer({ decision: 'allow' }), {}, action(), { ...WELCOME, protocol_version: '3.0' });
    expect(other.decision.verdict).toBe('block');
    const deep = await decided(answer({ decision: 'allow' }), {}, action({ attributes: { depth: 4 } }));
    expect([deep.decision.code, deep.asked]).toEqual(['depth_limit', undefined]);
  });
});

describe('a harness that hangs', () => {
  /** Hangs on its first connection, and is well on every other. */
  async function hanging(config: UpstreamConfig = {}) {
    const hung = new Set<unknown>();
    let connections = 0;
    const { path } = await harness(({ id }, say, socket) => {
      if (!hung.has(socket) && connections > 0) say({ jsonrpc: '2.0', id, result: { decision: 'allow' } });
      else {
        connections += 1;
        hung.add(socket);
      }
    });
    return upstream({ socket: path, ...config });
  }

  test('is given up and reached again by the next question', async () => {
    const engine = await hanging();
    expect(await engine.decide(action(), NEVER)).toMatchObject({ verdict: 'block', code: 'harness_failed' });
    expect(await engine.decide(action(), NEVER)).toMatchObject({ verdict: 'allow' });
  });

  test('costs the questions beside the one that found out a second try, not their answers', async () => {
    const engine = await hanging({ timeout_ms: 1_000 });
    const first = engine.decide(action(), NEVER);
    // The time is what is tested: when the first gives up, the second has half of its timeout left to be asked again.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const beside = engine.decide(action(), NEVER);
    expect(await first).toMatchObject({ verdict: 'block' });
    expect(await beside).toMatchObject({ verdict: 'allow' });
  });

  test('leaves time for the harness after it, and its silence means what the configuration says', async () => {
    const silent = await harness(() => {});
    const well = await harness(answer({ decision: 'block', reason: 'the neighbour says no' }));
    const engines = [
      upstream({ name: 'silent', socket: silent.path, timeout_ms: 10_000, on_failure: 'ignore' }),
      upstream({ name: 'well', socket: well.path, timeout_ms: 10_000 }),
    ];
    const agent = await openAgent({
      rules: '- { id: shell, when: { tool: bash }, then: allow }',
      engines,
      config: { timeout_ms: 2_000 },
    });
    await agent.tell('session_start', {});
    expect(await agent.ask('pre_action', { tool_name: 'bash', arguments: {} })).toMatchObject({
      decision: 'block',
      reason: 'the neighbour says no',
    });
  });

  test.each([
    ['ignore', { decision: 'allow' }],
    ['block', { decision: 'block', reason: expect.stringContaining('gave no decision') }],
    ['escalate', { decision: 'block', reason: expect.stringContaining('stays open') }],
  ] as const)(
    '%s is what happens at the door too, though it would wait longer than the door',
    async (on_failure, said) => {
      const silent = await harness(() => {});
      const agent = await openAgent({
        rules: '- { id: shell, when: { tool: bash }, then: allow }',
        engines: [upstream({ socket: silent.path, timeout_ms: 10_000, on_failure })],
        config: { timeout_ms: 2_000 },
      });
      await agent.tell('session_start', {});
      expect(await agent.ask('pre_action', { tool_name: 'bash', arguments: {} })).toMatchObject(said);
    },
  );
});

describe('a query', () => {
  const query = action({ kind: 'query', tool: 'should_i_proceed', server: 'ahp', arguments: { question: '?' } });

  test.each([
    [{ answer: 'yes' }, { verdict: 'allow', code: 'answered' }],
    [
      { answer: 'no', reason: 'not today' },
      { verdict: 'block', reason: 'not today' },
    ],
    [{ answer: { maybe: true } }, { verdict: 'block' }],
    [{ answer: null }, { verdict: 'block' }],
  ])('%j of the harness', async (said, decision) => {
    const { path, received } = await harness(({ id, method }, say) => {
      if (method === 'ahp/query') say({ jsonrpc: '2.0', id, result: said });
    });
    expect(await upstream({ socket: path }).decide(query, NEVER)).toMatchObject(decision);
    expect(received.at(-1)).toMatchObject({
      method: 'ahp/query',
      params: { query_type: 'should_i_proceed', payload: { question: '?' }, metadata: { via: ['us'] } },
    });
  });

  test('of an agent is put to the harness, and its yes is the answer', async () => {
    const { path } = await harness(({ id }, say) => say({ jsonrpc: '2.0', id, result: { answer: 'yes' } }));
    const agent = await openAgent({ engines: [upstream({ socket: path })] });
    const params = { session_id: 's', agent_id: 'a', query_type: 'should_i_proceed', payload: {} };
    expect(await agent.request('ahp/query', params)).toMatchObject({ answer: 'yes' });
    const round = { ...params, metadata: { via: [`tollbridge@${process.pid}`] } };
    expect(await agent.request('ahp/query', round)).toMatchObject({ answer: 'no' });
  });
});

test('a connection that was cut is made again', async () => {
  let count = 0;
  const { path, received } = await harness((message, say, socket) => {
    count += 1;
    if (count === 1) socket.destroy();
    else say({ jsonrpc: '2.0', id: message.id, result: { decision: 'allow' } });
  });
  const engine = upstream({ socket: path });
  expect((await engine.decide(action(), NEVER)).verdict).toBe('block');
  expect((await engine.decide(action(), NEVER)).verdict).toBe('allow');
  expect(received.filter(({ method }) => method === 'ahp/handshake')).toHaveLength(2);
});

test('what is reported waits in a queue that keeps how runs went, and older harnesses are spared words they do not know', async () => {
  const { path, received } = await harness(() => {});
  const engine = upstream({ socket: path, queue: 2 });
  const say = (type: string, session_id: string) =>
    engine.notify(event(type, {}, { session_id }) as unknown as AhpEvent);
  say('post_action', '1');
  say('run_lifecycle', '2');
  say('post_action', '3');
  say('post_action', '4');
  await engine.flushed();
  await expect.poll(() => received.length).toBe(3);
  expect(received.slice(1).map(({ params }) => params.session_id)).toEqual(['2', '4']);
  const old = await harness(() => {}, { ...WELCOME, protocol_version: '2.3' });
  const older = upstream({ socket: old.path });
  older.notify(event('run_lifecycle', {}) as unknown as AhpEvent);
  older.notify(event('post_action', {}) as unknown as AhpEvent);
  await older.flushed();
  await expect.poll(() => old.received.map(({ params }) => params.event_type)).toEqual([undefined, 'post_action']);
});

describe('relay', () => {
  const socket = async () => {
    const dir = await mkdtemp(join(tmpdir(), 'tollbridge-ahp-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    return join(dir, 'up.sock');
  };

  test('the stricter of two gateways counts', async () => {
    const path = await socket();
    const up = await openAgent({
      rules:
        '- { id: all, when: { kind: tool }, then: allow }\n- { id: no, when: { tool: curl }, then: block, say: upstream says no }',
      config: { hop: 'up' },
    });
    const listening = await serveUnix(path, up.harness, { lineLimit: 1 << 20 }, { log: QUIET });
    onTestFinished(() => listening.close());
    const engine = upstream({ socket: path, hop: 'down', timeout_ms: 5_000 });
    const down = await openAgent({
      rules:
        '- { id: all, when: { kind: tool }, then: allow }\n- { id: rm, when: { tool: rm }, then: block, say: downstream says no }',
      engines: [engine],
      config: { hop: 'down' },
    });
    expect(await down.ask('pre_action', { tool: 'bash', arguments: {} })).toMatchObject({ decision: 'allow' });
    expect(await down.ask('pre_action', { tool: 'curl', arguments: {} })).toMatchObject({
      decision: 'block',
      reason: 'upstream says no',
    });
    expect(await down.ask('pre_action', { tool: 'rm', arguments: {} })).toMatchObject({
      decision: 'block',
      reason: 'downstream says no',
    });
    const asked = (await up.t.all())
      .filter(({ event: kind }) => kind === 'tool.requested')
      .map(({ payload }) => payload.name);
    expect(asked).toEqual(['bash', 'curl']);
  });

  /** A gateway with a harness behind it that answers typed events like this, and everything else with a yes. */
  async function chained(answers: Readonly<Record<string, object>>) {
    const { path, received } = await harness(({ id, params }, say) => {
      if (id !== undefined) say({ jsonrpc: '2.0', id, result: answers[params.event_type] ?? { decision: 'allow' } });
    });
    const engine = upstream({ socket: path, hop: 'down', timeout_ms: 5_000 });
    const rules = '- { id: all, when: { kind: [tool, memory.read, enrich, reason] }, then: allow }';
    const agent = await openAgent({ rules, engines: [engine], config: { hop: 'down' } });
    const asked = (type: string) => received.find(({ params }) => params.event_type === type)?.params;
    return { agent, asked };
  }

  test('the harness behind is told the context and the session of the agent', async () => {
    const { agent, asked } = await chained({});
    const context = { current_task: 'mend the tests', recent_facts: [{ content: 'c', source: 's', confidence: 0.5 }] };
    expect(await agent.ask('pre_action', { tool: 'bash', arguments: {} }, { context })).toMatchObject({
      decision: 'allow',
    });
    const { session_id } = await agent.task();
    expect(asked('pre_action')).toMatchObject({
      session_id,
      agent_id: 'a',
      context,
      metadata: { agent_session_id: 's' },
    });
    // In the log it stands once, beside the act.
    const [proposed] = (await agent.t.all()).filter(({ event: kind }) => kind === 'vendor.tollbridge.decided');
    expect(JSON.stringify(proposed?.payload)).not.toContain('mend the tests');
  });

  test('facts and context of the harness behind reach the agent, and are on record before', async () => {
    const fact = { content: 'tests are in test/', source: 'upstream', confidence: 0.9 };
    const { agent } = await chained({
      memory_recall: { decision: 'allow', injected_facts: [fact] },
      context_perception: {
        decision: 'allow',
        injected_context: { facts: [fact], suggestions: ['read CONTRIBUTING'] },
      },
    });
    const recall = { session_id: 's', query: 'build', memory_type: 'any', max_results: 5, working_directory: '/' };
    expect(await agent.ask('memory_recall', recall)).toMatchObject({ decision: 'allow', injected_facts: [fact] });
    expect(await agent.ask('memory_recall', { ...recall, max_results: 0 })).toMatchObject({ injected_facts: [] });
    const perception = {
      intent: 'Locate',
      target_type: 'function',
      target_name: 'main',
      query: 'main',
      working_directory: '/',
    };
    expect(await agent.ask('context_perception', perception)).toMatchObject({
      decision: 'allow',
      injected_context: { facts: [fact], suggestions: ['read CONTRIBUTING'] },
    });
    expect(JSON.stringify(await agent.t.all())).toContain('tests are in test/');
  });

  test('reasoning is asked about by its kind, without the thought; its no and its hints count', async () => {
    const { agent, asked } = await chained({ reasoning: { decision: 'allow', hints: ['look at the log'] } });
    const thought = { session_id: 's', reasoning_type: 're_act', problem_statement: 'the secret plan' };
    expect(await agent.ask('reasoning', thought)).toEqual({ decision: 'allow', hints: ['look at the log'] });
    expect(asked('reasoning')?.payload).toMatchObject({
      reasoning_type: 're_act',
      problem_statement: expect.stringMatching(/^withheld \(/),
    });
    expect(JSON.stringify(asked('reasoning'))).not.toContain('the secret plan');
    const strict = await chained({ reasoning: { decision: 'block', reason: 'no re_act here' } });
    expect(await strict.agent.ask('reasoning', thought)).toMatchObject({ decision: 'block' });
  });

  test('an event that comes back to its reporter ends there, and an event reported to us is passed on with its route', async () => {
    const { path, received } = await harness(() => {});
    const engine = upstream({ socket: path, hop: 'down', timeout_ms: 5_000 });
    const down = await openAgent({ config: { hop: 'down' } });
    engine.listen(down.t.bridge, { id: 'system:test', kind: 'system', scopes: ['*'] });
    const ran = { tool: 'bash', arguments: {}, result: { success: true } };
    await down.tell('post_action', ran, { metadata: { via: ['down', 'up'] } });
    expect((await down.t.all()).map(({ event: kind }) => kind)).not.toContain('session.created');
    await down.tell('post_action', ran, { metadata: { via: ['far', 'near'] }, depth: 1 });
    await down.tell('session_end', {}, { metadata: { via: ['far', 'near'] }, depth: 1 });
    await expect.poll(() => received.at(-1)?.params.event_type).toBe('session_end');
    const reported = received.slice(1).map(({ params }) => [params.event_type, params.agent_id, params.depth]);
    expect(reported).toEqual([
      ['session_start', 'down', 0],
      ['run_lifecycle', 'a', 1],
      ['run_lifecycle', 'a', 1],
      ['post_action', 'a', 1],
      ['run_lifecycle', 'a', 1],
      ['session_end', 'down', 0],
    ]);
    const ways = new Set(received.slice(1).map(({ params }) => params.metadata.via.join(' ')));
    expect([...ways]).toEqual(['far near down']);
  });

  test('two gateways that ask each other find out', async () => {
    const path = await socket();
    const engine = upstream({ socket: path, hop: 'one', timeout_ms: 5_000 });
    const one = await openAgent({
      rules: '- { id: all, when: { kind: tool }, then: allow }',
      engines: [engine],
      config: { hop: 'one' },
    });
    const listening = await serveUnix(path, one.harness, { lineLimit: 1 << 20 }, { log: QUIET });
    onTestFinished(() => listening.close());
    expect(await one.ask('pre_action', { tool: 'bash', arguments: {} })).toMatchObject({
      decision: 'block',
      reason: 'one is asked about its own question: harnesses go in a circle',
    });
  });
});
