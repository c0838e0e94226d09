/** Agents as they are: they do not ask, tell things twice, write by themselves, and go on talking. Each is on record as it was. */

import { expect, test } from 'vitest';
import { within } from '../../../../adapters/acp/shapes.ts';
import { vendorEvent } from '../../../../src/model/events.ts';
import * as agents from '../../../support/acp/agents.ts';
import { CWD, openStage, type Stage, text, update } from '../../../support/acp/relay.ts';
import { of } from '../../../support/gateway/test-gateway.ts';

const ALLOW_WRITES = '[{ id: edits, when: { effect: write }, then: allow, say: edits are fine }]';

async function receipt({ home, task }: Stage) {
  const [only] = await home.receipts((await task()).id);
  return only;
}

test('one that never asks is on record as observed, and no more is claimed', async () => {
  const stage = await openStage({ rules: '[{ id: no-shell, when: { effect: execute }, then: block, say: no }]' });
  await stage.greeted();
  agents.neverAsks(stage.agent);
  await stage.prompt();
  expect((await receipt(stage))?.side_effects.tool_calls).toMatchObject([
    { call_id: 'c1', tool: 'execute', status: 'succeeded', metadata: { evidence: 'observed' } },
  ]);
});

test('one that writes to the disk itself is on record with what it reported', async () => {
  const stage = await openStage({ rules: ALLOW_WRITES });
  await stage.greeted();
  agents.writesItself(stage.agent);
  await stage.prompt();
  expect((await receipt(stage))?.side_effects.fs_writes).toMatchObject([{ path: 'b.txt', operation: 'modify' }]);
});

test.each(['result', 'quota', 'chunk'] as const)('what a turn used is found in its %s', async (where) => {
  const stage = await openStage();
  await stage.greeted();
  agents.saysUsage(stage.agent, where);
  await stage.prompt();
  const [usage] = of(await stage.home.events((await stage.task()).id), 'vendor.tollbridge.usage');
  expect(usage?.payload).toMatchObject({ input_tokens: 12, output_tokens: 3 });
});

test('what is said after the end arrives, and stands beside the receipt', async () => {
  const stage = await openStage();
  await stage.greeted();
  agents.talksLate(stage.agent);
  await stage.prompt();
  await stage.editor.received(({ params }) => JSON.stringify(params ?? {}).includes('and another'));
  await stage.relay.agentGone('done');
  const notes = of(await stage.home.all(), 'vendor.tollbridge.passthrough').filter(({ ext }) => ext);
  expect(notes.map(({ ext }) => ext)).toEqual([{ acp: { late: true, count: 2 } }]);
  expect((await stage.task()).status).toBe('COMPLETED');
});

test('two calls under one name are two calls', async () => {
  const stage = await openStage({ rules: ALLOW_WRITES });
  await stage.greeted();
  const answers: unknown[] = [];
  agents.reusesIds(stage.agent, answers);
  await stage.prompt();
  expect(answers).toEqual(['once', 'once']);
  const calls = (await receipt(stage))?.side_effects.tool_calls ?? [];
  expect(calls.map(({ call_id, status }) => [call_id, status])).toEqual([
    ['same', 'succeeded'],
    ['same#2', 'succeeded'],
  ]);
});

test('history reported again on loading arrives and is not written down again', async () => {
  const stage = await openStage();
  await stage.greeted({ init: { agentCapabilities: { loadSession: true } } });
  agents.replays(stage.agent);
  await stage.editor.ask('session/load', { sessionId: 's1', cwd: '/repo/project', mcpServers: [] });
  expect(stage.editor.frames.filter(({ method }) => method === 'session/update')).toHaveLength(2);
  await stage.relay.agentGone('done');
  const log = JSON.stringify(await stage.home.all());
  expect(log).not.toContain('said long ago');
});

test('what it thinks reaches the editor as it came; in the log its words are for editors alone', async () => {
  const stage = await openStage();
  await stage.greeted();
  const thought = (words: string) => update('agent_thought_chunk', { content: { type: 'text', text: words } });
  stage.agent.on('session/prompt', () => {
    for (const words of ['deep ', 'in ', 'thought']) stage.agent.notify('session/update', thought(words));
    stage.agent.notify('session/update', text('done'));
    return { stopReason: 'end_turn' };
  });
  await stage.prompt();
  const shown = stage.editor.frames.filter(({ method }) => method === 'session/update').map(({ params }) => params);
  expect(shown).toEqual([thought('deep '), thought('in '), thought('thought'), text('done')]);
  const kept = of(await stage.home.events((await stage.task()).id), 'vendor.acp.thought');
  expect(kept.map(({ payload, ext }) => [payload.characters, ext])).toEqual([
    [15, { acp: { update: thought('deep in thought').update } }],
  ]);
  expect(JSON.stringify(await receipt(stage))).not.toContain('deep');
});

test('a turn that stops for a reason nobody knows has not succeeded', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.agent.on('session/prompt', () => {
    stage.agent.notify('session/update', text('hm'));
    return { stopReason: 'bored' };
  });
  expect((await stage.prompt()).result).toEqual({ stopReason: 'bored' });
  expect(await stage.task()).toMatchObject({ status: 'FAILED', failure: { code: 'unknown_stop_reason' } });
});

test.each([
  ['session/set_model', { sessionId: 's1', modelId: 'large' }, { result: {} }],
  [
    'session/load',
    { sessionId: 'nobody', cwd: CWD, mcpServers: [] },
    { error: { code: -32603, message: 'not found' } },
  ],
  ['session/new', { cwd: CWD, mcpServers: [] }, { error: { code: -32000, message: 'Authentication required' } }],
  ['authenticate', { methodId: 'key' }, { error: { code: 1001, message: 'again', data: { restartable: true } } }],
])('%s is for the agent to answer, in its own words: %#', async (method, params, answer) => {
  const stage = await openStage();
  await stage.greeted({ init: { agentCapabilities: { loadSession: true } } });
  stage.agent.on(method, (_, { id }) => void stage.agent.say({ id, ...answer }));
  expect(await stage.editor.ask(method, params)).toMatchObject(answer);
  expect(stage.agent.frames.at(-1)).toMatchObject({ method, params });
});

test('words that stream by are kept with whom they belong to, however they are cut', async () => {
  const stage = await openStage();
  await stage.greeted();
  const chunk = (words: string, more: object = {}, kind = 'agent_message_chunk') =>
    stage.agent.notify('session/update', update(kind, { content: { type: 'text', text: words }, ...more }));
  stage.agent.on('session/prompt', () => {
    for (const words of ['a', 'b', 'c']) chunk(words, { messageId: 'm1' });
    chunk('d'); // unnamed: it goes on
    chunk('e', { messageId: 'm2' });
    chunk('f', { messageId: 'm2', _meta: { vendor: 1 } });
    chunk('g', { messageId: 'm2' });
    chunk('h', {}, 'agent_thought_chunk');
    chunk('i', {}, 'agent_thought_chunk');
    chunk('j');
    chunk('');
    chunk('k');
    return { stopReason: 'end_turn' };
  });
  await stage.prompt();
  const events = await stage.home.events((await stage.task()).id);
  const pieces = events.flatMap(({ event, payload, ext }) => {
    if (event === 'vendor.tollbridge.message_delta') return [String(payload.text)];
    const thought = event === vendorEvent('vendor.acp.thought') && within(ext, 'acp', 'update', 'content', 'text');
    return thought ? [`(${String(thought)})`] : [];
  });
  expect(pieces.join('|')).toBe('abcd|e|f|g|(hi)|jk');
  const said = of(events, 'agent.message').map(({ payload }) => within(payload.message, 'parts') as unknown);
  expect(said).toMatchObject([[{ text: 'abcd' }], [{ text: 'efg' }], [{ text: 'jk' }]]);
});
