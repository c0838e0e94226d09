/** How a call ends and what is on record with it, and who serves it. */
import { describe, expect, test } from 'vitest';
import type { ToolResult } from '../../../../src/model/actions.ts';
import type { Fault } from '../../../../src/model/faults.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { ActResult, ToolBackend } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { play } from '../../../support/gateway/scripted-run.ts';
import { kinds, of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools, SEND } from '../../../support/gateway/tools.ts';

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
      outcome: 'failed',
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
    expect(output).toMatchObject({ type: 'artifact_ref', visibility: 'public', bytes: 2011 });
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
    const received: Fault[] = [];
    const { t, task } = await play(async (sink) => {
      await sink.act({ ...SEND, tool: 'fly' }).catch((cause) => received.push(cause));
    });
    await t.until(task.id);
    expect(received).toMatchObject([{ kind: 'not_found', message: 'no tool fly is mounted' }]);
    expect(of(await t.events(task.id), 'tool.requested')).toEqual([]);
  });
});

describe('who serves a tool', () => {
  const twice = (name: string) => countingTools({ send: { effect: 'send' } }, name);

  test('a tool name that two servers have must be given with its server', async () => {
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

  test('kind, effect and evidence of a call are those of the mounted tool, whatever the caller claims', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestGateway({ rules: '- { id: all, then: allow }', tools: [tools] });
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
