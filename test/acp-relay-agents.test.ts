/** Agents as they are: they do not ask, ask late, ask with an id, tell things twice, and go on talking. Each is on record as it was. */
import { expect, test } from 'vitest';
import { within } from '../adapters/acp/shapes.ts';
import * as agents from './support/acp-agents.ts';
import { CWD, OPTIONS, openStage, picks, type Stage, text, update } from './support/acp-relay.ts';
import { of } from './support/house.ts';

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

test('one that asks before it tells is asked about what it asks', async () => {
  const stage = await openStage();
  await stage.greeted();
  const answers: unknown[] = [];
  agents.asksFirst(stage.agent, answers);
  stage.editor.on('session/request_permission', picks('reject_once'));
  await stage.prompt();
  expect(answers).toEqual(['no']);
  expect(stage.editor.frames.at(-2)?.params?.update).toMatchObject({
    sessionUpdate: 'tool_call_update',
    toolCallId: 'g1',
    status: 'failed',
  });
  expect((await receipt(stage))?.approvals).toMatchObject([
    { action: 'tool:edit', decision: 'denied', actor: 'local:ana' },
  ]);
});

test('one that asks with only an id is decided by what is known of the call', async () => {
  const rules =
    '[{ id: make, when: { effect: execute, arguments: { command: make } }, then: allow, say: building is fine }]';
  const stage = await openStage({ rules });
  await stage.greeted();
  const answers: unknown[] = [];
  agents.asksById(stage.agent, answers);
  await stage.prompt();
  expect(answers).toEqual(['once']);
  expect((await receipt(stage))?.side_effects.tool_calls).toMatchObject([
    { call_id: 'o1', tool: 'bash', status: 'succeeded', metadata: { evidence: 'asked', rule_id: 'make' } },
  ]);
});

test('a lasting permission is never chosen for someone, and is honoured and noted when a person chooses it', async () => {
  const byRule = await openStage({ rules: ALLOW_WRITES });
  await byRule.greeted();
  const answers: unknown[] = [];
  agents.offersAlways(byRule.agent, answers);
  await byRule.prompt();
  expect(answers).toEqual(['once']);

  const byPerson = await openStage();
  await byPerson.greeted();
  agents.offersAlways(byPerson.agent, answers);
  byPerson.editor.on('session/request_permission', picks('allow_always'));
  await byPerson.prompt();
  expect(answers).toEqual(['once', 'always-tool']);
  const events = await byPerson.home.events((await byPerson.task()).id);
  expect(of(events, 'vendor.acp.standing_grant').map(({ payload }) => payload)).toEqual([
    { tool_call_id: 'q1', by: 'local:ana' },
  ]);
});

test('where lasting permissions are hidden the editor is not offered any, and the log says so', async () => {
  const stage = await openStage({ relay: { standingGrants: 'hide' } });
  await stage.greeted();
  const answers: unknown[] = [];
  agents.offersAlways(stage.agent, answers);
  stage.editor.on('session/request_permission', picks('allow_once'));
  await stage.prompt();
  const question = stage.editor.frames.find(({ method }) => method === 'session/request_permission');
  expect(question?.params?.options).toEqual([
    { optionId: 'once', name: 'Allow', kind: 'allow_once' },
    { optionId: 'no', name: 'Reject', kind: 'reject_once' },
  ]);
  expect(answers).toEqual(['once']);
  expect(of(await stage.home.events((await stage.task()).id), 'vendor.acp.options_hidden')).toHaveLength(1);
});

test('when only a lasting permission is offered a rule cannot give it, and a person is asked', async () => {
  const stage = await openStage({ rules: ALLOW_WRITES });
  await stage.greeted();
  const answers: unknown[] = [];
  agents.offersAlways(stage.agent, answers, true);
  stage.editor.on('session/request_permission', picks('allow_always'));
  await stage.prompt();
  stage.editor.on('session/request_permission', picks('reject_once'));
  await stage.prompt();
  expect(answers).toEqual(['always-tool', 'no']);
});

test.each([
  { name: 'before it reports it', options: { first: true } },
  { name: 'after it reported it', options: { first: false } },
  { name: 'and reports it with a relative path', options: { first: true, reported: 'a.txt' } },
])('a write that goes through the editor $name is one write, and held', async ({ options }) => {
  const stage = await openStage();
  await stage.greeted();
  agents.writesTwice(stage.agent, options);
  stage.editor.on('session/request_permission', picks('allow_once'));
  stage.editor.on('fs/write_text_file', () => null);
  await stage.prompt();
  const { fs_writes = [], tool_calls = [] } = (await receipt(stage))?.side_effects ?? {};
  expect(fs_writes).toEqual([
    {
      path: 'a.txt',
      operation: 'modify',
      before_sha256: null,
      after_sha256: 'sha256:7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c',
    },
  ]);
  expect(tool_calls.map(({ tool, metadata }) => [tool, metadata?.evidence])).toEqual([
    ['Write', 'asked'],
    ['fs.write', 'held'],
  ]);
  // One yes to the call covers the file it was about.
  const asked = stage.editor.frames.filter(({ method }) => method === 'session/request_permission');
  expect(asked).toHaveLength(options.first ? 1 : 2);
});

test('one that writes to the disk itself is on record with what it told', async () => {
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
  await stage.editor.heard(({ params }) => JSON.stringify(params ?? {}).includes('and another'));
  await stage.relay.agentGone('done');
  const notes = of(await stage.home.all(), 'vendor.tollbridge.passthrough').filter(({ ext }) => ext);
  expect(notes.map(({ ext }) => ext)).toEqual([{ acp: { late: true, count: 2 } }]);
  expect((await stage.task()).status).toBe('COMPLETED');
});

test('a question after the end has a turn of its own', async () => {
  const stage = await openStage();
  await stage.greeted();
  const answers: unknown[] = [];
  agents.asksLate(stage.agent, answers);
  stage.editor.on('session/request_permission', picks('allow_once'));
  await stage.prompt();
  await stage.agent.heard(({ result }) => JSON.stringify(result ?? {}).includes('once'));
  const [late, first] = await stage.tasks();
  expect(first?.status).toBe('COMPLETED');
  expect((await stage.home.until(String(late?.id))).status).toBe('COMPLETED');
  expect(late?.input).toEqual({ kind: 'agent_initiated', method: 'session/request_permission' });
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

test('history told again on loading arrives and is not written down again', async () => {
  const stage = await openStage();
  await stage.greeted();
  agents.replays(stage.agent);
  await stage.editor.ask('session/load', { sessionId: 's1', cwd: '/repo/project', mcpServers: [] });
  expect(stage.editor.frames.filter(({ method }) => method === 'session/update')).toHaveLength(2);
  await stage.relay.agentGone('done');
  const log = JSON.stringify(await stage.home.all());
  expect(log).not.toContain('said long ago');
});

test('a question the agent takes back is closed everywhere', async () => {
  const stage = await openStage();
  await stage.greeted();
  const answers: unknown[] = [];
  agents.takesBack(stage.agent, answers);
  const done = stage.prompt();
  await stage.editor.heard(({ method }) => method === 'session/request_permission');
  stage.editor.notify('test/now', {});
  await done;
  expect(answers).toEqual(['cancelled']);
  // Once, in the agent's own words.
  expect(stage.editor.lines.filter((line) => line.includes('$/cancel_request'))).toEqual([
    '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"mine"}}',
  ]);
  const events = await stage.home.events((await stage.task()).id);
  expect(of(events, 'vendor.tollbridge.ask_closed')).toMatchObject([
    { actor: 'agent:bot', payload: { state: 'canceled', reason: 'whoever asked took the question back' } },
  ]);
  expect(of(events, 'tool.denied')[0]?.payload).toMatchObject({ code: 'approval_withdrawn' });
  expect((await receipt(stage))?.side_effects.tool_calls).toMatchObject([{ status: 'canceled' }]);
});

test('a file it no longer wants is not asked about any more, and not written', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.agent.on('session/prompt', async () => {
    const params = { sessionId: 's1', path: `${CWD}/a`, content: 'x' };
    const asked = stage.agent.ask('fs/write_text_file', params, 'file');
    await stage.agent.heard(({ method }) => method === 'test/now');
    stage.agent.notify('$/cancel_request', { requestId: 'file' });
    expect((await asked).error).toMatchObject({ code: 1403 });
    return { stopReason: 'end_turn' };
  });
  const done = stage.prompt();
  const dialog = await stage.editor.heard(({ method }) => method === 'session/request_permission');
  stage.editor.notify('test/now', {});
  await done;
  const taken = stage.editor.frames.filter(({ method }) => method === '$/cancel_request');
  expect(taken.map(({ params }) => params?.requestId)).toEqual(['file', dialog.id]);
  expect(stage.editor.frames.some(({ method }) => method === 'fs/write_text_file')).toBe(false);
});

test('a turn stopped elsewhere takes its question back from the editor before its agent has stopped', async () => {
  const stage = await openStage({ settings: { graceMs: 60_000 } });
  await stage.greeted();
  const answers: unknown[] = [];
  let finish: (id: unknown) => void = () => {};
  stage.agent.on('session/prompt', (_, { id }) => {
    finish = () => stage.agent.say({ id, result: { stopReason: 'cancelled' } });
    const params = { sessionId: 's1', toolCall: { toolCallId: 'x', kind: 'edit' }, options: OPTIONS };
    void stage.agent.ask('session/request_permission', params, 'q').then(({ result }) => answers.push(result));
    return undefined;
  });
  const done = stage.prompt();
  await stage.editor.heard(({ method }) => method === 'session/request_permission');
  const { id } = await stage.task();
  const canceling = stage.home.send('task.cancel', { task_id: id });
  await stage.editor.heard(({ method, params }) => method === '$/cancel_request' && params?.requestId === 'q');
  expect((await stage.task()).status).not.toBe('CANCELED');
  expect(of(await stage.home.events(id), 'vendor.tollbridge.ask_closed')).toHaveLength(1);
  await expect.poll(() => answers).toEqual([{ outcome: { outcome: 'cancelled' } }]);
  finish(id);
  expect((await done).result).toEqual({ stopReason: 'cancelled' });
  await canceling;
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

test('an option of a kind nobody knows is not a yes', async () => {
  const stage = await openStage();
  await stage.greeted();
  const answers: unknown[] = [];
  stage.agent.on('session/prompt', async () => {
    const options = [
      { optionId: 'maybe', name: 'Perhaps', kind: 'allow_sometimes' },
      { optionId: 'no', name: 'No', kind: 'reject_once' },
    ];
    const { result } = await stage.agent.ask('session/request_permission', {
      sessionId: 's1',
      toolCall: { toolCallId: 'x', kind: 'edit' },
      options,
    });
    answers.push(result);
    return { stopReason: 'end_turn' };
  });
  stage.editor.on('session/request_permission', picks('allow_sometimes'));
  await stage.prompt();
  expect(answers).toEqual([{ outcome: { outcome: 'selected', optionId: 'no' } }]);
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

test('one that reads a file before it asks and again after the yes has all of it held, under one question', async () => {
  const rules = '[{ id: reads, when: { effect: read }, then: allow, say: reading is fine }]';
  const stage = await openStage({ rules });
  await stage.greeted();
  const path = `${CWD}/a.txt`;
  const read = () => stage.agent.ask('fs/read_text_file', { sessionId: 's1', path });
  stage.agent.on('session/prompt', async () => {
    await read();
    const content = [{ type: 'diff', path, oldText: 'old\n', newText: 'new\n' }];
    const toolCall = {
      toolCallId: 'g',
      title: 'Edit',
      kind: 'edit',
      status: 'pending',
      content,
      locations: [{ path }],
    };
    await stage.agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
    await read();
    await stage.agent.ask('fs/write_text_file', { sessionId: 's1', path, content: 'new\n' });
    stage.agent.notify('session/update', update('tool_call_update', { toolCallId: 'g', status: 'completed', content }));
    return { stopReason: 'end_turn' };
  });
  stage.editor.on('fs/read_text_file', () => ({ content: 'old\n' }));
  stage.editor.on('fs/write_text_file', () => null);
  stage.editor.on('session/request_permission', picks('allow_once'));
  await stage.prompt();
  expect(stage.editor.frames.filter(({ method }) => method === 'session/request_permission')).toHaveLength(1);
  const sealed = await receipt(stage);
  expect(sealed?.side_effects.fs_writes).toMatchObject([{ path: 'a.txt', operation: 'modify' }]);
  expect(sealed?.side_effects.fs_writes?.[0]?.before_sha256).toMatch(/^sha256:/);
  expect(sealed?.side_effects.tool_calls?.map(({ tool, metadata }) => [tool, metadata?.evidence])).toEqual([
    ['fs.read', 'held'],
    ['Edit', 'asked'],
    ['fs.read', 'held'],
    ['fs.write', 'held'],
  ]);
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
  await stage.greeted();
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
    const thought = event === 'vendor.acp.thought' && within(ext, 'acp', 'update', 'content', 'text');
    return thought ? [`(${String(thought)})`] : [];
  });
  expect(pieces.join('|')).toBe('abcd|e|f|g|(hi)|jk');
  const said = of(events, 'agent.message').map(({ payload }) => within(payload.message, 'parts') as unknown);
  expect(said).toMatchObject([[{ text: 'abcd' }], [{ text: 'efg' }], [{ text: 'jk' }]]);
});
