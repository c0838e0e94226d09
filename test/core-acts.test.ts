/** From "may I?" to "done", on the real stack: what runs is what was decided about, it runs once, and the record is whole. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Decision, ToolResult } from '../src/model/actions.ts';
import type { Answer } from '../src/model/asks.ts';
import type { ProposedAction } from '../src/model/commands.ts';
import type { Fault } from '../src/model/faults.ts';
import type { JsonObject } from '../src/model/schema.ts';
import type { ActResult, PolicyEngine, Sink, ToolBackend } from '../src/ports.ts';
import { ana } from './support/actors.ts';
import { latch, scriptedAgent, untilAborted } from './support/agents.ts';
import { pulledDisk } from './support/failing-store.ts';
import { kinds, of, openTestHouse, states, type TestHouseOptions } from './support/house.ts';
import { countingTools, type ToolSpec } from './support/tools.ts';

const ALLOW = '- { id: all, when: { kind: tool }, then: allow }';
const SEND: ProposedAction = { kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: { to: 'bo' } };

/** A house in which one agent does what the script says, with these tools. */
async function play(
  script: (sink: Sink, signal: AbortSignal) => Promise<void>,
  { specs = {}, ...options }: TestHouseOptions & { specs?: Record<string, ToolSpec> } = {},
) {
  const tools = countingTools({ send: { effect: 'send' }, look: { effect: 'read' }, ...specs });
  const agent = scriptedAgent(async (sink, _work, signal) => {
    await script(sink, signal);
    return undefined;
  });
  const t = await openTestHouse({
    rules: ALLOW,
    ...options,
    agents: [agent],
    tools: [tools, ...(options.tools ?? [])],
  });
  const room = await t.room();
  const task = await room.task();
  return { t, tools, room, task };
}

function sha256(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

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

  test('come with the yes to whoever runs the act itself', async () => {
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
    const t = await openTestHouse({ rules: ALLOW, engines });
    const task = await (await t.room()).task({ agent: 'none' });
    const waiting = t.send('action.propose', { task_id: task.id, action: SEND });
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id);
    expect((await waiting).decision).toMatchObject({ verdict: 'modify', arguments: { to: 'dee' } });
  });

  test('a proposer is never told that we held what it runs itself', async () => {
    const t = await openTestHouse({ rules: ALLOW });
    const task = await (await t.room()).task({ agent: 'none' });
    await t.send('action.propose', { task_id: task.id, action: { ...SEND, evidence: 'held' } });
    expect(of(await t.events(task.id), 'tool.requested')[0]?.payload.evidence).toBe('asked');
  });
});

describe('how a call ends', () => {
  test('a tool that throws has failed, in its own words', async () => {
    const results: ActResult[] = [];
    const { t, task } = await play(
      async (sink) => {
        results.push(await sink.act(SEND));
      },
      {
        specs: {
          send: {
            effect: 'send',
            run: () => {
              throw new Error('the line is dead');
            },
          },
        },
      },
    );
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(results).toEqual([{ kind: 'done', result: { status: 'error', output: null, error: 'the line is dead' } }]);
    expect(of(await t.events(task.id), 'tool.failed')[0]?.payload).toEqual({
      tool_call_id: 'c1',
      name: 'send',
      status: 'error',
      output: null,
      error: 'the line is dead',
    });
    expect((await t.receipts(task.id))[0]?.side_effects.tool_calls[0]).toMatchObject({
      call_id: 'c1',
      status: 'failed',
    });
  });

  test.each<[string, ToolResult, string]>([
    ['an error', { status: 'error', output: { code: 7 }, error: 'no such address' }, 'tool.failed'],
    ['a word nobody knows', { status: 'perhaps', output: null }, 'tool.failed'],
    ['success', { status: 'ok', output: { code: 0 } }, 'tool.completed'],
  ])('a tool that answers with %s', async (_what, result, event) => {
    const { t, task } = await play(
      async (sink) => {
        await sink.act(SEND);
      },
      { specs: { send: { effect: 'send', run: () => result } } },
    );
    await t.until(task.id);
    const ends = (await t.events(task.id)).filter(({ event }) => event === 'tool.completed' || event === 'tool.failed');
    expect(kinds(ends)).toEqual([event]);
    expect(ends[0]?.payload.output).toEqual(result.output);
  });

  test('files, effects and usage of a call are on record with it', async () => {
    const made: ToolResult = {
      status: 'ok',
      output: { sent: true },
      artifacts: [{ kind: 'file', name: 'letter.txt', mime_type: 'text/plain', bytes: Buffer.from('dear bo') }],
      effects: [
        { type: 'fs_write', path: '/w/letter.txt', operation: 'create' },
        { type: 'network', destination: 'mail.example', purpose: 'deliver', bytes_sent: 7 },
      ],
      usage: { provider: 'p', model: 'm', usd_micros: 250_000, input_tokens: 10, output_tokens: 5 },
    };
    const { t, task } = await play(
      async (sink) => {
        await sink.act(SEND);
      },
      { specs: { send: { effect: 'send', run: () => made } } },
    );
    await t.until(task.id);
    const log = await t.events(task.id);
    const [created] = of(log, 'artifact.created');
    expect(created?.payload.artifact).toMatchObject({
      kind: 'file',
      mime_type: 'text/plain',
      metadata: { name: 'letter.txt', bytes: 7 },
    });
    const artifact = created?.payload.artifact as unknown as { id: string };
    expect(Buffer.from(await t.bridge.bytes(ana, artifact.id)).toString()).toBe('dear bo');
    expect(of(log, 'vendor.tollbridge.side_effect').map(({ payload }) => payload)).toEqual([
      { type: 'fs_write', path: '/w/letter.txt', operation: 'create', tool_call_id: 'c1', evidence: 'held' },
      {
        type: 'network',
        destination: 'mail.example',
        purpose: 'deliver',
        bytes_sent: 7,
        tool_call_id: 'c1',
        evidence: 'held',
      },
    ]);
    const [receipt] = await t.receipts(task.id);
    expect(receipt?.cost).toMatchObject({ currency: 'USD', total: 0.25 });
    expect(receipt?.side_effects.fs_writes).toMatchObject([{ path: '/w/letter.txt', operation: 'create' }]);
    expect(receipt?.side_effects.network_egress).toMatchObject([{ destination: 'mail.example', bytes_sent: 7 }]);
    expect(receipt?.final_artifacts).toMatchObject([{ artifact_id: artifact.id, kind: 'file' }]);
  });

  test('what is too large to stand in the log is kept as an artifact and can be read', async () => {
    const large = { text: 'x'.repeat(2000) };
    const { t, task } = await play(
      async (sink) => {
        await sink.act({ ...SEND, arguments: { body: 'y'.repeat(2000) } });
      },
      {
        specs: { send: { effect: 'send', run: () => ({ status: 'ok', output: large }) } },
        settings: { inlineLimit: 1000 },
      },
    );
    await t.until(task.id);
    const log = await t.events(task.id);
    const output = of(log, 'tool.completed')[0]?.payload.output as JsonObject;
    expect(output).toMatchObject({ type: 'artifact_ref', visibility: 'internal', bytes: 2011 });
    expect(JSON.parse(Buffer.from(await t.bridge.bytes(ana, String(output.artifact_id))).toString())).toEqual(large);
    const input = of(log, 'tool.requested')[0]?.payload.input as JsonObject;
    expect(input).toMatchObject({ type: 'artifact_ref', bytes: 2011 });
    expect(JSON.stringify(log)).not.toContain('xxxxxxxxxx');
    expect(JSON.stringify(log)).not.toContain('yyyyyyyyyy');
    // Merely too long is not a result of the work.
    expect((await t.receipts(task.id))[0]?.final_artifacts).toEqual([]);
  });

  test('large arguments that a rule rewrote are not written out either, and run whole', async () => {
    const { t, tools, task } = await play(
      async (sink) => {
        await sink.act({ ...SEND, arguments: { to: 'bo', body: 'y'.repeat(2000) } });
      },
      {
        rules: '- { id: to-cy, when: { kind: tool }, then: modify, set: { to: cy } }',
        settings: { inlineLimit: 1000 },
      },
    );
    await t.until(task.id);
    expect(tools.calls[0]?.arguments).toEqual({ to: 'cy', body: 'y'.repeat(2000) });
    expect(JSON.stringify(await t.events(task.id))).not.toContain('yyyyyyyyyy');
  });

  test('a tool nobody serves is not found, and nothing is written about it', async () => {
    const heard: Fault[] = [];
    const { t, task } = await play(async (sink) => {
      await sink.act({ ...SEND, tool: 'fly' }).catch((cause) => heard.push(cause));
    });
    await t.until(task.id);
    expect(heard).toMatchObject([{ kind: 'not_found', message: 'no tool fly is mounted' }]);
    expect(of(await t.events(task.id), 'tool.requested')).toEqual([]);
  });
});

describe('who serves a tool', () => {
  const twice = (name: string) => countingTools({ send: { effect: 'send' } }, name);

  test('a name two serve has to be said with its server', async () => {
    const other = twice('van');
    const results: unknown[] = [];
    const { t, tools, task } = await play(
      async (sink) => {
        await sink.act(SEND).catch((cause) => results.push(cause));
        results.push(await sink.act({ ...SEND, tool_call_id: 'c2', server: 'van' }));
      },
      { tools: [other] },
    );
    await t.until(task.id);
    expect(results[0]).toMatchObject({
      kind: 'invalid_request',
      message: 'box and van both serve send; name the server',
    });
    expect(results[1]).toMatchObject({ kind: 'done' });
    expect([tools.calls.length, other.calls.length]).toEqual([0, 1]);
  });

  test('one that does not answer does not stand in the way of the others, and is not taken for having nothing', async () => {
    const silent: ToolBackend = {
      name: 'far',
      list: async () => Promise.reject(new Error('connection refused')),
      call: async () => ({ status: 'ok', output: null }),
    };
    const results: unknown[] = [];
    const { t, task } = await play(
      async (sink) => {
        results.push(await sink.act(SEND));
        await sink.act({ ...SEND, tool_call_id: 'c2', tool: 'fly' }).catch((cause) => results.push(cause));
      },
      { tools: [silent] },
    );
    await t.until(task.id);
    expect(results[0]).toMatchObject({ kind: 'done' });
    expect(results[1]).toMatchObject({ kind: 'upstream_unavailable', message: 'far does not say which tools it has' });
  });

  test('a caller cannot make a call something else by calling it something else', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestHouse({ rules: '- { id: all, then: allow }', tools: [tools] });
    const room = await t.room({ persona: { autonomy_tier: 'shadow' } });
    const task = await room.task({ agent: 'none' });
    const { act } = await t.send('tool.call', {
      task_id: task.id,
      action: { kind: 'reason', tool: 'send', effect: 'none', evidence: 'observed' },
    });
    expect(act).toMatchObject({ kind: 'refused', decision: { verdict: 'block', code: 'tier_shadow' } });
    expect(tools.calls).toEqual([]);
    expect(of(await t.events(task.id), 'tool.requested')[0]?.payload).toMatchObject({
      kind: 'tool',
      effect: 'send',
      evidence: 'held',
    });
  });
});

describe('one call id, one act', () => {
  test('the same call again, while it runs or after, has the one result', async () => {
    const results: ActResult[] = [];
    const { t, tools, task } = await play(async (sink) => {
      results.push(...(await Promise.all([sink.act(SEND), sink.act(SEND)])));
      results.push(await sink.act(SEND));
    });
    await t.until(task.id);
    expect(tools.calls).toHaveLength(1);
    expect(results.map(({ kind }) => kind)).toEqual(['done', 'done', 'done']);
    expect(of(await t.events(task.id), 'tool.requested')).toHaveLength(1);
  });

  test('another call under the same id is refused', async () => {
    const heard: Fault[] = [];
    const { t, tools, task } = await play(async (sink) => {
      await sink.act(SEND);
      await sink.act({ ...SEND, arguments: { to: 'eve' } }).catch((cause) => heard.push(cause));
    });
    await t.until(task.id);
    expect(heard).toMatchObject([{ kind: 'conflict', message: 'call id c1 was already used for a different call' }]);
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'bo' } }]);
  });

  test('whichever way the two come in', async () => {
    const over = latch();
    const { t, tools, task } = await play(async (sink) => {
      await sink.act(SEND);
      await over.promise;
    });
    await t.seen(task.id, 'tool.completed');
    const same = await t.send('tool.call', { task_id: task.id, action: SEND });
    expect(same.act).toEqual({ kind: 'done', result: { status: 'ok', output: { did: 'send' } } });
    const fault = await t.refused('tool.call', { task_id: task.id, action: { ...SEND, arguments: { to: 'eve' } } });
    expect(fault).toMatchObject({ kind: 'conflict', message: 'call id c1 was already used for a different call' });
    over.open();
    await t.until(task.id);
    expect(tools.calls).toHaveLength(1);
    expect(of(await t.events(task.id), 'tool.requested')).toHaveLength(1);
  });

  test('a call id means nothing in another task', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestHouse({ rules: ALLOW, tools: [tools] });
    const room = await t.room();
    for (const to of ['bo', 'cy']) {
      const task = await room.task({ agent: 'none' });
      const { act } = await t.send('tool.call', { task_id: task.id, action: { ...SEND, arguments: { to } } });
      expect(act).toMatchObject({ kind: 'done' });
    }
    expect(tools.calls).toHaveLength(2);
  });

  test('a hundred retries of one keyed call run it once and all hear the result', async () => {
    const running = latch();
    const tools = countingTools({
      send: {
        effect: 'send',
        run: async () => {
          await running.promise;
          return { status: 'ok', output: { receipt: 42 } };
        },
      },
    });
    const t = await openTestHouse({ rules: ALLOW, tools: [tools] });
    const task = await (await t.room()).task({ agent: 'none' });
    const { tool_call_id: _, ...action } = SEND;
    const retries = Array.from({ length: 100 }, () =>
      t.send('tool.call', { task_id: task.id, action }, { idempotency: { key: 'k' } }),
    );
    await t.seen(task.id, 'tool.requested');
    running.open();
    const heard = await Promise.all(retries);
    expect(tools.calls).toHaveLength(1);
    expect(new Set(heard.map(({ act }) => JSON.stringify(act)))).toEqual(
      new Set(['{"kind":"done","result":{"status":"ok","output":{"receipt":42}}}']),
    );
    expect(heard.filter(({ repeated }) => !repeated)).toHaveLength(1);
    expect(
      await t.refused(
        'tool.call',
        { task_id: task.id, action: { ...action, arguments: { to: 'eve' } } },
        { idempotency: { key: 'k' } },
      ),
    ).toMatchObject({
      kind: 'idempotency_key_reused',
    });
    const reopened = await t.reopen();
    const later = await reopened.send('tool.call', { task_id: task.id, action }, { idempotency: { key: 'k' } });
    expect(later).toMatchObject({ repeated: true, act: { kind: 'done', result: { output: { receipt: 42 } } } });
    expect(tools.calls).toHaveLength(1);
  });

  test('a keyed call that could not even begin can be tried again', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestHouse({ rules: ALLOW, tools: [tools] });
    const task = await (await t.room()).task({ agent: 'none' });
    tools.redefine('send', undefined);
    const call = { task_id: task.id, action: { kind: 'tool' as const, tool: 'send', arguments: {} } };
    expect(await t.refused('tool.call', call, { idempotency: { key: 'k' } })).toMatchObject({ kind: 'not_found' });
    tools.redefine('send', 'sends again');
    expect(await t.send('tool.call', call, { idempotency: { key: 'k' } })).toMatchObject({ act: { kind: 'done' } });
    expect(tools.calls).toHaveLength(1);
  });

  test('a call that was refused is refused to its retries in the same words', async () => {
    const t = await openTestHouse({
      rules: '- { id: no, when: { kind: tool }, then: block, say: not today }',
      tools: [countingTools({ send: { effect: 'send' } })],
    });
    const task = await (await t.room()).task({ agent: 'none' });
    for (const repeated of [false, true]) {
      const heard = await t.send('tool.call', { task_id: task.id, action: SEND }, { idempotency: { key: 'k' } });
      expect(heard).toMatchObject({
        repeated,
        act: { kind: 'refused', reason: 'not today', decision: { rule_id: 'no' } },
      });
    }
    expect(
      of(await t.events(task.id), 'vendor.tollbridge.decided').filter(
        ({ payload }) => (payload.action as JsonObject).kind === 'tool',
      ),
    ).toHaveLength(1);
  });
});

describe('a call that broke off', () => {
  /** Tries until the log takes it. */
  async function stubborn(sink: Sink, call: ProposedAction): Promise<ActResult> {
    for (;;) {
      try {
        return await sink.act(call);
      } catch (cause) {
        if ((cause as Fault).kind !== 'unavailable') throw cause;
      }
    }
  }

  test.each([
    ['before anything was written', 'tool.requested'],
    ['when its approval was to be spent', 'vendor.tollbridge.ask_used'],
  ])('%s goes on from there when it is tried again', async (_when, event) => {
    const disk = pulledDisk();
    disk.fails = event;
    const { t, tools, task } = await play(
      async (sink) => {
        await stubborn(sink, SEND);
      },
      { rules: '- { id: ask, when: { tool: send, kind: tool }, then: ask }', store: disk.wrap },
    );
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id);
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(disk.fails).toBe(undefined);
    expect(tools.calls).toHaveLength(1);
    const log = await t.events(task.id);
    expect(of(log, 'tool.requested')).toHaveLength(1);
    expect(of(log, 'vendor.tollbridge.ask_opened')).toHaveLength(1);
    expect(of(log, 'vendor.tollbridge.ask_used')).toHaveLength(1);
  });

  test('is not taken for another one after a restart', async () => {
    const heard: Fault[] = [];
    let to = 'bo';
    const agent = scriptedAgent(
      async (sink, { resumed }, signal) => {
        const call = { ...SEND, arguments: { to } };
        await sink.act(call).catch((cause) => heard.push(cause));
        if (!resumed) await untilAborted(signal);
        return undefined;
      },
      { resume: true },
    );
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestHouse({ rules: ALLOW, agents: [agent], tools: [tools] });
    const task = await (await t.room()).task();
    await t.seen(task.id, 'tool.completed');
    to = 'eve';
    const later = await t.reopen();
    await later.until(task.id);
    expect(heard).toMatchObject([{ kind: 'conflict', message: 'call id c1 was already used for a different call' }]);
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'bo' } }]);
  });
});

test('a call that was only asked about may be asked about otherwise after a restart, and the receipt says what ran', async () => {
  let to = 'bo';
  const agent = scriptedAgent(
    async (sink) => {
      await sink.act({ ...SEND, arguments: { to } });
      return undefined;
    },
    { resume: true },
  );
  const tools = countingTools({ send: { effect: 'send' } });
  const t = await openTestHouse({ agents: [agent], tools: [tools] });
  const task = await (await t.room()).task();
  const [first] = await t.asks(task.id);
  to = 'cy';
  const later = await t.reopen();
  const asks = await later.asks(task.id, 2);
  const second = asks.find(({ id }) => id !== first!.id);
  expect(second).toMatchObject({ tool_call_id: 'c1', action: { arguments: { to: 'cy' } } });
  await later.answer(second!.id);
  await later.until(task.id);
  expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'cy' } }]);
  const [call] = (await later.receipts(task.id))[0]!.side_effects.tool_calls;
  expect(call).toMatchObject({ call_id: 'c1', status: 'succeeded', input_hash: sha256('{"to":"cy"}') });
});

describe('work that is told to stop', () => {
  test('a tool that is allowed after the stop is not called', async () => {
    const deciding = latch();
    const asked = latch();
    const engine: PolicyEngine = {
      name: 'slow',
      decide: async ({ kind }) => {
        if (kind === 'tool') {
          asked.open();
          await deciding.promise;
        }
        return { verdict: 'allow', reason: 'fine', engine: 'slow' };
      },
    };
    const { t, tools, task } = await play(
      async (sink, signal) => {
        const acting = sink.act(SEND);
        await untilAborted(signal);
        deciding.open();
        await acting;
      },
      { engines: [engine] },
    );
    await asked.promise;
    await t.send('task.cancel', { task_id: task.id });
    expect(await t.until(task.id)).toMatchObject({ status: 'CANCELED' });
    expect(tools.calls).toEqual([]);
    expect((await t.receipts(task.id))[0]?.side_effects.tool_calls).toMatchObject([
      { call_id: 'c1', status: 'canceled' },
    ]);
  });

  test('nothing new is begun after it', async () => {
    const heard: Fault[] = [];
    const { t, tools, task } = await play(async (sink, signal) => {
      await untilAborted(signal);
      await sink.act(SEND).catch((cause) => heard.push(cause));
    });
    await t.send('task.cancel', { task_id: task.id });
    await t.until(task.id);
    expect(heard).toMatchObject([{ kind: 'client_closed' }]);
    expect(tools.calls).toEqual([]);
    expect(of(await t.events(task.id), 'tool.requested')).toEqual([]);
  });

  test('what comes in after the end is a note beside it, marked as late in every part', async () => {
    const running = latch();
    const finish = latch();
    const recorded = latch();
    const late: ToolResult = {
      status: 'ok',
      output: { done: true },
      artifacts: [{ kind: 'file', mime_type: 'text/plain', bytes: Buffer.from('late') }],
      effects: [{ type: 'network', destination: 'mail.example', purpose: 'deliver' }],
      usage: { usd_micros: 1 },
    };
    const { t, task } = await play(
      async (sink) => {
        await sink.act(SEND);
        recorded.open();
      },
      {
        specs: {
          send: {
            effect: 'send',
            run: async () => {
              running.open();
              await finish.promise;
              return late;
            },
          },
        },
        settings: { graceMs: 20 },
      },
    );
    await running.promise;
    await t.send('task.cancel', { task_id: task.id, reason: 'changed my mind' });
    expect(await t.until(task.id)).toMatchObject({ status: 'CANCELED' });
    finish.open();
    await recorded.promise;
    const log = await t.events(task.id);
    const end = log.findIndex(({ event }) => event === 'task.canceled');
    const after = log.slice(end + 1);
    expect(kinds(after)).toEqual([
      'artifact.created',
      'vendor.tollbridge.side_effect',
      'vendor.tollbridge.usage',
      'tool.completed',
    ]);
    expect(after.every(({ payload }) => payload.after_end === true)).toBe(true);
    expect(states(log)).toEqual(['SUBMITTED', 'WORKING', 'CANCELED']);
    expect(await t.receipts(task.id)).toMatchObject([{ metadata: { still_running: true } }]);
  });
});
