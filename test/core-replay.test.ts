/** Replay: the record lived through again, with nothing done, nobody asked, and every difference accounted for. */

import { join } from 'node:path';
import fc from 'fast-check';
import Database from 'libsql';
import { describe, expect, test } from 'vitest';
import type { AskRecord } from '../src/model/asks.ts';
import type { CommandBody } from '../src/model/commands.ts';
import type { CoreEvent } from '../src/model/events.ts';
import { Receipt } from '../src/model/receipt.ts';
import type { Quota, Task } from '../src/model/resources.ts';
import type { Json, JsonObject } from '../src/model/schema.ts';
import { check } from '../src/model/validate.ts';
import type { Row, Store, ToolBackend } from '../src/ports.ts';
import { hashOf } from '../src/receipt/canonical-json.ts';
import { all, ana, bo, faultOf, kinds, type Life, type LifeOptions, openLife, path, until } from './life/house.ts';
import { openMortal } from './life/mortal.ts';
import { sameReceipt, sameText } from './life/same-receipt.ts';
import { latch, type Script, scripted, stopped, text, toolbox } from './life/script.ts';

const RULES = `
- { id: ordinary, then: allow }
- { id: careful, when: { kind: prompt, tool: careful }, then: ask, say: think first }
- { id: people, when: { kind: tool, tool: ask* }, then: ask, say: a person decides }
- { id: hasty, when: { kind: tool, tool: quick }, then: ask, expires: 30ms, say: a person decides quickly }
- { id: never, when: { kind: [tool, memory.write], tool: no* }, then: block, say: not here }
- { id: mended, when: { kind: tool, tool: mend* }, then: modify, set: { safe: true }, say: made safe }
- { id: later, when: { kind: tool, tool: later* }, then: defer, retry_after: 1ms, say: not now }
`;
const LONG = 'a long story '.repeat(40);

/** Everything an agent can do, some of it at once. */
const everything: Script = async ({ sink }) => {
  await sink.emit(text('let me see'));
  await sink.emit({
    event: 'span.completed',
    payload: {
      span: { id: 's1', kind: 'llm', call_id: 'main:1' },
      model: { provider: 'acme', model: 'large' },
      response: { text: 'use the tools' },
      secret_names: ['ACME_LOGIN'],
    },
  });
  await sink.emit({
    event: 'vendor.tollbridge.usage',
    payload: { provider: 'acme', model: 'large', usd_micros: 1500, input_tokens: 10, output_tokens: 20 },
  });
  await sink.emit({
    event: 'vendor.tollbridge.message_delta',
    payload: { message_id: 'm', role: 'assistant', text: 'h' },
  });
  await sink.emit({ event: 'com.example.mood', payload: { mood: 'good' } });
  await sink.artifact({ kind: 'file', name: 'a.txt', mime_type: 'text/plain', bytes: Buffer.from('a file') });
  const call = (tool_call_id: string, tool: string, more: JsonObject = {}) =>
    sink.act({ kind: 'tool', tool, tool_call_id, arguments: { n: tool_call_id, ...more } });
  await call('w1', 'write');
  await call('f1', 'fail');
  await call('t1', 'throw');
  await call('b1', 'no');
  await call('m1', 'mend');
  await call('l1', 'later');
  await call('big', 'write', { LONG });
  await call('long', 'long');
  // Held by us though no tool of ours: the caller brings what it does.
  await sink.act({ kind: 'fs.write', tool: 'edit', tool_call_id: 'h1', target: '/tmp/x' }, async () => ({
    status: 'ok',
    output: 'written',
    effects: [{ type: 'fs_write', path: '/tmp/x', operation: 'create', after_sha256: null }],
    usage: { provider: 'acme', usd_micros: 3 },
    artifacts: [{ kind: 'patch', mime_type: 'text/x-diff', bytes: Buffer.from('+x') }],
  }));
  await sink.emit({ event: 'vendor.tollbridge.checkpoint', payload: { checkpoint_id: 'half', value: { at: 1 } } });
  await Promise.all([
    call('p1', 'slow'),
    call('p2', 'write'),
    call('p3', 'ask'),
    call('p4', 'ask'),
    call('p5', 'fail'),
  ]);
  await call('q1', 'quick');
  const asked = (tool_call_id: string, tool: string) =>
    sink.ask({
      kind: 'approval',
      action: { kind: 'tool', tool, tool_call_id, arguments: { n: tool_call_id } },
      takesArguments: true,
    });
  await asked('a1', 'shell');
  await sink.emit({
    event: 'tool.completed',
    payload: { tool_call_id: 'a1', name: 'shell', status: 'ok', output: 'fine' },
  });
  await asked('a2', 'ask');
  await asked('a3', 'no');
  await asked('a4', 'mend');
  await sink.ask({ kind: 'approval', action: { kind: 'memory.write', tool: 'no' } }); // about no call in particular
  const colour = await sink.ask({
    kind: 'input',
    key: 'colour',
    question: 'Which colour?',
    schema: { type: 'string' },
  });
  await sink.emit({ event: 'tool.requested', payload: { tool_call_id: 'o1', name: 'grep', kind: 'tool', input: {} } });
  await sink.emit({
    event: 'tool.failed',
    payload: { tool_call_id: 'o1', name: 'grep', status: 'error', error: 'none' },
  });
  await sink.emit({
    event: 'agent.handoff',
    payload: { target_agent: 'peer', task_id: 'their-task', status: 'completed' },
  });
  await sink.emit(text(`${LONG} ${colour.kind}`));
  return { state: 'COMPLETED', summary: 'did everything' };
};

const tools = () =>
  toolbox('box', {
    write: undefined,
    no: undefined,
    mend: undefined,
    ask: undefined,
    quick: undefined,
    later: undefined,
    fail: () => ({ status: 'error', output: { tried: true }, error: 'it did not work' }),
    throw: () => {
      throw new Error('it blew up');
    },
    long: () => ({ status: 'ok', output: LONG }),
    slow: async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { status: 'ok', output: 'at last' };
    },
  });

interface Played {
  readonly life: Life;
  readonly task: Task;
  readonly session: string;
  readonly box: ReturnType<typeof tools>;
  readonly agent: ReturnType<typeof scripted>;
}

/** Plays a script to its end. People say yes, except to `p4` and to whatever runs out. */
async function play(
  script: Script,
  options: LifeOptions = {},
  body: Partial<CommandBody<'task.submit'>> = {},
): Promise<Played> {
  const box = tools();
  const agent = scripted(body.agent ?? 'one', script);
  const life = await openLife({
    rules: RULES,
    tools: [box],
    settings: { inlineLimit: 300, deferTries: 2, graceMs: 30 },
    ...options,
    backends: [agent],
  });
  const session = await life.session();
  const { id } = await life.submit(session, body);
  await until(async () => {
    for (const ask of await life.openAsks()) await sayYes(life, ask);
    return ['COMPLETED', 'FAILED', 'CANCELED'].includes((await life.task(id)).status);
  });
  return { life, task: await life.task(id), session, box, agent };
}

async function sayYes(life: Life, { id, kind, tool_call_id, action }: AskRecord): Promise<void> {
  if (action.tool === 'quick') return;
  const body = kind === 'input' ? { value: 'red' } : { approved: tool_call_id !== 'p4', reason: 'because' };
  await life.answer(id, body).catch(() => {});
}

async function replay(life: Life, taskId: string, body: Partial<CommandBody<'task.replay'>> = {}): Promise<Task> {
  const { resource } = await life.do('task.replay', { task_id: taskId, ...body });
  await life.house.idle();
  return await life.task(resource.id);
}

/** Brought about anew by the replay's own life, or following from what is told again; everything else is told again. */
const OWN_LIFE =
  /^(task\.(submitted|started|completed|failed|canceled)|receipt\.issued|session\.message_appended|vendor\.tollbridge\.(quota_used|recovered))$/;

/** Each recorded event is told again once, in the order of the record, marked, and saying the same. */
async function expectFaithful(life: Life, source: Task, again: Task, from = 0): Promise<void> {
  const before = (await life.events(source.id)).slice(from);
  const after = await life.events(again.id);
  const own = new Set(['task.submitted', 'task.started', 'replay.started', 'replay.completed']);
  const told = after.filter(
    ({ event }, at) => !own.has(event) && at < after.findLastIndex((e) => e.event === 'replay.completed'),
  );
  for (const event of told) {
    expect(event, event.event).toMatchObject({
      replayed: true,
      replay: { source_task_id: source.id, replay_task_id: again.id, mode: again.metadata.replay_mode },
    });
  }
  const originals = told.map(({ replay: mark }) => mark?.original_event_id).filter((id) => id);
  const wanted = before.filter(({ event }) => !OWN_LIFE.test(event));
  const settled = /^task\.(auth_required|input_required|status_changed)$/;
  expect(originals.filter((id) => wanted.some((event) => event.id === id)).toSorted()).toEqual(
    wanted.map(({ id }) => id).toSorted(),
  );
  const unnamed = told.filter(({ replay: mark }) => !mark?.original_event_id);
  expect(kinds(unnamed)).toEqual([]);
  // In order, but for how a task waits: that follows from the rest.
  const inOrder = told
    .filter(({ event }) => !settled.test(event))
    .map(({ replay: mark }) => String(mark?.original_event_id));
  expect(inOrder).toEqual(inOrder.toSorted());
  const byId = new Map(before.map((event) => [event.id, event]));
  for (const event of told) {
    const original = byId.get(String(event.replay?.original_event_id));
    if (!original || event.event === 'replay.event_replayed' || settled.test(event.event)) continue;
    expect(event.event).toBe(original.event);
    expect(event.actor ?? null).toBe(original.actor ?? null);
    expect(plain(event.payload)).toEqual(plain(original.payload));
  }
}

/** A payload without names that are new in every run. */
function plain(payload: JsonObject): Json {
  const { ask_id: _ask, at: _at, ask, action, message, ...rest } = payload as Record<string, JsonObject>;
  const { kind, tool, tool_call_id, arguments: args } = (action ?? {}) as JsonObject;
  const { question, kind: asked, tool_call_id: about, action: shown, schema } = (ask ?? {}) as JsonObject;
  return JSON.parse(
    JSON.stringify({
      ...rest,
      ...(action && { action: { kind, tool, tool_call_id, args } }),
      ...(ask && { ask: { question, asked, about, shown: (shown as JsonObject)?.tool, schema } }),
      ...(message && { message: { role: message.role, parts: message.parts } }),
      expires_at: null,
      ...(rest.decision && { decision: { ...(rest.decision as JsonObject), ask: null } }),
    }),
  ) as Json;
}

describe('an exact replay', () => {
  test('lives through everything again and does nothing', async () => {
    const { life, task, session, box, agent } = await play(everything);
    expect(task.status).toBe('COMPLETED');
    const [ran, starts] = [box.ran.length, agent.starts.length];
    const messages = await life.messages(session);
    const artifacts = await life.house.store.list({ object: 'artifact', limit: 200 });
    const again = await replay(life, task.id, { reason: 'to see' });
    expect(again).toMatchObject({
      status: 'COMPLETED',
      parent_task_id: task.id,
      created_by: 'ana',
      session_id: session,
    });
    expect([box.ran.length, agent.starts.length]).toEqual([ran, starts]);
    expect(await life.messages(session)).toEqual(messages);
    expect(await life.house.store.list({ object: 'artifact', limit: 200 })).toEqual(artifacts);
    expect(await life.openAsks()).toEqual([]);
    await expectFaithful(life, task, again);
    const events = await life.events(again.id);
    expect(kinds(events.slice(0, 3))).toEqual(['task.submitted', 'task.started', 'replay.started']);
    expect(events[2]!.payload).toEqual({ source_task_id: task.id, mode: 'exact', overrides: [], reason: 'to see' });
    expect(kinds(events.slice(-3))).toEqual(['replay.completed', 'receipt.issued', 'task.completed']);
    expect(kinds(events)).not.toContain('vendor.tollbridge.quota_used');
    // Readers go on from the new ids.
    for (const event of await all(life.house.bridge.events(ana, { stream: { of: 'task', id: again.id } }))) {
      if (event.replay) expect(event.replay.replay_cursor).toBe(event.id);
    }
  });

  test('its receipt says what was replayed, from what, and claims nothing of its own', async () => {
    const { life, task } = await play(everything);
    const source = await life.receipt(task.id);
    const again = await replay(life, task.id);
    const receipt = await life.receipt(again.id);
    check(Receipt, receipt, 'the receipt');
    const recorded = await life.events(task.id);
    expect(receipt).toMatchObject({
      subject: { object: 'replay_segment', id: again.id },
      lifecycle: { ...source.lifecycle },
      issued_at: source.lifecycle.completed_at,
      deltas: [],
      redactions: [],
      cost: { currency: 'USD', total: 0, provider_breakdown: [] },
      autonomy_budget: { consumed: { usd: 0, input_tokens: 0, output_tokens: 0, tool_calls: 0, wall_time_ms: 0 } },
      side_effects: { fs_writes: [], network_egress: [], tool_calls: [], a2a_handoffs: [] },
      final_artifacts: source.final_artifacts,
      trust: source.trust,
      metadata: { source: 'tollbridge', source_task_id: task.id, replay_mode: 'exact' },
    });
    expect(receipt).not.toHaveProperty('approvals');
    expect(Object.keys(receipt.metadata!)).toHaveLength(3);
    expect(receipt.model_route.chosen_model).toEqual({ provider: 'acme', model: 'large' });
    expect(receipt.replay_input).toEqual({
      determinism: 'byte_deterministic',
      materials: [
        {
          kind: 'event_log',
          id: `event_log_${task.id}`,
          content_type: 'application/jsonl',
          sha256: hashOf(recorded.map((event) => hashOf(event))),
          metadata: { task_id: task.id },
        },
      ],
    });
    const verdict = await life.do('receipt.verify', { receipt_id: receipt.receipt_id });
    expect(verdict.details).toMatchObject({ valid: true });
  });

  test('twice gives the same receipt, also after the persona changed, and a replay can be replayed', async () => {
    const { life, task } = await play(everything);
    const [one, two] = [await replay(life, task.id), await replay(life, task.id)];
    expect(sameText(await life.receipt(one.id))).toBe(sameText(await life.receipt(two.id)));
    expect(sameReceipt(await life.receipt(one.id), await life.receipt(task.id))).toBe(false);
    const third = await replay(life, one.id);
    expect(third).toMatchObject({ status: 'COMPLETED', parent_task_id: one.id });
    await expectFaithful(life, one, third);
    const fourth = await replay(life, one.id);
    expect(sameText(await life.receipt(third.id))).toBe(sameText(await life.receipt(fourth.id)));
  });

  test('of a persona that has since been given more or less rope', async () => {
    const life = await openLife({ backends: [scripted('one', async ({ sink }) => sink.emit(text('hi')))] });
    const persona = await life.do('resource.create', {
      object: 'persona',
      body: {
        name: 'p',
        version: '1',
        entry_workflow: 'one',
        description: '',
        autonomy_tier: 'suggest',
        receipt_policy: 'required',
      },
    });
    const { id } = await life.submit(await life.session(), { persona_id: persona.resource.id });
    await life.ended(id);
    const one = await replay(life, id);
    await life.do('resource.update', {
      object: 'persona',
      id: persona.resource.id,
      body: { autonomy_tier: 'act_auto' },
    });
    const two = await replay(life, id);
    expect((await life.receipt(two.id)).trust).toMatchObject({ start_tier: 'suggest', end_tier: 'suggest' });
    expect(sameText(await life.receipt(one.id))).toBe(sameText(await life.receipt(two.id)));
  });

  test('charges no quota', async () => {
    const life = await openLife({
      rules: RULES,
      tools: [tools()],
      backends: [
        scripted('one', async ({ sink }) => {
          await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c' });
          await sink.emit({ event: 'vendor.tollbridge.usage', payload: { usd_micros: 5, input_tokens: 7 } });
        }),
      ],
    });
    const limits = { tool_calls: 10, tasks: 10, usd_micros: 1000, input_tokens: 1000 };
    const quota = await life.do('resource.create', { object: 'quota', body: { scope: 'workspace', limits } });
    const workspace_id = await life.workspace({ quota_id: quota.resource.id });
    const { id } = await life.submit(await life.session({ workspace_id }));
    await life.ended(id);
    const usage = async () => (await life.view<Quota & Row>('quota', quota.resource.id)).usage;
    const before = await usage();
    expect(before).toMatchObject({ tool_calls: 1, tasks: 1 });
    const again = await replay(life, id);
    expect(again.status).toBe('COMPLETED');
    expect(await usage()).toEqual(before);
  });

  test('is refused while the source still runs, and by whoever may not see it', async () => {
    const life = await openLife({ backends: [scripted('one', ({ signal }) => stopped(signal))] });
    const { id } = await life.submit(await life.session());
    expect(await faultOf(replay(life, id))).toMatchObject({ kind: 'conflict' });
    await life.do('task.cancel', { task_id: id });
    const stranger = { ...bo, tenant_id: 'elsewhere' };
    const asked = life.do('task.replay', { task_id: id }, { actor: stranger });
    expect(await faultOf(asked)).toMatchObject({ kind: 'not_found' });
    expect((await replay(life, id)).status).toBe('CANCELED');
  });

  test('the same key is the same replay', async () => {
    const { life, task } = await play(async () => undefined);
    const ask = () => life.do('task.replay', { task_id: task.id }, { idempotency: { key: 'k' } });
    const [one, two] = [await ask(), await ask()];
    expect(two).toMatchObject({ repeated: true, resource: { id: one.resource.id } });
    await life.house.idle();
    expect(await life.house.store.receipts({ task: one.resource.id })).toHaveLength(1);
  });
});

describe('whatever became of the work', () => {
  test('failed', async () => {
    const { life, task } = await play(async ({ sink }) => {
      await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c' });
      throw new Error('lost the thread');
    });
    const again = await replay(life, task.id);
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'agent_failed', message: 'lost the thread' } });
    await expectFaithful(life, task, again);
    expect((await life.receipt(again.id)).lifecycle).toEqual((await life.receipt(task.id)).lifecycle);
  });

  test('with questions whoever asked took back', async () => {
    const { life, task } = await play(async ({ sink }) => {
      const action = { kind: 'tool', tool: 'ask', tool_call_id: 'c' } as const;
      const withdrawn = AbortSignal.abort();
      await sink.ask({ kind: 'approval', action, withdrawn });
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'd' }, undefined, withdrawn);
      await sink.ask({ kind: 'input', key: 'k', question: '?', withdrawn });
      return { state: 'COMPLETED' };
    });
    const again = await replay(life, task.id);
    await expectFaithful(life, task, again);
    expect(await life.openAsks()).toEqual([]);
  });

  test('canceled, with calls running, asked about and put off, and a question open', async () => {
    const going = latch();
    const box = toolbox('box', { ask: undefined, later: undefined, hang: () => new Promise(() => {}) });
    const life = await openLife({
      rules: RULES,
      tools: [box],
      settings: { graceMs: 20, deferTries: 1000 },
      backends: [
        scripted('one', async ({ sink, signal }) => {
          for (const tool of ['hang', 'ask', 'later']) {
            void sink.act({ kind: 'tool', tool, tool_call_id: tool }).catch(() => {});
          }
          void sink.ask({ kind: 'input', key: 'k', question: '?' }).catch(() => {});
          await until(async () => (await life.openAsks()).length === 2 && box.ran.length === 1);
          going.open();
          await stopped(signal);
        }),
      ],
    });
    const { id } = await life.submit(await life.session());
    await going.opened;
    await life.do('task.cancel', { task_id: id });
    const task = await life.task(id);
    const again = await replay(life, id);
    expect(again).toMatchObject({ status: 'CANCELED', completed_at: null });
    await expectFaithful(life, task, again);
    expect(await life.openAsks()).toEqual([]);
    expect(sameText(await life.receipt(again.id))).toBe(sameText(await life.receipt((await replay(life, id)).id)));
    expect(box.ran).toHaveLength(1);
  });

  test('which is itself canceled while it runs: it has one end, and nothing went wrong', async () => {
    const errors: string[] = [];
    const logger = { info() {}, warn() {}, error: (_: object, message: string) => void errors.push(message) };
    const chatty = scripted('one', async ({ sink }) => {
      for (let n = 0; n < 300; n += 1) await sink.emit(text(`line ${n}`));
    });
    const life = await openLife({ backends: [chatty], logger });
    const { id } = await life.submit(await life.session());
    await life.ended(id);
    const again = await life.do('task.replay', { task_id: id });
    await life.seen(again.resource.id, 'agent.message');
    await life.do('task.cancel', { task_id: again.resource.id });
    await life.house.idle();
    const events = await life.events(again.resource.id);
    expect((await life.task(again.resource.id)).status).toBe('CANCELED');
    expect(path(events).filter((state) => state === 'CANCELED')).toHaveLength(1);
    expect(events.length).toBeLessThan(300);
    expect(await life.receipt(again.resource.id)).toMatchObject({ lifecycle: { final_state: 'CANCELED' } });
    expect(errors).toEqual([]);
  });

  test('approved before it began, and asked about things that are no call', async () => {
    const { life, task } = await play(async ({ sink }) => sink.emit(text('thank you')), {}, { agent: 'careful' });
    expect(task.status).toBe('COMPLETED');
    const again = await replay(life, task.id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(life, task, again);
  });

  test('refused before it began', async () => {
    const life = await openLife({ rules: RULES, backends: [scripted('careful', async () => undefined)] });
    const { id } = await life.submit(await life.session());
    await life.answer((await life.ask(id)).id, { approved: false, reason: 'no need' });
    const task = await life.ended(id);
    expect(task).toMatchObject({ status: 'FAILED', failure: { code: 'policy_violation' } });
    const again = await replay(life, id);
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'policy_violation' } });
    await expectFaithful(life, task, again);
  });

  test('approved, and then void because the tool had changed', async () => {
    let description = 'sends';
    const sender: ToolBackend = {
      ...toolbox('box', { ask: undefined }),
      list: async () => (await toolbox('box', { ask: undefined }).list()).map((skill) => ({ ...skill, description })),
    };
    const life = await openLife({
      rules: RULES,
      tools: [sender],
      backends: [
        scripted('one', async ({ sink }) => sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c' }).then(() => {})),
      ],
    });
    const { id } = await life.submit(await life.session());
    const ask = await life.ask(id);
    description = 'sends everything';
    await life.answer(ask.id, { approved: true });
    const task = await life.ended(id);
    expect(kinds(await life.events(id)).filter((kind) => kind === 'tool.denied')).toHaveLength(1);
    const again = await replay(life, id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(life, task, again);
  });

  test('done outside: proposed, held up, answered later, reported', async () => {
    const life = await openLife({ rules: RULES });
    const { id } = await life.submit(await life.session(), { agent: 'none' });
    const action = { kind: 'tool' as const, tool: 'ask', tool_call_id: 'x', arguments: { n: 1 } };
    const open = await life.do('action.propose', { task_id: id, action, wait_ms: 0 });
    expect(open.decision).toMatchObject({ verdict: 'escalate' });
    const [ask] = await life.openAsks();
    await life.answer(ask!.id, { approved: true });
    const told = await life.do('action.propose', { task_id: id, action, wait_ms: 0 });
    expect(told.decision).toMatchObject({ verdict: 'allow' });
    // Asked, answered, and never taken up.
    const other = { ...action, tool_call_id: 'y' };
    await life.do('action.propose', { task_id: id, action: other, wait_ms: 0 });
    await life.answer((await life.openAsks())[0]!.id, { approved: true });
    await life.do('task.report', {
      task_id: id,
      facts: [{ event: 'tool.completed', payload: { tool_call_id: 'x', name: 'ask', status: 'ok', output: 1 } }],
      end: { state: 'COMPLETED' },
    });
    const task = await life.task(id);
    const again = await replay(life, id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(life, task, again);
    // Nobody can report on a replay.
    const { resource } = await life.do('task.replay', { task_id: id });
    expect(await faultOf(life.do('task.report', { task_id: resource.id, end: { state: 'FAILED' } }))).toMatchObject({
      kind: 'conflict',
    });
    await life.house.idle();
  });

  test('interrupted by a crash and gone on with', async () => {
    const agents = () => [scripted('one', everything, { resume: true })];
    const options = { rules: RULES, settings: { inlineLimit: 300, deferTries: 2, sweepMs: 50 } };
    const first = await openMortal({ ...options, backends: agents(), tools: [tools()] });
    const { id } = await first.submit(await first.session());
    const struck = first.doom({ commit: 26, when: 'after' });
    const answering = { going: true };
    void (async () => {
      while (answering.going) {
        for (const ask of await first.openAsks()) await sayYes(first as unknown as Life, ask);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    await struck;
    answering.going = false;
    await first.die();
    const life = await openLife({ ...options, dir: first.dir, backends: agents(), tools: [tools()] });
    await until(async () => {
      for (const ask of await life.openAsks()) await sayYes(life, ask);
      return (await life.task(id)).status === 'COMPLETED';
    });
    const again = await replay(life, id);
    expect(again).toMatchObject({ status: 'COMPLETED' });
    const diverged = (await life.events(again.id)).filter(({ event }) => event === 'replay.failed');
    expect(diverged).toEqual([]);
    expect(sameText(await life.receipt(again.id))).toBe(sameText(await life.receipt((await replay(life, id)).id)));
  });
});

describe('questions of a replay', () => {
  test('are nobody else’s to answer, and are gone when it ends', async () => {
    const tries: string[] = [];
    let life: Life | undefined;
    const meddle = (store: Store): Store => ({
      ...store,
      async commit(unit) {
        const committed = await store.commit(unit);
        for (const { event, replayed, payload } of committed.events) {
          if (!replayed || event !== 'vendor.tollbridge.ask_opened') continue;
          const { id, kind } = payload.ask as unknown as AskRecord;
          const body = kind === 'input' ? { value: 'blue' } : { approved: false };
          tries.push((await faultOf(life!.answer(id, body, bo))).kind);
        }
        return committed;
      },
    });
    const played = await play(everything, { replace: { store: meddle } });
    life = played.life;
    const again = await replay(life, played.task.id);
    expect(again.status).toBe('COMPLETED');
    expect(tries.length).toBeGreaterThan(4);
    expect(new Set(tries)).toEqual(new Set(['permission_denied']));
    expect(await life.openAsks()).toEqual([]);
    await expectFaithful(life, played.task, again);
  });
});

describe('overrides', () => {
  async function recorded() {
    const played = await play(everything);
    const events = await played.life.events(played.task.id);
    const of = (kind: string, call?: string) =>
      events.find(({ event, payload }) => event === kind && (!call || payload.tool_call_id === call)) as CoreEvent;
    return { ...played, events, of };
  }
  const value = { text: 'something else' };

  test('of every kind: the answer changes, and the receipt says how', async () => {
    const { life, task, of } = await recorded();
    const file = await life.do(
      'artifact.register',
      { kind: 'other', mime_type: 'application/json', visibility: 'receipt_only' },
      { bytes: Buffer.from(JSON.stringify(value)) },
    );
    const again = await replay(life, task.id, {
      mode: 'with_overrides',
      reason: 'what if',
      override: {
        'llm:main:1': { kind: 'llm_provider_response', value, reason: 'another model' },
        'mcp:box:w1': { kind: 'mcp_tool_return', value: null },
        'host:fail:f1': { kind: 'tool_result', artifact_id: file.resource.id },
        'host:edit:h1': { kind: 'host_fact', value: 'not written', sha256: hashOf('not written') },
        'time:started_at': { kind: 'time', value: '2026-04-25T19:16:14Z' },
        [`event:${of('com.example.mood').id}`]: { kind: 'event_payload', value: { mood: 'bad' } },
        [`event:${of('agent.handoff').id}`]: { kind: 'event_payload', value: null },
        'checkpoint:half': { kind: 'checkpoint_value', value: { at: 2 } },
        'secret:ACME_LOGIN': { kind: 'secret_value', value: 'hunter2-hunter2', reason: 'rotated' },
      },
    });
    expect(again.status).toBe('COMPLETED');
    const receipt = await life.receipt(again.id);
    check(Receipt, receipt, 'the receipt');
    const delta = (
      key: string,
      path: string,
      event: CoreEvent,
      before: Json | undefined,
      after: Json | undefined,
      reason = 'what if',
    ) => ({
      delta_id: `delta_${key.replace(/[^A-Za-z0-9]+/g, '_')}`,
      operation: before === undefined ? 'add' : after === null ? 'remove' : 'replace',
      path,
      override_key: key,
      event_id: event.id,
      before_sha256: before === undefined ? null : hashOf(before),
      after_sha256: after === null || after === undefined ? null : hashOf(after),
      reason,
    });
    const material = (key: string) => `/replay_input/materials/${key}`;
    const [mood, handoff, half] = [of('com.example.mood'), of('agent.handoff'), of('vendor.tollbridge.checkpoint')];
    const output = (call: string, kind = 'tool.completed') => of(kind, call).payload.output;
    // In the order of the request.
    expect(receipt.deltas).toEqual([
      delta(
        'llm:main:1',
        material('llm:main:1'),
        of('span.completed'),
        { text: 'use the tools' },
        value,
        'another model',
      ),
      delta('mcp:box:w1', material('mcp:box:w1'), of('tool.completed', 'w1'), output('w1'), null),
      {
        ...delta('host:fail:f1', material('host:fail:f1'), of('tool.failed', 'f1'), output('f1', 'tool.failed'), value),
        artifact_id: file.resource.id,
      },
      delta('host:edit:h1', material('host:edit:h1'), of('tool.completed', 'h1'), 'written', 'not written'),
      delta(
        'time:started_at',
        '/lifecycle/started_at',
        of('task.started'),
        of('task.started').created_at,
        '2026-04-25T19:16:14Z',
      ),
      delta(`event:${mood.id}`, material(`event:${mood.id}`), mood, mood.payload, { mood: 'bad' }),
      delta(`event:${handoff.id}`, material(`event:${handoff.id}`), handoff, handoff.payload, null),
      delta('checkpoint:half', material('checkpoint:half'), half, { at: 1 }, { at: 2 }),
      delta('secret:ACME_LOGIN', material('secret:ACME_LOGIN'), of('span.completed'), undefined, undefined, 'rotated'),
    ]);
    expect(receipt.deltas!.map(({ delta_id }) => delta_id).slice(0, 2)).toEqual([
      'delta_llm_main_1',
      'delta_mcp_box_w1',
    ]);
    expect(receipt.lifecycle.started_at).toBe('2026-04-25T19:16:14Z');
    expect(receipt.replay_input.materials.slice(1).map(({ kind, id }) => [kind, id])).toEqual([
      ['llm_provider_response', 'llm:main:1'],
      ['mcp_tool_return', 'mcp:box:w1'],
      ['host_fact', 'host:fail:f1'],
      ['host_fact', 'host:edit:h1'],
      ['event_log', `event:${mood.id}`],
      ['event_log', `event:${handoff.id}`],
      ['event_log', 'checkpoint:half'],
    ]);
    // A secret leaves no trace of itself, not even a hash.
    expect(JSON.stringify(receipt)).not.toContain(hashOf('hunter2-hunter2').slice(7));

    const events = await life.events(again.id);
    const told = (kind: string, call?: string) =>
      events.find(({ event, payload }) => event === kind && (!call || payload.tool_call_id === call)) as CoreEvent;
    expect(told('span.completed').payload.response).toEqual(value);
    expect(told('tool.completed', 'w1').payload.output).toBeNull();
    expect(told('tool.failed', 'f1').payload).toMatchObject({ output: value, status: 'error' });
    expect(told('tool.completed', 'h1').payload.output).toBe('not written');
    expect(told('com.example.mood').payload).toEqual({ mood: 'bad' });
    expect(told('agent.handoff')).toBeUndefined();
    expect(told('vendor.tollbridge.checkpoint').payload.value).toEqual({ at: 2 });
    // Only what an override changed carries its key.
    expect(told('tool.completed', 'w1').replay).toMatchObject({
      original_event_id: of('tool.completed', 'w1').id,
      override_key: 'mcp:box:w1',
      receipt_delta_id: 'delta_mcp_box_w1',
    });
    expect(told('tool.completed', 'p2').replay).not.toHaveProperty('override_key');
    const keys = events.flatMap(({ replay: mark }) => mark?.override_key ?? []);
    expect(keys).toHaveLength(new Set(keys).size);
  });

  test('the same overrides give the same receipt, other ones do not', async () => {
    const { life, task } = await recorded();
    const run = async (words: string) => {
      const override = { 'llm:main:1': { kind: 'llm_provider_response' as const, value: words } };
      return await life.receipt((await replay(life, task.id, { mode: 'with_overrides', override })).id);
    };
    const [one, two, three] = [await run('a'), await run('a'), await run('b')];
    expect(sameReceipt(one, two)).toBe(true);
    expect(sameReceipt(one, three)).toBe(false);
  });

  test('of a decision: what was allowed is refused, and nothing follows from the call', async () => {
    const { life, task, events } = await recorded();
    const ruling = events.find(
      ({ event, payload }) => event.endsWith('.decided') && (payload.action as JsonObject).tool_call_id === 'w1',
    )!;
    const decision = { verdict: 'block', reason: 'a stricter rule', engine: 'cedar' };
    const again = await replay(life, task.id, {
      mode: 'with_overrides',
      override: {
        [`event:${ruling.id}`]: { kind: 'event_payload', value: { ...ruling.payload, decision } as JsonObject },
      },
    });
    expect(again.status).toBe('COMPLETED');
    const told = (await life.events(again.id)).filter(
      ({ event, payload }) => event.startsWith('tool.') && payload.tool_call_id === 'w1',
    );
    expect(told.map(({ event }) => event).slice(0, 2)).toEqual(['tool.requested', 'tool.denied']);
  });

  test('what is wrong with a request is said by name', async () => {
    const { life, task, of } = await recorded();
    const llm = { kind: 'llm_provider_response' as const, value: 1 };
    const wrong: [Partial<CommandBody<'task.replay'>>, string, string][] = [
      [{ override: { 'llm:main:1': llm } }, 'invalid_request', '/override'],
      [{ mode: 'with_overrides' }, 'invalid_request', '/override'],
      [{ mode: 'with_overrides', override: {} }, 'invalid_request', '/override'],
      [{ mode: 'from_checkpoint' }, 'invalid_request', '/checkpoint_id'],
      [
        { mode: 'with_overrides', override: { 'llm:main:1': { kind: 'llm_provider_response' } } },
        'invalid_request',
        '/override/llm:main:1',
      ],
      [
        { mode: 'with_overrides', override: { 'llm:main:1': { ...llm, artifact_id: 'a' } } },
        'invalid_request',
        '/override/llm:main:1',
      ],
      [
        { mode: 'with_overrides', override: { 'llm:main:1': { ...llm, kind: 'time' } } },
        'invalid_request',
        '/override/llm:main:1',
      ],
      [
        { mode: 'with_overrides', override: { 'mcp:box:w1': { ...llm, kind: 'secret_value' } } },
        'invalid_request',
        '/override/mcp:box:w1',
      ],
      [{ mode: 'with_overrides', override: { 'mood:x': llm } }, 'invalid_request', '/override/mood:x'],
      [{ mode: 'with_overrides', override: { nothing: llm } }, 'invalid_request', '/override/nothing'],
      [{ mode: 'with_overrides', override: { 'llm:main:2': llm } }, 'invalid_request', '/override/llm:main:2'],
      [
        { mode: 'with_overrides', override: { 'llm:main:1': { ...llm, sha256: `sha256:${'0'.repeat(64)}` } } },
        'invalid_request',
        '/override/llm:main:1',
      ],
      [
        { mode: 'with_overrides', override: { 'time:started_at': { kind: 'time', value: 'yesterday' } } },
        'invalid_request',
        '/override/time:started_at',
      ],
      [
        { mode: 'with_overrides', override: { 'time:started_at': { kind: 'time', value: '2026' } } },
        'invalid_request',
        '/override/time:started_at',
      ],
      [
        { mode: 'with_overrides', override: { 'llm:main:1': { kind: 'llm_provider_response', artifact_id: 'none' } } },
        'not_found',
        '/override/llm:main:1',
      ],
      [
        {
          mode: 'with_overrides',
          override: { [`event:${of('com.example.mood').id}`]: { kind: 'event_payload', value: 'sad' } },
        },
        'invalid_request',
        `/override/event:${of('com.example.mood').id}`,
      ],
      [
        {
          mode: 'with_overrides',
          override: {
            'mcp:box:w1': { kind: 'mcp_tool_return', value: 1 },
            'host:write:w1': { kind: 'tool_result', value: 2 },
          },
        },
        'invalid_request',
        '/override/host:write:w1',
      ],
    ];
    for (const [body, kind, param] of wrong) {
      expect(await faultOf(replay(life, task.id, body)), JSON.stringify(body)).toEqual({ kind, param });
    }
    expect(await faultOf(replay(life, task.id, { mode: 'from_checkpoint', checkpoint_id: 'never' }))).toMatchObject({
      kind: 'not_found',
    });
    // The keys there are come with the refusal of one there is not.
    const unknown = replay(life, task.id, { mode: 'with_overrides', override: { 'llm:other': llm } });
    await expect(unknown).rejects.toMatchObject({
      details: { known: expect.arrayContaining(['llm:main:1', 'mcp:box:w1', 'time:started_at', 'secret:ACME_LOGIN']) },
    });
    // Nothing of all this was written down.
    expect(await life.house.store.list({ object: 'task', where: { parent_task_id: task.id } })).toEqual([]);
  });
});

describe('from a checkpoint', () => {
  test('by its id or by any event: what came before is restored, not lived through', async () => {
    const { life, task, box } = await play(everything);
    const events = await life.events(task.id);
    const ran = box.ran.length;
    const at = events.findIndex(({ event }) => event === 'vendor.tollbridge.checkpoint');
    const half = events[at]!;
    const named = await replay(life, task.id, { mode: 'from_checkpoint', checkpoint_id: 'half' });
    const pointed = await replay(life, task.id, { mode: 'from_checkpoint', checkpoint_event_id: half.id });
    for (const again of [named, pointed]) {
      expect(again.status).toBe('COMPLETED');
      const told = await life.events(again.id);
      const restored = told.filter(({ event, payload }) => event === 'replay.event_replayed' && 'restored' in payload);
      expect(restored).toMatchObject([{ replayed: true, payload: { restored: at + 1, through: half.id } }]);
      const lived = told.flatMap(({ replay: mark }) => mark?.original_event_id ?? []).filter((id) => id !== half.id);
      expect(Math.min(...lived.map((id) => events.findIndex((event) => event.id === id)))).toBeGreaterThan(at);
    }
    expect(sameText(await life.receipt(named.id))).toBe(sameText(await life.receipt(pointed.id)));
    expect(box.ran).toHaveLength(ran);

    // From the middle of anything: each event of the record is a place to start.
    for (const event of events.filter((_, index) => index % 7 === 0)) {
      const again = await replay(life, task.id, { mode: 'from_checkpoint', checkpoint_event_id: event.id });
      expect(again, `${event.event} ${event.id}`).toMatchObject({ status: 'COMPLETED' });
    }
    expect(await life.openAsks()).toEqual([]);
  });
});

describe('what a replay depends on', () => {
  function edit(dir: string, ...statements: [string, unknown[]][]): void {
    const db = new Database(join(dir, 'log.db'));
    for (const [sql, params] of statements) db.prepare(sql).run(...(params as []));
    db.close();
  }
  /** The task has failed and names the dependency; so do the event and the receipt. */
  async function expectMissing(life: Life, task: Task, dependency: JsonObject, at: JsonObject): Promise<void> {
    const again = await replay(life, task.id);
    expect(again).toMatchObject({
      status: 'FAILED',
      failure: { code: 'replay_dependency_unavailable', details: { dependency, at, mode: 'exact' } },
    });
    const told = await life.events(again.id);
    expect(kinds(told)).toEqual([
      'task.submitted',
      'task.started',
      'replay.started',
      'replay.failed',
      'receipt.issued',
      'task.failed',
    ]);
    expect(told[3]!.payload).toEqual(again.failure);
    const { replay_input } = await life.receipt(again.id);
    expect(replay_input.determinism).toBe('unavailable');
    expect(replay_input.unavailable_reason).toContain(String(dependency.id));
  }

  test('bytes that are gone', async () => {
    const { life, task } = await play(everything);
    const events = await life.events(task.id);
    const index = events.findIndex(({ event }) => event === 'artifact.created');
    const { id, sha256 } = events[index]!.payload.artifact as { id: string; sha256: string };
    edit(life.dir, ['DELETE FROM blobs WHERE sha256 = ?', [sha256]]);
    await expectMissing(life, task, { kind: 'artifact', id }, { event_id: events[index]!.id, index });
  });

  test('a long answer that is gone, unless an override gives another', async () => {
    const { life, task } = await play(everything);
    const events = await life.events(task.id);
    const index = events.findIndex(
      ({ event, payload }) => event === 'tool.completed' && payload.tool_call_id === 'long',
    );
    const { artifact_id, sha256 } = events[index]!.payload.output as { artifact_id: string; sha256: string };
    edit(life.dir, ['DELETE FROM blobs WHERE sha256 = ?', [sha256]]);
    await expectMissing(life, task, { kind: 'artifact', id: artifact_id }, { event_id: events[index]!.id, index });
    const override = { 'mcp:box:long': { kind: 'mcp_tool_return' as const, value: 'short' } };
    expect((await replay(life, task.id, { mode: 'with_overrides', override })).status).toBe('COMPLETED');
  });

  test('a memory that is no longer what it was', async () => {
    const life = await openLife({
      backends: [
        scripted('one', async ({ sink, work }) => {
          const { memory_id, as_of } = work.task.metadata as { memory_id: string; as_of: string };
          await sink.emit({ event: 'agent.memory_read', payload: { memory_id, as_of } });
          await sink.emit({
            event: 'agent.memory_read',
            payload: { memory_id: 'inline', content: 'kept with the event' },
          });
        }),
      ],
    });
    const workspace_id = await life.workspace();
    const body = { scope: 'workspace', owner_id: workspace_id, content: 'tea', provenance: {} };
    const memory = await life.do('resource.create', { object: 'memory', body });
    const metadata = { memory_id: memory.resource.id, as_of: memory.resource.updated_at };
    const { id } = await life.submit(await life.session({ workspace_id }), { metadata });
    const task = await life.ended(id);
    expect((await replay(life, id)).status).toBe('COMPLETED');
    await new Promise((resolve) => setTimeout(resolve, 5));
    await life.do('resource.update', { object: 'memory', id: memory.resource.id, body: { content: 'coffee' } });
    const events = await life.events(id);
    const index = events.findIndex(({ event }) => event === 'agent.memory_read');
    await expectMissing(life, task, { kind: 'memory', id: memory.resource.id }, { event_id: events[index]!.id, index });
    // Only someone who says so gets it as it is now.
    const refreshed = await replay(life, id, { metadata: { allow_refresh: ['memory'] } });
    expect(refreshed.status).toBe('COMPLETED');
    expect((await life.receipt(refreshed.id)).replay_input.determinism).toBe('best_effort');
    await life.do('resource.delete', { object: 'memory', id: memory.resource.id });
    await expectMissing(life, task, { kind: 'memory', id: memory.resource.id }, { event_id: events[index]!.id, index });
  });

  test('the receipt of the source', async () => {
    const { life, task } = await play(async ({ sink }) => sink.emit(text('x')));
    const events = await life.events(task.id);
    edit(life.dir, ['DELETE FROM receipts WHERE id = ?', [task.receipt_id]]);
    await expectMissing(
      life,
      task,
      { kind: 'receipt', id: task.receipt_id! },
      { event_id: events.at(-1)!.id, index: events.length - 1 },
    );
  });

  test('an event in the middle of the record', async () => {
    const { life, task } = await play(async ({ sink }) => sink.emit(text('x')));
    const events = await life.events(task.id);
    edit(life.dir, ['DELETE FROM events WHERE position = ?', [Number(events[3]!.id.slice(4))]]);
    await expectMissing(life, task, { kind: 'event', id: `${task.id}#4` }, { event_id: events[4]!.id, index: 3 });
  });

  test('events that are no longer kept', async () => {
    const { life, task } = await play(async ({ sink }) => sink.emit(text('x')));
    await life.house.store.retain('9999-01-01T00:00:00.000Z');
    expect(await faultOf(replay(life, task.id))).toMatchObject({ kind: 'cursor_expired' });
  });
});

describe('any work at all', () => {
  type Step =
    | { readonly do: 'say' | 'note' | 'span' | 'file' | 'usage' | 'watch'; readonly n: number }
    | { readonly do: 'act' | 'ask'; readonly n: number; readonly tool: string }
    | { readonly do: 'wonder'; readonly n: number }
    | { readonly do: 'together'; readonly steps: readonly Step[] };
  const TOOLS = ['write', 'fail', 'throw', 'no', 'mend', 'later', 'ask', 'long', 'slow'];
  const n = fc.nat(2);
  const single: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ do: fc.constantFrom('say', 'note', 'span', 'file', 'usage', 'watch'), n }),
    fc.record({ do: fc.constantFrom('act', 'ask'), n, tool: fc.constantFrom(...TOOLS) }),
    fc.record({ do: fc.constant('wonder' as const), n }),
  );
  const steps = fc.array(
    fc.oneof(
      { weight: 3, arbitrary: single },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constant('together' as const), steps: fc.array(single, { maxLength: 4 }) }),
      },
    ),
    { maxLength: 8 },
  );
  const ends = fc.constantFrom('completes', 'fails', 'throws', 'is canceled');

  function scriptOf(wanted: readonly Step[], end: string): Script {
    return async ({ sink, signal }) => {
      let calls = 0;
      const take = async (step: Step): Promise<unknown> => {
        calls += 1;
        const tool_call_id = `call-${calls}`;
        switch (step.do) {
          case 'say':
            return await sink.emit(text(step.n === 0 ? LONG : `words ${step.n}`));
          case 'note':
            return await sink.emit({ event: 'com.example.note', payload: { n: step.n } });
          case 'span': {
            const span = { id: tool_call_id, kind: 'llm', call_id: tool_call_id };
            return await sink.emit({ event: 'span.completed', payload: { span, response: { n: step.n } } });
          }
          case 'file':
            return await sink.artifact({ kind: 'file', mime_type: 'text/plain', bytes: Buffer.from(`file ${step.n}`) });
          case 'usage':
            return await sink.emit({
              event: 'vendor.tollbridge.usage',
              payload: { provider: 'p', model: `m${step.n}` },
            });
          case 'watch': {
            const request = { tool_call_id, name: 'ls', kind: 'tool', input: { n: step.n } };
            await sink.emit({ event: 'tool.requested', payload: request });
            const done = { tool_call_id, name: 'ls', status: 'ok', output: step.n };
            return step.n > 0 ? await sink.emit({ event: 'tool.completed', payload: done }) : undefined;
          }
          case 'act':
            return await sink.act({ kind: 'tool', tool: step.tool, tool_call_id, arguments: { n: step.n } });
          case 'ask': {
            const action = { kind: 'tool' as const, tool: step.tool, tool_call_id, arguments: { n: step.n } };
            return await sink.ask({ kind: 'approval', action, takesArguments: step.n > 0 });
          }
          case 'wonder':
            return await sink.ask({ kind: 'input', key: tool_call_id, question: `What is ${step.n}?` });
          case 'together':
            return await Promise.all(step.steps.map(take));
        }
      };
      for (const step of wanted) await take(step);
      if (end === 'is canceled') await stopped(signal);
      if (end === 'throws') throw new Error('no more');
      return { state: end === 'fails' ? 'FAILED' : 'COMPLETED' };
    };
  }

  test('is replayed as it was, and the same each time', { timeout: 240_000 }, async () => {
    const played = new Map<string, Script>();
    const box = tools();
    const agent = scripted('one', (stage) => played.get(String(stage.work.task.metadata.script))!(stage));
    const life = await openLife({
      rules: RULES,
      tools: [box],
      settings: { inlineLimit: 300, deferTries: 1, graceMs: 20 },
      backends: [agent],
    });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        steps,
        ends,
        fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
        async (wanted, end, yes) => {
          round += 1;
          played.set(String(round), scriptOf(wanted, end));
          const { id } = await life.submit(await life.session(), { metadata: { script: String(round) } });
          let answers = 0;
          await until(async () => {
            const open = await life.openAsks();
            for (const ask of open) {
              const approved = yes[answers++ % yes.length]!;
              await life
                .answer(ask.id, ask.kind === 'input' && approved ? { value: answers } : { approved })
                .catch(() => {});
            }
            const { status } = await life.task(id);
            // Canceled at some point, whatever it was doing.
            if (end === 'is canceled' && answers >= yes.length)
              await life.do('task.cancel', { task_id: id }).catch(() => {});
            else if (end === 'is canceled' && open.length === 0) answers += 1;
            return ['COMPLETED', 'FAILED', 'CANCELED'].includes(status);
          });
          await life.house.idle();
          const task = await life.task(id);
          const [ran, starts] = [box.ran.length, agent.starts.length];
          const [one, two] = [await replay(life, id), await replay(life, id)];
          expect([one.status, one.failure]).toEqual([task.status, task.failure]);
          await expectFaithful(life, task, one);
          check(Receipt, await life.receipt(one.id), 'the receipt');
          expect(sameText(await life.receipt(one.id))).toBe(sameText(await life.receipt(two.id)));
          const third = await replay(life, one.id);
          await expectFaithful(life, one, third);
          expect([box.ran.length, agent.starts.length]).toEqual([ran, starts]);
          expect(await life.openAsks()).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });
});
