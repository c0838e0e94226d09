/** An outside harness in a whole gateway: notified of what happens, asked again while its people look, and in one place only. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AhpEvent } from '../../../adapters/ahp/translate.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { event, openAgent, type Said } from '../../support/ahp/gateway.ts';
import { harness, type Script, upstream, WELCOME } from '../../support/ahp/harness.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { openTestGateway, says } from '../../support/gateway/test-gateway.ts';

const SYSTEM: Actor = { id: 'system:test', kind: 'system', scopes: ['*'] };
const ALLOW = '- { id: all, when: { kind: tool }, then: allow }';
const allow: Script = ({ id }, say) => id !== undefined && say({ jsonrpc: '2.0', id, result: { decision: 'allow' } });
const reported = (received: readonly Said[]) =>
  received.filter(({ id, method }) => method === 'ahp/event' && id === undefined);

const worker = () =>
  scriptedAgent(async (sink) => {
    const read = { kind: 'tool' as const, tool: 'look', tool_call_id: 'c1', arguments: { at: 'x' } };
    await sink.act(read, async () => ({ status: 'ok', output: 'the secret plan' }));
    const text = { type: 'text', text: 'all done', visibility: 'public' };
    await sink.emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts: [text] } } });
    return { state: 'COMPLETED', summary: 'looked' };
  });

test('a harness is notified of sessions, runs, calls and answers, in the order of the log', async () => {
  const { path, received } = await harness(allow);
  const engine = upstream({ socket: path, timeout_ms: 5_000 });
  const at = await openTestGateway({ agents: [worker()], engines: [engine], rules: ALLOW });
  engine.listen(at.bridge, SYSTEM);
  const { session } = await at.room();
  const { resource } = await at.send('task.submit', { session_id: session, input: says('go') });
  await at.until(resource.id);
  await at.send('session.close', { session_id: session });
  await expect.poll(() => reported(received).at(-1)?.params.event_type).toBe('session_end');
  const said = reported(received).map(({ params }) => [
    params.event_type,
    params.payload.status ?? params.payload.tool ?? null,
  ]);
  expect(said).toEqual([
    ['session_start', null],
    ['run_lifecycle', 'created'],
    ['run_lifecycle', 'executing'],
    ['post_action', 'look'],
    ['post_response', null],
    ['run_lifecycle', 'completed'],
    ['session_end', null],
  ]);
  const post = reported(received).find(({ params }) => params.event_type === 'post_action')?.params;
  // What a call brought is not anyone's to hand on: its hash is enough to recognise it.
  expect(post.payload.result).toEqual({
    status: 'success',
    output_hash: 'sha256:2f2316aa3d667af467d80eb6671ec0431abe385c75eef8c505ee7f711d6d93c0',
  });
  expect(post).toMatchObject({ session_id: session, metadata: { via: ['us'] } });
  expect(reported(received).find(({ params }) => params.event_type === 'post_response')?.params.payload).toEqual({
    response_text: 'all done',
  });
});

test('a run reported to us is reported on as it came: its waiting, its plan and its checks', async () => {
  const { path, received } = await harness(allow);
  const engine = upstream({ socket: path, timeout_ms: 5_000 });
  const rules = '- { id: ask, when: { kind: tool }, then: ask, say: a person decides }';
  const agent = await openAgent({ rules, config: { timeout_ms: 300, settle_ms: 5_000 } });
  engine.listen(agent.t.bridge, SYSTEM);
  const run = { run_id: 'r', session_id: 's', updated_at: 't' };
  const plan = [
    { id: 'one', title: 'look', status: 'completed' },
    { id: 'two', title: 'mend', status: 'skipped', depends_on: ['one'] },
  ];
  const checks = [{ id: 'c', subject: 'tests', status: 'failed' }];
  await agent.tell('run_lifecycle', { ...run, status: 'executing' });
  await agent.tell('task_list', { ...run, tasks: plan });
  expect(await agent.ask('pre_action', { tool: 'bash', arguments: {} })).toMatchObject({ decision: 'block' });
  const [ask] = await agent.t.asks((await agent.task()).id);
  await agent.t.answer(ask!.id, { approved: false, reason: 'no' });
  await agent.tell('run_lifecycle', { ...run, status: 'completed', result_summary: 'nearly' });
  await agent.tell('verification', { ...run, status: 'failed', checks, residual_risks: ['all of it'] });
  await expect.poll(() => reported(received).at(-1)?.params.event_type).toBe('verification');
  const { id } = await agent.task();
  const contracts = reported(received).filter(({ params }) => params.payload.run_id !== undefined);
  expect(contracts.every(({ params }) => params.payload.run_id === id && params.agent_id === 'a')).toBe(true);
  const said = contracts.map(({ params }) => {
    const { run_id: _, session_id: _s, updated_at: _u, ...rest } = params.payload;
    return [params.event_type, rest];
  });
  expect(said).toEqual([
    ['run_lifecycle', { status: 'created' }],
    ['run_lifecycle', { status: 'executing' }],
    ['task_list', { tasks: plan }],
    ['run_lifecycle', { status: 'executing', metadata: { waiting_for: 'authorization' } }],
    ['run_lifecycle', { status: 'executing' }],
    ['run_lifecycle', { status: 'completed', result_summary: 'nearly' }],
    ['verification', { status: 'failed', checks, residual_risks: ['all of it'] }],
  ]);
});

describe('news', () => {
  const BATCHING = {
    ...WELCOME,
    harness_info: { ...WELCOME.harness_info, capabilities: ['batch'] },
    config: { batch_size: 3 },
  };
  const seven = (engine: ReturnType<typeof upstream>) => {
    for (let n = 1; n <= 7; n += 1) engine.notify(event('post_action', { n }) as unknown as AhpEvent);
  };
  const numbers = ({ method, params }: Said) =>
    method === 'ahp/batch' ? params.events.map(({ payload }: Said) => payload.n) : params.payload?.n;

  test('goes in batches as big as the harness takes, where it keeps news from its decisions', async () => {
    const { path, received } = await harness(({ id, method, params }, say) => {
      if (method === 'ahp/batch') {
        say({ jsonrpc: '2.0', id, result: { decisions: params.events.map(() => ({ decision: 'allow' })) } });
      }
    }, BATCHING);
    const engine = upstream({ socket: path, timeout_ms: 5_000, batches_news: true });
    seven(engine);
    await engine.flushed();
    await expect.poll(() => received.length).toBe(4);
    expect(received.slice(1).map(numbers)).toEqual([[1, 2, 3], [4, 5, 6], 7]);
  });

  test('goes one by one where a batch is refused after all, and none is lost', async () => {
    const { path, received } = await harness(({ id, method }, say) => {
      if (method === 'ahp/batch') say({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } });
    }, BATCHING);
    const engine = upstream({ socket: path, timeout_ms: 5_000, batches_news: true });
    seven(engine);
    await engine.flushed();
    await expect.poll(() => received.length).toBe(9);
    expect(received.slice(1).map(numbers)).toEqual([[1, 2, 3], 1, 2, 3, 4, 5, 6, 7]);
  });

  test('goes one by one where nothing is said about batches: a decision handler never sees it', async () => {
    const { path, received } = await harness(() => {}, BATCHING);
    const engine = upstream({ socket: path });
    seven(engine);
    await engine.flushed();
    await expect.poll(() => received.length).toBe(8);
    expect(received.slice(1).every(({ method, id }) => method === 'ahp/event' && id === undefined)).toBe(true);
  });

  test('goes one by one to a harness that does not speak of batches', async () => {
    const { path, received } = await harness(() => {}, { ...BATCHING, harness_info: WELCOME.harness_info });
    const engine = upstream({ socket: path });
    seven(engine);
    await engine.flushed();
    await expect.poll(() => received.length).toBe(8);
  });
});

describe('a defer that means a person is looking', () => {
  /** Defers as often as configured, then says the last word. */
  function deferring(times: number, last: object) {
    let left = times;
    const script: Script = ({ id, params }, say) => {
      if (id === undefined) return;
      const tool = params.payload.tool_name === 'mail';
      const result = !tool
        ? { decision: 'allow' }
        : left-- > 0
          ? { decision: 'defer', reason: 'looking', retry_after_ms: 1 }
          : last;
      say({ jsonrpc: '2.0', id, result });
    };
    return script;
  }
  const mailer = () =>
    scriptedAgent(async (sink) => {
      const mail = { kind: 'tool' as const, tool: 'mail', tool_call_id: 'c1', arguments: {} };
      const came = await sink.act(mail, async () => ({ status: 'ok', output: 'sent' }));
      return { state: 'COMPLETED', summary: came.kind === 'done' ? 'sent' : came.reason };
    });
  async function open(times: number, last: object) {
    const { path, received } = await harness(deferring(times, last));
    const engine = upstream({ socket: path, defer_means: 'approval', timeout_ms: 5_000 });
    const at = await openTestGateway({ agents: [mailer()], engines: [engine], rules: ALLOW });
    engine.listen(at.bridge, SYSTEM);
    onTestFinished(() => engine.close());
    const { session } = await at.room();
    const { resource } = await at.send('task.submit', { session_id: session, input: says('go') });
    const asked = () =>
      received.filter(({ id, params }) => id !== undefined && params.payload?.tool_name === 'mail').length;
    return { at, task: resource.id, asked };
  }
  const summary = async (at: Said, task: string) =>
    (await at.bridge.list(SYSTEM, { object: 'outcome', where: { task_id: task } })).data[0].summary;

  test('asks people here and the harness again, and its yes closes the question', async () => {
    const { at, task, asked } = await open(3, { decision: 'allow' });
    await at.until(task);
    expect(await summary(at, task)).toBe('sent');
    expect(asked()).toBe(4);
    const [receipt] = await at.receipts(task);
    expect(receipt?.approvals?.map(({ actor, decision }: Said) => [actor.id ?? actor, decision])).toEqual([
      ['harness:h', 'approved'],
    ]);
  });

  test('its no closes it too, with its reason', async () => {
    const { at, task } = await open(1, { decision: 'block', reason: 'she said no' });
    await at.until(task);
    expect(await summary(at, task)).toContain('she said no');
  });

  test('someone here may be quicker, and then it is left alone', async () => {
    const { at, task, asked } = await open(1_000_000, { decision: 'block', reason: 'too late' });
    const [ask] = await at.asks(task);
    await at.answer(ask!.id, { approved: true });
    await at.until(task);
    expect(await summary(at, task)).toBe('sent');
    const before = asked();
    await at.send('session.create', { workspace_id: ask!.workspace_id });
    expect(asked() - before).toBeLessThanOrEqual(1);
  });
});

describe('where a harness is', () => {
  test.each([
    [{}, 'say where the harness is with one of url, socket and command; none of them is there'],
    [
      { url: 'http://h', socket: '/s' },
      'say where the harness is with one of url, socket and command; url and socket are there',
    ],
    [
      { url: 'http://h', socket: '/s', command: ['x'] },
      'say where the harness is with one of url, socket and command; url and socket and command are there',
    ],
    [{ url: 'h.example' }, 'h.example is not an http(s) or ws(s) address'],
    [{ url: 'http://h', api_key: 'a', token: 'b' }, 'the harness takes an api_key or a token, not both'],
  ])('is said once: %j', (config, message) => {
    expect(() => upstream(config)).toThrow(message);
  });
});
