/**
 * A replay with other answers than the recorded ones: what changes, what follows from it, and how the receipt accounts
 * for it.
 */
import { describe, expect, test } from 'vitest';
import type { CommandBody } from '../../../../src/model/commands.ts';
import type { CoreEvent } from '../../../../src/model/events.ts';
import { Receipt } from '../../../../src/model/receipt.ts';
import type { Json, JsonObject } from '../../../../src/model/schema.ts';
import { check } from '../../../../src/model/validate.ts';
import { hashOf } from '../../../../src/receipt/seal/canonical-json.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { everything, play, replay } from '../../../support/tasks/replay.ts';
import { sameReceipt } from '../../../support/tasks/same-receipt.ts';

describe('overrides', () => {
  async function recorded(abilities = { reruns: true }) {
    const played = await play(everything, { abilities });
    const events = await played.gateway.events(played.task.id);
    const of = (kind: string, call?: string) =>
      events.find(({ event, payload }) => event === kind && (!call || payload.tool_call_id === call)) as CoreEvent;
    return { ...played, events, of };
  }
  const value = { text: 'something else' };
  const visibility = 'public';

  test('of every kind: the answer changes, and the receipt says how', async () => {
    const { gateway, task, of } = await recorded();
    const file = await gateway.send(
      'artifact.register',
      { kind: 'other', mime_type: 'application/json', visibility },
      { bytes: Buffer.from(JSON.stringify(value)) },
    );
    const again = await replay(gateway, task.id, {
      mode: 'with_overrides',
      reason: 'what if',
      override: {
        'llm:main:1': { kind: 'llm_provider_response', value, reason: 'another model', visibility },
        'mcp:box:w1': { kind: 'mcp_tool_return', value: null, visibility },
        'host:fail:f1': { kind: 'tool_result', artifact_id: file.resource.id, visibility },
        'host:edit:h1': { kind: 'host_fact', value: 'not written', sha256: hashOf('not written'), visibility },
        'time:started_at': { kind: 'time', value: '2026-04-25T19:16:14Z' },
        [`event:${of('com.example.mood').id}`]: { kind: 'event_payload', value: { mood: 'bad' }, visibility },
        [`event:${of('agent.handoff').id}`]: { kind: 'event_payload', value: null },
        'checkpoint:half': { kind: 'checkpoint_value', value: { at: 2 }, visibility },
      },
    });
    expect([again.status, again.failure]).toEqual(['COMPLETED', null]);
    const receipt = await gateway.receipt(again.id);
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
    // In the order of their keys, however the request has them.
    expect(receipt.deltas).toEqual([
      delta('checkpoint:half', material('checkpoint:half'), half, { at: 1 }, { at: 2 }),
      delta(`event:${mood.id}`, material(`event:${mood.id}`), mood, mood.payload, { mood: 'bad' }),
      delta(`event:${handoff.id}`, material(`event:${handoff.id}`), handoff, handoff.payload, null),
      delta('host:edit:h1', material('host:edit:h1'), of('tool.completed', 'h1'), 'written', 'not written'),
      {
        ...delta('host:fail:f1', material('host:fail:f1'), of('tool.failed', 'f1'), output('f1', 'tool.failed'), value),
        artifact_id: file.resource.id,
      },
      delta(
        'llm:main:1',
        material('llm:main:1'),
        of('span.completed'),
        { text: 'use the tools' },
        value,
        'another model',
      ),
      delta('mcp:box:w1', material('mcp:box:w1'), of('tool.completed', 'w1'), output('w1'), null),
      delta(
        'time:started_at',
        '/lifecycle/started_at',
        of('task.started'),
        of('task.started').created_at,
        '2026-04-25T19:16:14Z',
      ),
    ]);
    expect(receipt.lifecycle.started_at).toBe('2026-04-25T19:16:14Z');
    expect(receipt.replay_input.materials.slice(1).map(({ kind, id }) => [kind, id])).toEqual([
      ['event_log', 'checkpoint:half'],
      ['event_log', `event:${mood.id}`],
      ['event_log', `event:${handoff.id}`],
      ['host_fact', 'host:edit:h1'],
      ['host_fact', 'host:fail:f1'],
      ['llm_provider_response', 'llm:main:1'],
      ['mcp_tool_return', 'mcp:box:w1'],
    ]);

    const events = await gateway.events(again.id);
    const reported = (kind: string, call?: string) =>
      events.find(({ event, payload }) => event === kind && (!call || payload.tool_call_id === call)) as CoreEvent;
    expect(reported('span.completed').payload.response).toEqual(value);
    expect(reported('tool.completed', 'w1').payload.output).toBeNull();
    expect(reported('tool.failed', 'f1').payload).toMatchObject({ output: value, status: 'error' });
    expect(reported('tool.completed', 'h1').payload.output).toBe('not written');
    expect(reported('com.example.mood').payload).toEqual({ mood: 'bad' });
    expect(reported('agent.handoff')).toBeUndefined();
    expect(reported('vendor.tollbridge.checkpoint').payload.value).toEqual({ at: 2 });
    // Only what an override changed carries its key.
    expect(reported('tool.completed', 'w1').replay).toMatchObject({
      original_event_id: of('tool.completed', 'w1').id,
      override_key: 'mcp:box:w1',
      receipt_delta_id: 'delta_mcp_box_w1',
    });
    expect(reported('tool.completed', 'p2').replay).not.toHaveProperty('override_key');
    const keys = events.flatMap(({ replay: mark }) => mark?.override_key ?? []);
    expect(keys).toHaveLength(new Set(keys).size);
  });

  test('the same overrides give the same receipt, other ones do not', async () => {
    const { gateway, task } = await recorded();
    const run = async (words: string) => {
      const override = { 'llm:main:1': { kind: 'llm_provider_response' as const, value: words } };
      return await gateway.receipt((await replay(gateway, task.id, { mode: 'with_overrides', override })).id);
    };
    const [one, two, three] = [await run('a'), await run('a'), await run('b')];
    expect(sameReceipt(one, two)).toBe(true);
    expect(sameReceipt(one, three)).toBe(false);
  });

  test('of a decision: what was allowed is refused, and nothing follows from the call', async () => {
    const { gateway, task, events } = await recorded();
    const decided = events.find(
      ({ event, payload }) => event.endsWith('.decided') && (payload.action as JsonObject).tool_call_id === 'w1',
    )!;
    const decision = { verdict: 'block', reason: 'a stricter rule', engine: 'cedar' };
    const again = await replay(gateway, task.id, {
      mode: 'with_overrides',
      override: {
        [`event:${decided.id}`]: { kind: 'event_payload', value: { ...decided.payload, decision } as JsonObject },
      },
    });
    expect([again.status, again.failure]).toEqual(['COMPLETED', null]);
    const reported = (await gateway.events(again.id)).filter(
      ({ event, payload }) => event.startsWith('tool.') && payload.tool_call_id === 'w1',
    );
    expect(reported.map(({ event }) => event)).toEqual(['tool.requested', 'tool.denied']);
    // Nobody said that the rule may be known.
    expect(JSON.stringify(await gateway.events(again.id))).not.toContain('a stricter rule');
  });

  test('what is wrong with a request is said by name', async () => {
    const { gateway, task, of } = await recorded();
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
      [{ mode: 'with_overrides', override: { 'constructor:x': llm } }, 'invalid_request', '/override/constructor:x'],
      [{ mode: 'with_overrides', override: { 'llm:a/b~c': llm } }, 'invalid_request', '/override/llm:a~1b~0c'],
      [{ mode: 'exact', checkpoint_id: 'half' }, 'invalid_request', '/checkpoint_id'],
      [
        { mode: 'from_checkpoint', checkpoint_id: 'half', checkpoint_event_id: of('com.example.mood').id },
        'invalid_request',
        '/checkpoint_event_id',
      ],
      [
        {
          mode: 'with_overrides',
          override: { 'llm:main:1': { ...llm, event_id: of('com.example.mood').id } },
        },
        'invalid_request',
        '/override/llm:main:1',
      ],
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
        '/override/mcp:box:w1',
      ],
    ];
    for (const [body, kind, param] of wrong) {
      expect(await refusalOf(replay(gateway, task.id, body)), JSON.stringify(body)).toEqual({ kind, param });
    }
    expect(
      await refusalOf(replay(gateway, task.id, { mode: 'from_checkpoint', checkpoint_id: 'never' })),
    ).toMatchObject({
      kind: 'not_found',
    });
    // The keys there are come with the refusal of one there is not.
    const unknown = replay(gateway, task.id, { mode: 'with_overrides', override: { 'llm:other': llm } });
    await expect(unknown).rejects.toMatchObject({
      details: { known: expect.arrayContaining(['llm:main:1', 'mcp:box:w1', 'time:started_at', 'secret:ACME_LOGIN']) },
    });
    // Nothing of all this was written down.
    expect(await gateway.runtime.store.list({ object: 'task', where: { parent_task_id: task.id } })).toEqual([]);
  });
});
