/** How agents ask: late, with only an id, for what lasts, for the same thing twice, and no longer wanting to know. */
import { expect, test } from 'vitest';
import * as agents from '../../../support/acp/agents.ts';
import { CWD, OPTIONS, openStage, picks, type Stage, update } from '../../../support/acp/relay.ts';
import { of } from '../../../support/gateway/test-gateway.ts';

const ALLOW_WRITES = '[{ id: edits, when: { effect: write }, then: allow, say: edits are fine }]';

async function receipt({ home, task }: Stage) {
  const [only] = await home.receipts((await task()).id);
  return only;
}

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

test('one under a persona that only suggests asks about what the rules allow', async () => {
  const stage = await openStage({ rules: ALLOW_WRITES, relay: { persona: 'persona_careful' } });
  const body = {
    name: 'careful',
    version: '1',
    entry_workflow: 'bot',
    description: 'only suggests',
    autonomy_tier: 'suggest',
    receipt_policy: 'required',
  };
  await stage.home.send('resource.create', { object: 'persona', id: 'persona_careful', body });
  await stage.greeted();
  const answers: unknown[] = [];
  agents.asksFirst(stage.agent, answers);
  stage.editor.on('session/request_permission', picks('reject_once'));
  await stage.prompt();
  expect(answers).toEqual(['no']);
  expect(await stage.task()).toMatchObject({ persona_id: 'persona_careful' });
  expect((await receipt(stage))?.approvals).toMatchObject([{ decision: 'denied', actor: 'local:ana' }]);
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
  agents.supportsAlways(byRule.agent, answers);
  await byRule.prompt();
  expect(answers).toEqual(['once']);

  const byPerson = await openStage();
  await byPerson.greeted();
  agents.supportsAlways(byPerson.agent, answers);
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
  agents.supportsAlways(stage.agent, answers);
  stage.editor.on('session/request_permission', picks('allow_once'));
  await stage.prompt();
  const question = stage.editor.frames.find(({ method }) => method === 'session/request_permission');
  expect(question?.params?.options).toEqual([
    { optionId: 'once', name: 'Allow once (agent: Allow)', kind: 'allow_once' },
    { optionId: 'no', name: 'Reject', kind: 'reject_once' },
  ]);
  expect(answers).toEqual(['once']);
  expect(of(await stage.home.events((await stage.task()).id), 'vendor.acp.options_hidden')).toHaveLength(1);
});

test('when only a lasting permission is offered a rule cannot give it, and a person is asked', async () => {
  const stage = await openStage({ rules: ALLOW_WRITES });
  await stage.greeted();
  const answers: unknown[] = [];
  agents.supportsAlways(stage.agent, answers, true);
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

test('a question after the end has a turn of its own', async () => {
  const stage = await openStage();
  await stage.greeted();
  const answers: unknown[] = [];
  agents.asksLate(stage.agent, answers);
  stage.editor.on('session/request_permission', picks('allow_once'));
  await stage.prompt();
  await stage.agent.received(({ result }) => JSON.stringify(result ?? {}).includes('once'));
  const [late, first] = await stage.tasks();
  expect(first?.status).toBe('COMPLETED');
  expect((await stage.home.until(String(late?.id))).status).toBe('COMPLETED');
  expect(late?.input).toEqual({ kind: 'agent_initiated', method: 'session/request_permission' });
});

test('a question the agent takes back is closed everywhere', async () => {
  const stage = await openStage();
  await stage.greeted();
  const answers: unknown[] = [];
  agents.takesBack(stage.agent, answers);
  const done = stage.prompt();
  await stage.editor.received(({ method }) => method === 'session/request_permission');
  stage.editor.notify('_test/now', {});
  await done;
  expect(answers).toEqual(['cancelled']);
  // Once, in the agent's own words.
  expect(stage.editor.lines.filter((line) => line.includes('$/cancel_request'))).toEqual([
    '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"mine"}}',
  ]);
  const events = await stage.home.events((await stage.task()).id);
  expect(of(events, 'vendor.tollbridge.ask_closed')).toMatchObject([
    { actor: 'agent:bot', payload: { state: 'canceled', reason: 'the client that asked took the question back' } },
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
    await stage.agent.received(({ method }) => method === '_test/now');
    stage.agent.notify('$/cancel_request', { requestId: 'file' });
    expect((await asked).error).toMatchObject({ code: 1403 });
    return { stopReason: 'end_turn' };
  });
  const done = stage.prompt();
  const dialog = await stage.editor.received(({ method }) => method === 'session/request_permission');
  stage.editor.notify('_test/now', {});
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
  await stage.editor.received(({ method }) => method === 'session/request_permission');
  const { id } = await stage.task();
  const canceling = stage.home.send('task.cancel', { task_id: id });
  await stage.editor.received(({ method, params }) => method === '$/cancel_request' && params?.requestId === 'q');
  expect((await stage.task()).status).not.toBe('CANCELED');
  expect(of(await stage.home.events(id), 'vendor.tollbridge.ask_closed')).toHaveLength(1);
  await expect.poll(() => answers).toEqual([{ outcome: { outcome: 'cancelled' } }]);
  finish(id);
  expect((await done).result).toEqual({ stopReason: 'cancelled' });
  await canceling;
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
  ['tells more of its call while it is asked about', 'before'],
  ['reports the end of its call right behind the write', 'after'],
])('one that %s is asked about it once', async (_, when) => {
  const stage = await openStage();
  await stage.greeted();
  const path = `${CWD}/a.txt`;
  const of = (more: object) => update('tool_call_update', { toolCallId: 'w', ...more });
  const yes = picks('allow_once');
  stage.editor.on('session/request_permission', async (params, frame) => {
    if (when === 'before') {
      stage.agent.notify(
        'session/update',
        of({ status: 'in_progress', rawInput: { filePath: path, content: 'new\n' } }),
      );
      await stage.editor.received((each) => JSON.stringify(each).includes('in_progress'));
    }
    return yes(params, frame);
  });
  stage.editor.on('fs/write_text_file', () => null);
  stage.agent.on('session/prompt', async () => {
    const toolCall = {
      toolCallId: 'w',
      title: 'write',
      kind: 'edit',
      status: 'pending',
      locations: [{ path }],
      rawInput: { filepath: path, diff: '@@ -0,0 +1,1 @@\n+new\n' },
      content: [{ type: 'diff', path, oldText: '', newText: 'new\n' }],
    };
    await stage.agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
    const written = stage.agent.next(({ id, method }) => id === 'fs' && method === undefined);
    const write = { id: 'fs', method: 'fs/write_text_file', params: { sessionId: 's1', path, content: 'new\n' } };
    const end = { method: 'session/update', params: of({ status: 'completed' }) };
    const frames = when === 'after' ? [write, end] : [write];
    stage.agent.raw(frames.map((each) => `${JSON.stringify({ jsonrpc: '2.0', ...each })}\n`).join(''));
    expect((await written).error).toBeUndefined();
    return { stopReason: 'end_turn' };
  });
  expect((await stage.prompt()).result).toEqual({ stopReason: 'end_turn' });
  const sent = (wanted: string) => stage.editor.frames.filter(({ method }) => method === wanted);
  expect([sent('session/request_permission').length, sent('fs/write_text_file').length]).toEqual([1, 1]);
});

test('a call at a tool server of ours that a person approved when the agent asked is not asked about again, once', async () => {
  const rules = '[{ id: writes, when: { tool: "*write_file" }, then: ask, say: a person decides }]';
  const stage = await openStage({ rules });
  await stage.greeted();
  const rawInput = { path: '/a', content: 'x' };
  const call = async (args: object) => {
    const action = { kind: 'tool', tool: 'write_file', server: 'files', effect: 'write', arguments: args } as never;
    const { id } = await stage.task();
    return (await stage.home.send('action.propose', { task_id: id, action })).decision?.verdict;
  };
  const decided: unknown[] = [];
  stage.agent.on('session/prompt', async () => {
    const _meta = { claudeCode: { toolName: 'mcp__files__write_file' } };
    const toolCall = { toolCallId: 't1', title: 'files - write_file', kind: 'other', rawInput, _meta };
    await stage.agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
    stage.editor.on('session/request_permission', picks('reject_once'));
    decided.push(await call(rawInput), await call(rawInput), await call({ path: '/b', content: 'x' }));
    return { stopReason: 'end_turn' };
  });
  stage.editor.on('session/request_permission', picks('allow_once'));
  await stage.prompt();
  expect(decided).toEqual(['allow', 'block', 'block']);
  expect(stage.editor.frames.filter(({ method }) => method === 'session/request_permission')).toHaveLength(3);
});
