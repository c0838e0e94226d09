/** What crosses the gateway from an editor to an agent of the same protocol and back, and what is kept of it on the way. */
import { describe, expect, test } from 'vitest';
import { createOutput } from '../../../adapters/acp/client/acts/command-output.ts';
import { effectsOf } from '../../../adapters/acp/client/acts/effects.ts';
import { createMeter, NOTHING_SPENT } from '../../../adapters/acp/client/usage.ts';
import { fromBlock, toBlock } from '../../../adapters/acp/content.ts';
import { merged, toCoreFailure, toolNameOf, toWireStop } from '../../../adapters/acp/translate.ts';
import type { Part } from '../../../src/model/resources.ts';
import { openAgentGateway } from '../../support/acp/agent-gateway.ts';
import { type Editor, openEditor } from '../../support/acp/client.ts';
import { of } from '../../support/gateway/test-gateway.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';
const OURS = { _meta: { tollbridge: {} } };

async function crossing(options: Parameters<typeof openAgentGateway>[0] = {}, capabilities: object = OURS) {
  const at = await openAgentGateway(options);
  const editor = await openEditor(at.t, { capabilities });
  const sessionId = await editor.session(at.dir);
  const give = (prompt: object[]) => editor.call('session/prompt', { sessionId, prompt });
  return { at, editor, sessionId, give };
}
const steps = (...updates: object[]) => [{ type: 'text', text: JSON.stringify(updates.map((update) => ({ update }))) }];

describe('a prompt', () => {
  const image = { type: 'image', data: PIXEL, mimeType: 'image/png' };
  const file = { type: 'resource', resource: { uri: 'file:///w/a.txt', text: 'words', mimeType: 'text/plain' } };
  const link = { type: 'resource_link', uri: 'file:///w/b.txt', name: 'b.txt', mimeType: 'text/plain', title: 'B' };

  test('arrives whole at an agent that can take all of it', async () => {
    const can = { promptCapabilities: { image: true, embeddedContext: true } };
    const { at, give } = await crossing({ agent: { can } });
    await give([{ type: 'text', text: 'look' }, image, file, link]);
    const [sent] = at.notes('prompt').map((line) => JSON.parse(line));
    expect(sent).toMatchObject([{ type: 'text', text: 'look' }, image, file, link]);
    const [artifact] = await at.t.runtime.store.list<{ kind: string } & never>({ object: 'artifact' });
    expect(artifact).toMatchObject({ kind: 'image', mime_type: 'image/png' });
    expect(JSON.stringify(await at.t.all())).not.toContain(PIXEL);
  });

  test('arrives as text and links at one that cannot', async () => {
    const { at, give } = await crossing();
    await give([image, file, link]);
    const [sent] = at.notes('prompt').map((line) => JSON.parse(line));
    expect(sent.map(({ type }: { type: string }) => type)).toEqual(['resource_link', 'text', 'resource_link']);
    expect(sent[1].text).toBe('words');
  });
});

describe('what an agent says', () => {
  test('a picture is kept as a file and shown as a picture, in its place', async () => {
    const chunk = (content: object) => ({ sessionUpdate: 'agent_message_chunk', content });
    const { at, editor, give } = await crossing();
    const picture = { type: 'image', data: PIXEL, mimeType: 'image/png' };
    const { _meta } = await give(
      steps(chunk({ type: 'text', text: 'before' }), chunk(picture), chunk({ type: 'text', text: 'after' })),
    );
    const shown = editor.updates('agent_message_chunk').map(({ content }) => content.text ?? content.data);
    expect(shown).toEqual(['before', PIXEL, 'after']);
    const parts = of(await at.t.events(_meta.tollbridge.taskId), 'agent.message').map(
      ({ payload }) => (payload.message as unknown as { parts: Part[] }).parts[0]?.type,
    );
    expect(parts).toEqual(['text', 'image_ref', 'text']);
  });

  test('chunks with one message id are one message; another id or another update begins the next', async () => {
    const chunk = (text: string, messageId?: string) => ({
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'text', text },
      ...(messageId && { messageId }),
    });
    const { at, give } = await crossing();
    const { _meta } = await give(
      steps(
        chunk('a', '1'),
        chunk('b', '1'),
        chunk('c', '2'),
        { sessionUpdate: 'plan', entries: [] },
        chunk('d'),
        chunk(''),
      ),
    );
    const texts = of(await at.t.events(_meta.tollbridge.taskId), 'agent.message').map(
      ({ payload }) => (payload.message as unknown as { parts: { text: string }[] }).parts[0]?.text,
    );
    expect(texts).toEqual(['ab', 'c', 'd']);
  });

  describe('thoughts', () => {
    const thought = (text: string, more: object = {}) => ({
      sessionUpdate: 'agent_thought_chunk',
      content: { type: 'text', text },
      ...more,
    });
    const said = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'so it is' } };
    const shown = (editor: Editor) => editor.updates('agent_thought_chunk').map(({ content }) => content.text);

    test('stream to an editor as they came, and to no other door in words', async () => {
      const { at, editor, give } = await crossing();
      const marked = thought('a second look', { messageId: 'm-1', _meta: { vendor: { n: 1 } } });
      const { _meta } = await give(steps(thought('hidden words, '), thought('more of them'), marked, said));
      expect(editor.updates().slice(0, 3)).toEqual([thought('hidden words, '), thought('more of them'), marked]);
      const events = await at.t.events(_meta.tollbridge.taskId);
      // What it was to think stands in the prompt, and so in the task.
      const reported = events.filter(({ event, actor }) => actor === 'agent:scripted' && !event.startsWith('task.'));
      const published = JSON.stringify(reported.map(({ event, payload }) => ({ event, payload })));
      expect(published).not.toContain('hidden words');
      expect(of(events, 'vendor.acp.thought').map(({ payload }) => payload.characters)).toEqual([14, 12, 13]);
      expect(of(events, 'agent.reasoning_summary')).toEqual([]);
      expect(JSON.stringify(await at.t.receipts(_meta.tollbridge.taskId))).not.toContain('hidden words');
    });

    test('are replayed whole, at the position where they were thought', async () => {
      const { at, editor, give, sessionId } = await crossing();
      await give(steps(thought('one '), thought('thought'), said, thought('another'), said));
      const second = await openEditor(at.t);
      await second.call('session/load', { sessionId, cwd: at.dir, mcpServers: [] });
      const kinds = (who: Editor) => who.updates().map(({ sessionUpdate: kind, content }) => [kind, content.text]);
      expect(kinds(second).slice(1)).toEqual([
        ['agent_thought_chunk', 'one thought'],
        ['agent_message_chunk', 'so it is'],
        ['agent_thought_chunk', 'another'],
        ['agent_message_chunk', 'so it is'],
      ]);
      expect(shown(editor)).toEqual(['one ', 'thought', 'another']);
    });

    test('are published as summaries besides where the configuration says so, and not reported twice', async () => {
      const { at, editor, give } = await crossing({ config: { thoughts: 'summary' } });
      const { _meta } = await give(steps(thought('h'), thought('m'), said));
      expect(shown(editor)).toEqual(['h', 'm']);
      expect(of(await at.t.events(_meta.tollbridge.taskId), 'agent.reasoning_summary')[0]?.payload.text).toBe('hm');
    });

    test('are not kept at all where it says that', async () => {
      const { at, editor, give } = await crossing({ config: { thoughts: 'drop' } });
      await give(steps(thought('gone'), said));
      expect(shown(editor)).toEqual([]);
      expect(of(await at.t.all(), 'vendor.acp.thought')).toEqual([]);
    });
  });

  test('members nobody models arrive as they left', async () => {
    const chunk = {
      sessionUpdate: 'agent_message_chunk',
      messageId: 'm-7',
      content: { type: 'text', text: 'x', annotations: { audience: ['user'] } },
      _meta: { vendor: { n: 1 } },
    };
    const call = {
      sessionUpdate: 'tool_call',
      toolCallId: 'c1',
      title: 'Read it',
      kind: 'read',
      status: 'pending',
      locations: [{ path: '/w/a', line: 3 }],
      _meta: { claudeCode: { toolName: 'Read' } },
    };
    const progress = { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'in_progress', vendorField: [1] };
    const done = {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'c1',
      status: 'completed',
      content: [{ type: 'content', content: { type: 'text', text: 'ok' } }],
      rawOutput: { ok: true },
      _meta: { claudeCode: { toolResponse: {} } },
    };
    const usage = { sessionUpdate: 'usage_update', used: 10, size: 100, cost: { amount: 0.5, currency: 'USD' } };
    const commands = {
      sessionUpdate: 'available_commands_update',
      availableCommands: [{ name: 'go', description: 'goes' }],
    };
    const unknown = { sessionUpdate: 'hologram_update', beams: [1, 2] };
    const sent = [chunk, call, progress, done, usage, commands, unknown];
    const { editor, give } = await crossing();
    await give(steps(...sent));
    expect(editor.updates()).toEqual(sent);
    const plain = await crossing({}, {});
    await plain.give(steps(unknown, commands));
    expect(plain.editor.updates()).toEqual([commands]);
  });

  test('a call that was reported twice under one name is two calls', async () => {
    const call = (status: string) => ({
      sessionUpdate: 'tool_call',
      toolCallId: 'c',
      title: 'x',
      kind: 'read',
      status,
    });
    const { at, give } = await crossing();
    const { _meta } = await give(steps(call('completed'), call('completed')));
    const ended = of(await at.t.events(_meta.tollbridge.taskId), 'tool.completed').map(
      ({ payload }) => payload.tool_call_id,
    );
    expect(ended).toEqual(['c', 'c#2']);
  });

  test('what was begun and never ended is closed with the turn', async () => {
    const { at, give } = await crossing();
    const call = { sessionUpdate: 'tool_call', toolCallId: 'c', title: 'x', kind: 'execute', status: 'in_progress' };
    const { _meta } = await give(steps(call));
    const [receipt] = await at.t.receipts(_meta.tollbridge.taskId);
    expect(receipt?.side_effects.tool_calls).toMatchObject([
      { call_id: 'c', status: 'failed', metadata: { outcome: 'unknown' } },
    ]);
  });

  test('what it reported of itself before it had work is reported with the work', async () => {
    const commands = {
      sessionUpdate: 'available_commands_update',
      availableCommands: [{ name: 'go', description: 'goes' }],
    };
    const { at, editor, give } = await crossing({ agent: { opensWith: commands } });
    const { _meta } = await give([{ type: 'text', text: 'x' }]);
    expect(of(await at.t.events(_meta.tollbridge.taskId), 'vendor.acp.commands')).toHaveLength(1);
    expect(editor.updates('available_commands_update')).toEqual([commands]);
  });

  test('a mode it changes to is on record with what it means for being asked, and is not shown as a mode of ours', async () => {
    const mode = (currentModeId: string) => ({ sessionUpdate: 'current_mode_update', currentModeId });
    const { at, editor, give } = await crossing();
    const { _meta } = await give(steps(mode('yolo'), mode('disco')));
    expect(
      of(await at.t.events(_meta.tollbridge.taskId), 'vendor.acp.config_changed').map(({ payload }) => payload),
    ).toEqual([
      { config: 'mode', to: 'yolo', tier: 'act_auto' },
      { config: 'mode', to: 'disco', tier: 'act_with_approval', tier_unknown: true },
    ]);
    expect(editor.updates('current_mode_update')).toEqual([]);
  });

  test('what a turn cost is its share of what the session cost', async () => {
    const usage = (amount: number) => ({
      sessionUpdate: 'usage_update',
      used: 1,
      size: 2,
      cost: { amount, currency: 'USD' },
    });
    const { at, give } = await crossing();
    const costs: unknown[] = [];
    for (const amount of [0.25, 1]) {
      const { _meta } = await give(steps(usage(amount)));
      const [used] = of(await at.t.events(_meta.tollbridge.taskId), 'vendor.tollbridge.usage');
      costs.push(used?.payload.usd_micros);
    }
    expect(costs).toEqual([250_000, 750_000]);
  });
});

describe('small things', () => {
  test('tokens are counted wherever the agent reports them, and no report is no count', () => {
    expect(createMeter(NOTHING_SPENT).total({})).toBeUndefined();
    expect(createMeter(NOTHING_SPENT).total({ usage: { inputTokens: 3, outputTokens: 4 } })).toEqual({
      provider: 'acp',
      input_tokens: 3,
      output_tokens: 4,
    });
    const quota = { token_count: { input_tokens: 5, output_tokens: 6 }, model_usage: [{ model: 'm' }] };
    expect(createMeter(NOTHING_SPENT).total({ _meta: { quota } })).toEqual({
      provider: 'acp',
      model: 'm',
      input_tokens: 5,
      output_tokens: 6,
    });
    const chunked = createMeter(NOTHING_SPENT);
    chunked.chunk({ _meta: { usage: { inputTokens: 1, outputTokens: 2 } } });
    chunked.chunk({ _meta: { usage: { inputTokens: 1, outputTokens: 2 } } });
    expect(chunked.total(null)).toEqual({ provider: 'acp', input_tokens: 2, output_tokens: 4 });
  });

  test('another currency, or money that comes back, is not a cost', () => {
    const meter = createMeter({ amount: 5, currency: 'USD' });
    meter.update({ cost: { amount: 4, currency: 'USD' } });
    expect(meter.total({})).toBeUndefined();
    meter.update({ cost: { amount: 9, currency: 'EUR' } });
    expect(meter.total({})).toBeUndefined();
  });

  test('the name of a tool is the best anyone gave it', () => {
    const base = { toolCallId: 'c', title: 'Read the plan', kind: 'read' };
    expect(toolNameOf(merged(undefined, base))).toBe('read');
    expect(toolNameOf(merged(undefined, { ...base, title: 'read_file' }))).toBe('read_file');
    expect(toolNameOf(merged(undefined, { ...base, _meta: { toolName: 'cat' } }))).toBe('cat');
    expect(toolNameOf(merged(undefined, { ...base, name: 'Read', _meta: { toolName: 'cat' } }))).toBe('Read');
    expect(toolNameOf(merged(undefined, { toolCallId: 'c' }))).toBe('tool');
  });

  test('the first title stays; a null changes nothing', () => {
    const first = merged(undefined, { toolCallId: 'c', title: 'one', rawInput: { a: 1 } });
    expect(merged(first, { toolCallId: 'c', title: 'Allow one?', rawInput: null, kind: 'edit' })).toEqual({
      toolCallId: 'c',
      title: 'one',
      rawInput: { a: 1 },
      kind: 'edit',
    });
  });

  test('what a call did to files is reported once, from the root of the workspace', () => {
    const written = new Set<string>();
    const at = { cwd: '/w', written, evidence: 'observed' };
    const diff = (path: string) => ({ type: 'diff', path, oldText: null, newText: 'hi' });
    const call = merged(undefined, {
      toolCallId: 'c',
      kind: 'edit',
      content: [diff('a.txt'), diff('/w/a.txt'), diff('/etc/x')],
    });
    const after_sha256 = 'sha256:8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4';
    const create = { type: 'fs_write', operation: 'create', before_sha256: null, after_sha256 };
    expect(effectsOf(call, at).effects).toEqual([
      { ...create, path: 'a.txt' },
      { ...create, path: '/etc/x' },
    ]);
    const gone = merged(undefined, { toolCallId: 'd', kind: 'delete', locations: [{ path: '/w/b' }] });
    expect(effectsOf(gone, at).effects).toEqual([{ type: 'fs_write', path: 'b', operation: 'delete' }]);
    const fetched = merged(undefined, {
      toolCallId: 'e',
      kind: 'fetch',
      name: 'get',
      rawInput: { url: 'https://a.example/x' },
    });
    expect(effectsOf(fetched, at).effects).toEqual([{ type: 'network', destination: 'a.example', purpose: 'get' }]);
    const shell = merged(undefined, { toolCallId: 'f', kind: 'execute', rawInput: { command: 'rm b' } });
    expect(effectsOf(shell, at).effects).toEqual([]);
  });

  test('an error of an agent is cut between two characters', () => {
    const message = `${'x'.repeat(499)}\u{1f600}`;
    const { failure } = toCoreFailure({ code: -32603, message, data: { code: `${'y'.repeat(99)}\u{1f600}` } }, false);
    expect([failure?.message, failure?.details]).toEqual(['x'.repeat(499), { code: -32603, word: 'y'.repeat(99) }]);
  });

  test('every end of a task has a stop reason or an error', () => {
    expect([
      toWireStop('COMPLETED', undefined),
      toWireStop('CANCELED', undefined),
      toWireStop('FAILED', { code: 'budget_exhausted', details: { limit: 'requests' } }),
      toWireStop('FAILED', { code: 'budget_exhausted' }),
      toWireStop('FAILED', { code: 'refused' }),
      toWireStop('FAILED', { code: 'policy_violation' }),
      toWireStop('FAILED', { code: 'boom', message: 'it went boom' }),
    ]).toEqual([
      { stop: 'end_turn' },
      { stop: 'cancelled' },
      { stop: 'max_turn_requests' },
      { stop: 'max_tokens' },
      { stop: 'refusal' },
      { stop: 'refusal' },
      { code: -32603, message: 'it went boom', data: { code: 'boom' } },
    ]);
  });

  test('blocks become parts and come back', () => {
    const wants = { image: true, embed: true };
    for (const block of [
      { type: 'text', text: 'x' },
      { type: 'text', text: 'x', annotations: { priority: 0.5 }, _meta: { a: 1 } },
      { type: 'resource_link', uri: 'file:///a/b.md', name: 'b', mimeType: 'text/markdown', size: 3 },
      { type: 'resource', resource: { uri: 'file:///a', mimeType: 'text/plain', text: 'x' } },
      { type: 'hologram', beams: 2 },
    ]) {
      const from = fromBlock(block) as { part: Part };
      expect(toBlock(from.part, undefined, wants)).toEqual(block);
    }
  });

  test('the end of an output is kept, cut where a character begins', () => {
    const output = createOutput(5, 4);
    for (const piece of ['abc', 'dé', 'fg']) output.add(Buffer.from(piece));
    expect([output.text(), output.truncated, output.size]).toEqual(['défg', true, 8]);
    const cut = createOutput(3, 0);
    cut.add(Buffer.from('ééé'));
    expect(cut.text()).toBe('é');
    expect(Buffer.from(output.kept()).toString()).toBe('abcd');
  });
});
