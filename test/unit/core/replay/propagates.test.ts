/** What follows from an override: an agent that can be run again answers anew, for any other the replay stops and says where. */
import { describe, expect, test } from 'vitest';
import { createDemoAgent } from '../../../../src/demo/agent.ts';
import { createDemoTools } from '../../../../src/demo/tools.ts';
import type { ReplayOverride } from '../../../../src/model/commands.ts';
import { type CoreEvent, vendorEvent } from '../../../../src/model/events.ts';
import type { Task } from '../../../../src/model/resources.ts';
import type { Json, JsonObject } from '../../../../src/model/schema.ts';
import { hashOf } from '../../../../src/receipt/seal/canonical-json.ts';
import { eventually } from '../../../support/eventually.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { kinds, openTestGateway, REAL_TIME, says, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { everything, play, replay } from '../../../support/tasks/replay.ts';
import { type Script, text } from '../../../support/tasks/script.ts';

const visibility = 'public';

async function demo(words: string, answer: object = { value: 'red' }) {
  const effects: string[] = [];
  const box = createDemoTools({ journal: (line) => void effects.push(line) });
  const gateway = await openTestGateway({
    ...REAL_TIME,
    agents: [createDemoAgent({ pause: async () => {}, stepMs: 0 })],
    tools: [box],
  });
  const { id } = await gateway.submit(await gateway.session(), { input: says(words) });
  await eventually(async () => {
    for (const ask of await gateway.openAsks()) await gateway.answer(ask.id, answer).catch(() => {});
    return ['COMPLETED', 'FAILED', 'CANCELED'].includes((await gateway.task(id)).status);
  });
  return { gateway, id, effects, source: await gateway.task(id) };
}

const over = (override: Record<string, ReplayOverride>) => ({ mode: 'with_overrides' as const, override });

async function messages(gateway: TestGateway, { id }: Task): Promise<string[]> {
  return (await gateway.events(id)).flatMap(({ event, payload }) => {
    if (event !== 'agent.message') return [];
    const { parts } = payload.message as { parts: { text?: string }[] };
    return [parts.map((part) => part.text ?? '').join('')];
  });
}

describe('an agent that can be run again', () => {
  test('says what follows from another tool return, and nothing is done', async () => {
    const { gateway, id, effects } = await demo('write plan Look twice then read plan');
    const before = [...effects];
    const key = `mcp:demo:${id}.call2`;
    const value = { text: 'plan says: Sleep.' };
    const again = await replay(gateway, id, over({ [key]: { kind: 'mcp_tool_return', value, visibility } }));
    expect([again.status, again.failure]).toEqual(['COMPLETED', null]);
    expect(await messages(gateway, again)).toEqual(['plan is written.', 'plan says: Sleep.']);
    // Streamed as it is said.
    const deltas = (await gateway.events(again.id)).filter(({ event }) => event === 'vendor.tollbridge.message_delta');
    expect(deltas.map(({ payload }) => payload.text).join('')).toBe('plan is written.plan says: Sleep.');
    expect(effects).toEqual(before);
    expect(await messages(gateway, await gateway.task(id))).toEqual(['plan is written.', 'plan says: Look twice']);
  });

  test('does another step when its model answers otherwise, as far as the record has answers', async () => {
    const { gateway, id } = await demo('read plan then read todo');
    const llm = `llm:${id}.llm1`;
    const hello = await replay(
      gateway,
      id,
      over({
        [llm]: { kind: 'llm_provider_response', value: { choices: [{ message: { content: 'hello' } }] }, visibility },
      }),
    );
    expect((await messages(gateway, hello))[0]).toContain('I am the demo agent');
    expect(hello.status).toBe('COMPLETED');
    // It never asked for that note: nobody knows what would have come back.
    const unknown = await replay(
      gateway,
      id,
      over({ [llm]: { kind: 'llm_provider_response', value: { text: 'read readme' }, visibility } }),
    );
    expect(unknown).toMatchObject({
      status: 'FAILED',
      failure: {
        code: 'replay_dependency_unavailable',
        details: { dependency: { kind: 'host', id: `mcp:demo:${id}.call1` }, mode: 'with_overrides' },
      },
    });
    const events = await gateway.events(unknown.id);
    expect(events.find(({ event }) => event === 'replay.failed')!.payload).toEqual(unknown.failure);
    expect(kinds(events)).not.toContain('tool.requested');
    const { replay_input } = await gateway.receipt(unknown.id);
    expect(replay_input).toMatchObject({ determinism: 'unavailable' });
    expect(replay_input.unavailable_reason).toContain(`mcp:demo:${id}.call1`);
  });

  test('hears other answers of people and other decisions', async () => {
    const { gateway, id } = await demo('ask what colour then read plan');
    const events = await gateway.events(id);
    const closed = events.find(({ event }) => event === 'vendor.tollbridge.ask_closed')!;
    const blue = await replay(
      gateway,
      id,
      over({
        [`event:${closed.id}`]: { kind: 'event_payload', value: { ...closed.payload, answer: 'blue' }, visibility },
      }),
    );
    expect(await messages(gateway, blue)).toEqual(['You said: blue', 'plan says: First look, then leap.']);
    const ruled = events.find(
      ({ event, payload }) => event.endsWith('.decided') && (payload.action as JsonObject).tool === 'read_note',
    )!;
    const decision = { verdict: 'block', reason: 'not today', engine: 'rules' };
    const blocked = await replay(
      gateway,
      id,
      over({
        [`event:${ruled.id}`]: { kind: 'event_payload', value: { ...ruled.payload, decision } as Json, visibility },
      }),
    );
    expect(await messages(gateway, blocked)).toEqual(['You said: red', 'I was not allowed to read plan: not today']);
    expect(kinds(await gateway.events(blocked.id))).not.toContain('tool.completed');
  });

  test('gives the same names and the same order when it does several things at once', async () => {
    const script: Script = async ({ sink }) => {
      const call = (n: number) => sink.act({ kind: 'tool', tool: 'write', tool_call_id: `c${n}`, arguments: { n } });
      const results = await Promise.all([call(1), call(2), call(3)]);
      for (const result of results) await sink.emit(text(JSON.stringify(result)));
    };
    const { gateway, task, box } = await play(script, { abilities: { reruns: true } });
    const ran = box.ran.length;
    const run = async () => {
      const override = { 'mcp:box:c2': { kind: 'mcp_tool_return' as const, value: 'other', visibility } as const };
      const again = await replay(gateway, task.id, over(override));
      const reported = await gateway.events(again.id);
      return reported.map(({ event, payload }) => [event, payload.tool_call_id ?? null, payload.output ?? null]);
    };
    const once = await run();
    expect(once).toEqual(await run());
    expect(once).toContainEqual(['tool.completed', 'c2', 'other']);
    expect(box.ran).toHaveLength(ran);
  });

  test('takes time and secrets from overrides, and never the real ones', async () => {
    const script: Script = async ({ sink, work: { recorded } }) => {
      const time = recorded ? await recorded.time('tick') : '2026-01-01T00:00:00.000Z';
      await sink.emit({
        event: vendorEvent('com.example.tick'),
        payload: { times: { tick: time }, secret_names: ['LOGIN'] },
      });
      if (work_needs_secret(time)) await sink.emit(text(`logged in with ${String(await recorded?.secret('LOGIN'))}`));
      await sink.emit(text(`it is ${time.slice(0, 4)}`));
    };
    const work_needs_secret = (time: string) => time.startsWith('2027');
    const { gateway, task } = await play(script, { abilities: { reruns: true } });
    const later = { kind: 'time' as const, value: '2028-01-01T00:00:00Z', visibility } as const;
    const again = await replay(gateway, task.id, over({ 'time:tick': later }));
    expect(await messages(gateway, again)).toEqual(['it is 2028']);
    expect((await gateway.receipt(again.id)).deltas).toMatchObject([
      { override_key: 'time:tick', path: '/replay_input/materials/time:tick', operation: 'replace' },
    ]);
    // It asks for a secret that nobody gave.
    const year = { ...later, value: '2027-01-01T00:00:00Z' };
    expect(await replay(gateway, task.id, over({ 'time:tick': year }))).toMatchObject({
      status: 'FAILED',
      failure: { details: { dependency: { kind: 'host', id: 'secret:LOGIN' } } },
    });
    const secret = { kind: 'secret_value' as const, value: 'hunter2-hunter2', visibility } as const;
    const input = await replay(gateway, task.id, over({ 'time:tick': year, 'secret:LOGIN': secret }));
    expect(input.status).toBe('COMPLETED');
    const shown = JSON.stringify([await gateway.events(input.id), await gateway.receipt(input.id), input]);
    expect(shown).not.toContain('hunter2');
    expect(shown).not.toContain(hashOf('hunter2-hunter2').slice(7));
    expect((await gateway.receipt(input.id)).deltas!.map(({ override_key }) => override_key)).toEqual([
      'secret:LOGIN',
      'time:tick',
    ]);
  });

  test('an override it never came to is no delta', async () => {
    const { gateway, id } = await demo('read plan then read todo');
    const fail: ReplayOverride = { kind: 'llm_provider_response', value: { text: 'fail early' }, visibility };
    const unread: ReplayOverride = { kind: 'mcp_tool_return', value: 'never seen', visibility };
    const again = await replay(gateway, id, over({ [`llm:${id}.llm1`]: fail, [`mcp:demo:${id}.call2`]: unread }));
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'early' } });
    const receipt = await gateway.receipt(again.id);
    expect(receipt.deltas!.map(({ override_key }) => override_key)).toEqual([`llm:${id}.llm1`]);
    expect(receipt.replay_input.materials.map(({ id: name }) => name)).toEqual([`event_log_${id}`, `llm:${id}.llm1`]);
    const completed = (await gateway.events(again.id)).find(({ event }) => event === 'replay.completed')!;
    expect(completed.payload).toMatchObject({ rerun: true, unused_overrides: [`mcp:demo:${id}.call2`] });
  });

  test('what it is not given again stays as it was: a handoff, files, a cancel, a word said meanwhile', async () => {
    const { gateway, id, source } = await demo('handoff to bea: read plan then artifact then read plan');
    const key = `mcp:demo:${id}.call3`;
    const again = await replay(
      gateway,
      id,
      over({ [key]: { kind: 'mcp_tool_return', value: { text: 'x' }, visibility } }),
    );
    expect(again.status).toBe('COMPLETED');
    const reported = await gateway.events(again.id);
    const handoffs = reported.filter(({ event }) => event === 'agent.handoff').map(({ payload }) => payload.status);
    expect(handoffs).toEqual(['accepted', 'completed']);
    expect((await gateway.receipt(again.id)).final_artifacts).toEqual((await gateway.receipt(id)).final_artifacts);
    expect(source.status).toBe('COMPLETED');

    const busy = await openTestGateway({
      ...REAL_TIME,
      agents: [createDemoAgent({ pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)), stepMs: 5 })],
      tools: [createDemoTools()],
    });
    const long = await busy.submit(await busy.session(), { input: says('read plan then wait 2000') });
    await busy.seen(long.id, 'vendor.tollbridge.message_delta', ({ payload }) => /step 2/.test(String(payload.text)));
    await busy.send('task.cancel', { task_id: long.id });
    await busy.until(long.id);
    const call = { kind: 'mcp_tool_return' as const, value: { text: 'other' }, visibility } as const;
    const canceled = await replay(busy, long.id, over({ [`mcp:demo:${long.id}.call1`]: call }));
    expect(canceled.status).toBe('CANCELED');
    expect(await messages(busy, canceled)).toEqual(['other']);
  });

  test('from a checkpoint: runs up to it in silence', async () => {
    const { gateway, id } = await demo('read plan then read todo');
    const events = await gateway.events(id);
    const from = events.find(({ event }) => event === 'agent.message')!;
    const value = { text: 'todo says: nothing' };
    const key = `mcp:demo:${id}.call2`;
    const again = await replay(gateway, id, {
      mode: 'from_checkpoint',
      checkpoint_event_id: from.id,
      override: { [key]: { kind: 'mcp_tool_return', value, visibility } },
    });
    expect([again.status, again.failure]).toEqual(['COMPLETED', null]);
    expect(await messages(gateway, again)).toEqual(['todo says: nothing']);
    const [marker] = (await gateway.events(again.id)).filter(({ event }) => event === 'replay.event_replayed');
    expect(marker!.replay).toMatchObject({ original_event_id: from.id });
    // What came before is as it was.
    const early = { [`mcp:demo:${id}.call1`]: { kind: 'mcp_tool_return' as const, value } };
    const refused = replay(gateway, id, { mode: 'from_checkpoint', checkpoint_event_id: from.id, override: early });
    expect(await refusalOf(refused)).toEqual({ kind: 'invalid_request', param: `/override/mcp:demo:${id}.call1` });
  });

  test('a replay that was run again can be replayed, also with overrides', async () => {
    const { gateway, id } = await demo('read plan then read todo');
    const other = (words: string): ReplayOverride => ({ kind: 'mcp_tool_return', value: { text: words }, visibility });
    const once = await replay(gateway, id, over({ [`mcp:demo:${id}.call1`]: other('one') }));
    const exact = await replay(gateway, once.id);
    expect(await messages(gateway, exact)).toEqual(['one', 'todo says: Water the plants. Call Ana.']);
    const twice = await replay(gateway, once.id, over({ [`mcp:demo:${id}.call2`]: other('two') }));
    expect([twice.status, twice.failure]).toEqual(['COMPLETED', null]);
    expect(await messages(gateway, twice)).toEqual(['one', 'two']);
  });
});

describe('an agent that cannot be run again', () => {
  test('stops the replay at the first thing it said after it was given another answer', async () => {
    const { gateway, task, box, agent } = await play(everything);
    const events = await gateway.events(task.id);
    const [ran, starts] = [box.ran.length, agent.starts.length];
    const at = (kind: string, call: string) =>
      events.findIndex(({ event, payload }) => event === kind && payload.tool_call_id === call);
    const index = at('tool.requested', 'f1');
    const again = await replay(
      gateway,
      task.id,
      over({
        'mcp:box:w1': { kind: 'mcp_tool_return', value: 'other', visibility, reason: 'what if' },
        'mcp:box:long': { kind: 'mcp_tool_return', value: 'never reached', visibility },
        'time:started_at': { kind: 'time', value: '2026-04-25T19:16:14Z' },
      }),
    );
    expect(again).toMatchObject({
      status: 'FAILED',
      failure: {
        code: 'replay_dependency_unavailable',
        details: {
          dependency: { kind: 'host', id: 'agent:one', override_key: 'mcp:box:w1' },
          at: { event_id: events[index]!.id, index, event: 'tool.requested' },
          reason: 'agent_cannot_be_rerun',
        },
      },
    });
    const reported = await gateway.events(again.id);
    const originals = reported.flatMap(({ replay: mark }) => mark?.original_event_id ?? []);
    expect(originals).toContain(events[at('tool.completed', 'w1')]!.id);
    expect(originals.every((id) => id < events[index]!.id)).toBe(true);
    expect(reported.find(({ event }) => event === 'replay.failed')!.payload).toEqual(again.failure);
    // Only what was reached was replaced.
    const receipt = await gateway.receipt(again.id);
    expect(receipt.deltas!.map(({ override_key }) => override_key)).toEqual(['mcp:box:w1', 'time:started_at']);
    expect(receipt.lifecycle).toMatchObject({ final_state: 'FAILED', started_at: '2026-04-25T19:16:14Z' });
    expect([box.ran.length, agent.starts.length]).toEqual([ran, starts]);
  });

  test('goes on where nothing it was given is another', async () => {
    const { gateway, task } = await play(everything);
    const events = await gateway.events(task.id);
    const of = (kind: string) => events.find(({ event }) => event === kind) as CoreEvent;
    const again = await replay(
      gateway,
      task.id,
      over({
        'time:completed_at': { kind: 'time', value: '2026-04-25T19:16:14Z' },
        [`event:${of('com.example.mood').id}`]: { kind: 'event_payload', value: { mood: 'bad' }, visibility },
        // The same answer is no other answer.
        'llm:main:1': { kind: 'llm_provider_response', value: { text: 'use the tools' } },
      }),
    );
    expect([again.status, again.failure]).toEqual(['COMPLETED', null]);
  });

  test.each([
    ['of a secret: before what was said with it', 'secret:ACME_LOGIN', 'secret_value', 'span.completed'],
    ['of a model answer', 'llm:main:1', 'llm_provider_response', 'vendor.tollbridge.usage'],
    ['of a checkpoint', 'checkpoint:half', 'checkpoint_value', 'tool.requested'],
  ] as const)('%s', async (_, key, kind, stopped) => {
    const { gateway, task } = await play(everything);
    const again = await replay(gateway, task.id, over({ [key]: { kind, value: 'other than before' } }));
    expect(again.failure).toMatchObject({
      code: 'replay_dependency_unavailable',
      details: { at: { event: stopped }, dependency: { override_key: key } },
    });
    expect(JSON.stringify([await gateway.events(again.id), again, await gateway.receipt(again.id)])).not.toContain(
      'other than',
    );
  });

  test('an override of a decision stops before what followed from the decision', async () => {
    const { gateway, task } = await play(everything);
    const events = await gateway.events(task.id);
    const decided = events.find(
      ({ event, payload }) => event.endsWith('.decided') && (payload.action as JsonObject).tool_call_id === 'w1',
    )!;
    const decision = { verdict: 'block', reason: 'a stricter rule', engine: 'cedar' };
    const value = { ...decided.payload, decision } as JsonObject;
    const again = await replay(
      gateway,
      task.id,
      over({ [`event:${decided.id}`]: { kind: 'event_payload', value, visibility } }),
    );
    const reported = (await gateway.events(again.id)).filter(({ payload }) => payload.tool_call_id === 'w1');
    expect(kinds(reported)).toEqual(['tool.requested', 'tool.denied']);
    expect(again.failure?.details).toMatchObject({ at: { event: 'agent.tool_use' } });
  });
});

describe('values that are not public', () => {
  // Long enough that no random hash contains it.
  const secret = 4711_4711_4711;
  const canary = `CANARY-${secret}`;
  const hidden = ['internal', 'receipt_only', undefined] as const;

  test.each(hidden)(
    '%s: stand in no event, message, task or receipt, also where the agent repeats them',
    async (word) => {
      const { gateway, id } = await demo('read plan then ask what colour then artifact');
      const value = { text: `the plan is ${canary}`, [canary]: secret };
      const key = `mcp:demo:${id}.call1`;
      const again = await replay(
        gateway,
        id,
        over({ [key]: { kind: 'mcp_tool_return', value, ...(word && { visibility: word }) } }),
      );
      expect([again.status, again.failure]).toEqual(['COMPLETED', null]);
      const events = await gateway.events(again.id);
      const receipt = await gateway.receipt(again.id);
      expect(JSON.stringify([events, again, receipt])).not.toContain(String(secret));
      // A hash and the key stand for it, and the recorded words are not repeated either.
      const returned = events.find(({ event }) => event === 'tool.completed')!;
      expect(returned.payload.output).toEqual({
        type: 'replay_override',
        override_key: key,
        visibility: word ?? 'receipt_only',
        sha256: hashOf(value),
      });
      expect(receipt.deltas).toMatchObject([{ override_key: key, after_sha256: hashOf(value) }]);
      expect((await messages(gateway, again))[0]).toMatch(/^\[withheld/);
      // What the record says as well is reported.
      expect((await messages(gateway, again))[1]).toBe('You said: red');
      const stored = await gateway.runtime.store.list({ object: 'task', where: { parent_task_id: id } });
      expect(JSON.stringify(stored)).not.toContain(String(secret));
    },
  );

  test('by artifact: the stricter of the two counts', async () => {
    const { gateway, id } = await demo('read plan');
    const bytes = Buffer.from(JSON.stringify({ text: canary }));
    const made = async (word: 'public' | 'receipt_only') =>
      (
        await gateway.send(
          'artifact.register',
          { kind: 'other', mime_type: 'application/json', visibility: word },
          { bytes },
        )
      ).resource.id;
    const key = `mcp:demo:${id}.call1`;
    const run = async (artifact_id: string, word: 'public' | 'receipt_only') => {
      const task = await replay(
        gateway,
        id,
        over({ [key]: { kind: 'mcp_tool_return', artifact_id, visibility: word } }),
      );
      expect(task.status).toBe('COMPLETED');
      const receipt = await gateway.receipt(task.id);
      expect(receipt.deltas).toMatchObject([{ artifact_id, override_key: key }]);
      return JSON.stringify(await gateway.events(task.id));
    };
    const [open, closed] = [await made('public'), await made('receipt_only')];
    expect(await run(open, 'public')).toContain(canary);
    expect(await run(open, 'receipt_only')).not.toContain(canary);
    expect(await run(closed, 'public')).not.toContain(canary);
    expect(await run(closed, 'receipt_only')).toContain(`"artifact_id":"${closed}"`);
    // A caller that may not read the artifact cannot have a replay read it.
    const restricted = { ...ana, scopes: ['tasks:write', 'tasks:read', 'artifacts:read'] };
    const override = { [key]: { kind: 'mcp_tool_return' as const, artifact_id: closed } };
    const refused = gateway.send(
      'task.replay',
      { task_id: id, mode: 'with_overrides', override },
      { actor: restricted },
    );
    expect(await refusalOf(refused)).toMatchObject({ kind: 'permission_denied', param: `/override/${key}` });
  });

  test('a missing dependency does not name what only the value could have given', async () => {
    const { gateway, id } = await demo('read plan');
    const value = { text: `use ${canary} now` };
    const again = await replay(gateway, id, over({ [`llm:${id}.llm1`]: { kind: 'llm_provider_response', value } }));
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'replay_dependency_unavailable' } });
    expect(JSON.stringify([again, await gateway.events(again.id), await gateway.receipt(again.id)])).not.toContain(
      canary,
    );
  });

  test('an error about a request does not repeat them', async () => {
    const { gateway, id } = await demo('read plan');
    const bad: ReplayOverride[] = [
      { kind: 'time', value: canary },
      { kind: 'time', value: canary, sha256: `sha256:${'0'.repeat(64)}` },
    ];
    for (const override of bad) {
      const refused = await replay(gateway, id, over({ 'time:started_at': override })).then(
        () => 'it went through',
        (cause: Error) => JSON.stringify([cause.message, cause]),
      );
      expect(refused).toContain('time:started_at');
      expect(refused).not.toContain(canary);
    }
  });
});
