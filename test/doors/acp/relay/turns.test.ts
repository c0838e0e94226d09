/** Turns through the relay: what is decided first, what is on record afterwards, and what the editor and the agent hear. */
import { expect, test } from 'vitest';
import type { CoreEvent } from '../../../../src/model/events.ts';
import { Fault } from '../../../../src/model/faults.ts';
import { openEditor } from '../../../support/acp/client.ts';
import { CWD, editorPerson, OPTIONS, openStage, picks, text, update } from '../../../support/acp/relay.ts';
import { kinds, of } from '../../../support/gateway/test-gateway.ts';

test('a turn is a task with its words, its calls and a receipt', async () => {
  const { editor, agent, home, task, greeted, prompt } = await openStage();
  await greeted();
  agent.on('session/prompt', () => {
    agent.notify('session/update', text('Hel'));
    agent.notify('session/update', text('lo'));
    agent.notify(
      'session/update',
      update('plan', { entries: [{ content: 'a', priority: 'high', status: 'pending' }] }),
    );
    return { stopReason: 'end_turn' };
  });
  const answer = await prompt('hi there');
  expect(answer.result).toEqual({ stopReason: 'end_turn' });
  const { id, status, assigned_agent_id } = await task();
  expect({ status, assigned_agent_id }).toEqual({ status: 'COMPLETED', assigned_agent_id: 'bot' });
  const events = await home.events(id);
  expect(of(events, 'user.message')[0]?.payload.message).toMatchObject({ parts: [{ text: 'hi there' }] });
  expect(of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text)).toEqual(['Hello']);
  expect(of(events, 'agent.message')[0]?.payload.message).toMatchObject({ parts: [{ text: 'Hello' }] });
  expect(kinds(events).indexOf('agent.message')).toBeLessThan(kinds(events).indexOf('vendor.tollbridge.plan'));
  expect(await home.receipts(id)).toHaveLength(1);
  expect(editor.frames.map(({ method, id: answered }) => method ?? answered)).toEqual([
    0,
    1,
    'session/update',
    'session/update',
    'session/update',
    2,
  ]);
});

test('a prompt a rule forbids never reaches the agent, and the editor hears why', async () => {
  const rules = '[{ id: no-secrets, when: { kind: prompt }, then: block, say: prompts are off today }]';
  const { editor, agent, greeted, prompt, tasks } = await openStage({ rules });
  await greeted();
  const answer = await prompt();
  expect(answer.result).toEqual({ stopReason: 'refusal' });
  expect(editor.frames.at(-2)?.params?.update).toEqual({
    sessionUpdate: 'agent_message_chunk',
    content: { type: 'text', text: 'Refused by rule no-secrets: prompts are off today\n' },
  });
  expect(agent.frames.map(({ method }) => method)).toEqual(['initialize', 'session/new']);
  expect(await tasks()).toEqual([]);
});

test('a prompt that needs a yes waits for it, at the editor', async () => {
  const rules = '[{ id: ask-first, when: { kind: prompt }, then: ask, say: think again }]';
  const { editor, agent, greeted, prompt, task } = await openStage({ rules });
  await greeted();
  agent.on('session/prompt', () => ({ stopReason: 'end_turn' }));
  editor.on('session/request_permission', picks('allow_once'));
  expect((await prompt()).result).toEqual({ stopReason: 'end_turn' });
  expect((await task()).status).toBe('COMPLETED');

  editor.on('session/request_permission', picks('reject_once'));
  expect((await prompt()).result).toEqual({ stopReason: 'refusal' });
  expect(await task()).toMatchObject({ status: 'FAILED', failure: { code: 'policy_violation' } });
  expect(agent.frames.filter(({ method }) => method === 'session/prompt')).toHaveLength(1);
});

test('a rule answers a permission request by kind, and the editor never sees it', async () => {
  const rules = '[{ id: edits, when: { effect: write }, then: allow, say: edits are fine }]';
  const { editor, agent, greeted, prompt, task, home } = await openStage({ rules });
  await greeted();
  agent.on('session/prompt', async () => {
    const toolCall = { toolCallId: 't1', title: 'Edit a.ts', kind: 'edit', rawInput: { path: 'a.ts' } };
    const { result } = await agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
    agent.notify('session/update', update('tool_call_update', { toolCallId: 't1', status: 'completed' }));
    expect(result).toEqual({ outcome: { outcome: 'selected', optionId: 'once' } });
    return { stopReason: 'end_turn' };
  });
  await prompt();
  expect(editor.frames.some(({ method }) => method === 'session/request_permission')).toBe(false);
  const [receipt] = await home.receipts((await task()).id);
  expect(receipt?.side_effects.tool_calls).toMatchObject([
    { call_id: 't1', status: 'succeeded', metadata: { evidence: 'asked', verdict: 'allow', rule_id: 'edits' } },
  ]);
});

const NO_SHELL = '[{ id: no-shell, when: { effect: execute }, then: block, say: no shells here }]';
const REFUSED = [{ type: 'content', content: { type: 'text', text: 'Refused by rule no-shell: no shells here' } }];

test('a blocked call is rejected by kind, and the editor shows the rule and the reason at once and to the end', async () => {
  const { editor, agent, greeted, prompt } = await openStage({ rules: NO_SHELL });
  await greeted();
  agent.on('session/prompt', async () => {
    const toolCall = { toolCallId: 't1', title: 'ls', kind: 'execute' };
    const { result } = await agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
    const meta = { reason: 'no shells here', rule: 'no-shell' };
    expect(result).toEqual({ outcome: { outcome: 'selected', optionId: 'no' }, _meta: { tollbridge: meta } });
    const content = [{ type: 'content', content: { type: 'text', text: 'User refused permission to run tool' } }];
    agent.notify('session/update', update('tool_call_update', { toolCallId: 't1', status: 'failed', content }));
    return { stopReason: 'end_turn' };
  });
  await prompt();
  const cards = editor.frames
    .map(({ params }) => params?.update as Record<string, unknown> | undefined)
    .filter(Boolean);
  expect(cards).toEqual([
    { sessionUpdate: 'tool_call', toolCallId: 't1', status: 'failed', title: 'ls', kind: 'execute', content: REFUSED },
    expect.objectContaining({ sessionUpdate: 'tool_call_update', toolCallId: 't1' }),
    { sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'failed', content: REFUSED },
  ]);
  // The agent's model was told that the user refused; it learns the reason with the next prompt, once.
  const sent: unknown[] = [];
  agent.on('session/prompt', (params) => {
    sent.push((params as { prompt?: unknown }).prompt);
    return { stopReason: 'end_turn' };
  });
  await prompt('why?');
  await prompt('and now?');
  expect(sent).toEqual([
    [
      { type: 'text', text: 'why?' },
      {
        type: 'text',
        text: expect.stringContaining('- ls: Refused by rule no-shell: no shells here'),
        annotations: { audience: ['assistant'] },
      },
    ],
    [{ type: 'text', text: 'and now?' }],
  ]);
});

test('an agent that passes errors on to its model is refused with an error that has rule and reason', async () => {
  const { agent, greeted, prompt } = await openStage({ rules: NO_SHELL });
  await greeted({ init: { agentInfo: { name: '@agentclientprotocol/claude-agent-acp', version: '1' } } });
  const answers: unknown[] = [];
  agent.on('session/prompt', async () => {
    const toolCall = { toolCallId: 't1', title: 'ls', kind: 'execute' };
    answers.push(await agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS }));
    return { stopReason: 'end_turn' };
  });
  await prompt();
  expect(answers).toMatchObject([
    {
      error: {
        code: 1403,
        message: 'Refused by rule no-shell: no shells here',
        data: { code: 'policy_violation', rule_id: 'no-shell' },
      },
    },
  ]);
});

test('the first answer counts: one from elsewhere takes the question back from the editor', async () => {
  const { editor, agent, greeted, prompt, task, home } = await openStage();
  await greeted();
  const outcomes: unknown[] = [];
  agent.on('session/prompt', async () => {
    const toolCall = { toolCallId: 't1', title: 'Edit a.ts', kind: 'edit' };
    const { result } = await agent.ask(
      'session/request_permission',
      { sessionId: 's1', toolCall, options: OPTIONS },
      7,
    );
    outcomes.push(result);
    return { stopReason: 'end_turn' };
  });
  const done = prompt();
  const question = await editor.received(({ method }) => method === 'session/request_permission');
  expect(question.id).toBe(7);
  const [ask] = await home.asks((await task()).id);
  await home.answer(String(ask?.id), { approved: true });
  await editor.received(({ method, params }) => method === '$/cancel_request' && params?.requestId === 7);
  // The editor answers late; nobody waits for that any more.
  editor.say({ id: 7, result: { outcome: { outcome: 'selected', optionId: 'no' } } });
  expect((await done).result).toEqual({ stopReason: 'end_turn' });
  expect(outcomes).toEqual([{ outcome: { outcome: 'selected', optionId: 'once' } }]);
  expect(agent.frames.filter(({ id }) => id === 7)).toHaveLength(1);
});

test("the editor's own words reach the agent as they were written", async () => {
  const { editor, agent, greeted, prompt } = await openStage();
  await greeted();
  agent.on('session/prompt', async () => {
    await agent.ask(
      'session/request_permission',
      { sessionId: 's1', toolCall: { toolCallId: 't1' }, options: OPTIONS },
      9,
    );
    return { stopReason: 'end_turn' };
  });
  const done = prompt();
  await editor.received(({ method }) => method === 'session/request_permission');
  const line =
    '{ "result":{"outcome":{"optionId":"once","outcome":"selected","x":1.0}},"_meta":{}, "id":9,"jsonrpc":"2.0"}';
  editor.raw(`${line}\n`);
  await done;
  expect(agent.lines).toContain(line);
});

test('cancel reaches the agent at once, and an error in answer to it is a cancel', async () => {
  const { editor, agent, greeted, prompt, task } = await openStage();
  await greeted();
  let stop: (error: unknown) => void = () => {};
  agent.on(
    'session/prompt',
    () =>
      new Promise((_, reject) => {
        stop = reject;
      }),
  );
  agent.on('session/cancel', () => stop({ code: -32603, message: 'Request was aborted.' }));
  const done = prompt();
  await agent.received(({ method }) => method === 'session/prompt');
  editor.notify('session/cancel', { sessionId: 's1' });
  expect((await done).error).toMatchObject({ code: -32603 });
  expect((await task()).status).toBe('CANCELED');
  expect(agent.frames.filter(({ method }) => method === 'session/cancel')).toHaveLength(1);
});

test('a cancel from elsewhere reaches the agent, and one that stays silent is answered for', async () => {
  const { agent, greeted, prompt, task, home } = await openStage();
  await greeted();
  agent.on('session/prompt', () => undefined);
  const done = prompt();
  await agent.received(({ method }) => method === 'session/prompt');
  await home.send('task.cancel', { task_id: (await task()).id, reason: 'enough' });
  expect(agent.frames.filter(({ method }) => method === 'session/cancel')).toHaveLength(1);
  expect((await done).result).toEqual({ stopReason: 'cancelled' });
  expect((await task()).status).toBe('CANCELED');
});

test('a second prompt during a turn is decided, joins it and reaches the agent at once', async () => {
  const { editor, agent, greeted, prompt, tasks, home } = await openStage();
  await greeted();
  const answers: (() => void)[] = [];
  agent.on('session/prompt', () => new Promise((resolve) => answers.push(() => resolve({ stopReason: 'end_turn' }))));
  const first = prompt('one');
  await agent.received(({ method }) => method === 'session/prompt');
  const second = editor.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: 'two' }] });
  await agent.received(({ params }) => JSON.stringify(params ?? {}).includes('two'));
  answers[0]?.();
  await first;
  answers[1]?.();
  await second;
  const [only, ...others] = await tasks();
  expect(others).toEqual([]);
  const said = of(await home.events(String(only?.id)), 'user.message').map(({ payload }) => payload.message);
  expect(said).toMatchObject([{ parts: [{ text: 'one' }] }, { parts: [{ text: 'two' }] }]);
});

test('an agent that dies fails its turn and answers nobody by being silent', async () => {
  const { editor, agent, greeted, prompt, task } = await openStage();
  await greeted();
  const done = prompt();
  const other = editor.ask('session/list', {});
  await agent.received(({ method }) => method === 'session/list');
  agent.close();
  expect((await done).error).toMatchObject({ code: -32603 });
  expect((await other).error).toMatchObject({ code: -32603, data: { code: 'upstream_unavailable' } });
  expect(await task()).toMatchObject({ status: 'FAILED', failure: { code: 'upstream_unavailable' } });
});

test('an editor that goes cancels what runs', async () => {
  const { editor, agent, greeted, prompt, task, home } = await openStage();
  await greeted();
  void prompt();
  await agent.received(({ method }) => method === 'session/prompt');
  const { id } = await task();
  editor.close();
  expect((await home.until(id)).status).toBe('CANCELED');
});

test('the session of the agent stands for one of ours, in the workspace of its directory', async () => {
  const { greeted, home } = await openStage();
  await greeted();
  const bound = await home.bridge.bound('acp', 'relay:bot', 'session:s1');
  const session = await home.bridge.view<never>(editorPerson, 'session', String(bound?.id));
  expect(session).toMatchObject({ metadata: { acp: { agent: 'bot', cwd: CWD } } });
});

test('a question of the second version of the wire is decided by what it is about', async () => {
  const rules =
    '[{ id: ls, when: { tool: command, arguments: { command: "ls *" } }, then: allow, say: looking is fine }]';
  const { agent, greeted, prompt, task, home } = await openStage({ rules });
  await greeted();
  const answers: unknown[] = [];
  agent.on('session/prompt', async () => {
    const subject = { type: 'command', command: 'ls -l', cwd: CWD };
    const asked = { sessionId: 's1', title: 'Run ls', subject, options: OPTIONS };
    answers.push((await agent.ask('session/request_permission', asked)).result);
    const toolCall = { toolCallId: 't9', title: 'Fetch', kind: 'fetch' };
    const other = { sessionId: 's1', title: 'Fetch it', subject: { type: 'tool_call', toolCall }, options: OPTIONS };
    void agent.ask('session/request_permission', other);
    return { stopReason: 'end_turn' };
  });
  await prompt();
  expect(answers).toEqual([{ outcome: { outcome: 'selected', optionId: 'once' } }]);
  const calls = (await home.receipts((await task()).id))[0]?.side_effects.tool_calls ?? [];
  expect(calls[0]).toMatchObject({ tool: 'command', metadata: { verdict: 'allow', rule_id: 'ls' } });
});

test('when the log cannot be written nothing is permitted, and what is reported still arrives', async () => {
  let down = false;
  const { editor, agent, greeted, prompt } = await openStage({
    store: (store) => ({
      ...store,
      commit: (unit) => (down ? Promise.reject(new Fault('unavailable', 'the disk is full')) : store.commit(unit)),
    }),
  });
  await greeted();
  const answers: unknown[] = [];
  agent.on('session/prompt', async () => {
    down = true;
    agent.notify('session/update', update('tool_call', { toolCallId: 't1', title: 'x', kind: 'edit' }));
    const { error } = await agent.ask('fs/write_text_file', { sessionId: 's1', path: `${CWD}/a`, content: 'x' });
    const asked = { sessionId: 's1', toolCall: { toolCallId: 't1' }, options: OPTIONS };
    answers.push(error, (await agent.ask('session/request_permission', asked)).result);
    down = false;
    return { stopReason: 'end_turn' };
  });
  expect((await prompt()).result).toEqual({ stopReason: 'end_turn' });
  expect(answers).toMatchObject([{ code: -32603 }, { outcome: { outcome: 'selected', optionId: 'no' } }]);
  expect(editor.frames.some(({ params }) => JSON.stringify(params ?? {}).includes('"t1"'))).toBe(true);
  expect(editor.frames.some(({ method }) => method === 'fs/write_text_file')).toBe(false);
});

test('another editor finds the session, receives its past, watches it live and answers its question', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.agent.on('session/prompt', async (_, { id }) => {
    stage.agent.notify('session/update', text('first words'));
    stage.agent.say({ id, result: { stopReason: 'end_turn' } });
  });
  await stage.prompt('before');
  const second = await openEditor(stage.home);
  const { sessions } = await second.call('session/list', { cwd: CWD });
  const [{ sessionId }] = sessions;
  await second.call('session/load', { sessionId, cwd: CWD, mcpServers: [] });
  const shown = () => second.updates().map(({ sessionUpdate, content }) => [sessionUpdate, content?.text]);
  expect(shown()).toEqual([
    ['user_message_chunk', 'before'],
    ['agent_message_chunk', 'first words'],
  ]);

  const answers: unknown[] = [];
  stage.agent.on('session/prompt', async () => {
    stage.agent.notify('session/update', text('more words'));
    const toolCall = { toolCallId: 't', title: 'Edit', kind: 'edit', rawInput: { path: 'a' } };
    const params = { sessionId: 's1', toolCall, options: OPTIONS };
    answers.push((await stage.agent.ask('session/request_permission', params)).result);
    return { stopReason: 'end_turn' };
  });
  const turn = stage.prompt('now');
  const question = await second.next(({ method }) => method === 'session/request_permission');
  const here = await stage.editor.received(({ method }) => method === 'session/request_permission');
  second.answer(question.id, { outcome: { outcome: 'selected', optionId: 'approve' } });
  await turn;
  expect(answers).toEqual([{ outcome: { outcome: 'selected', optionId: 'once' } }]);
  expect(stage.editor.frames.find(({ method }) => method === '$/cancel_request')?.params).toEqual({
    requestId: here.id,
  });
  await expect.poll(shown).toContainEqual(['agent_message_chunk', 'more words']);
});

test('another client prompts and steers the agent of an editor, which sees both', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.agent.on('session/prompt', () => ({ stopReason: 'end_turn' }));
  await stage.prompt('before');
  const second = await openEditor(stage.home);
  const [{ sessionId }] = (await second.call('session/list', { cwd: CWD })).sessions;
  await second.call('session/load', { sessionId, cwd: CWD, mcpServers: [] });
  const prompts: unknown[] = [];
  const ends: (() => void)[] = [];
  stage.agent.on('session/prompt', (params, { id }) => {
    prompts.push(params);
    if (prompts.length === 1) stage.agent.notify('session/update', text('on it'));
    ends.push(() => stage.agent.say({ id, result: { stopReason: 'end_turn' } }));
  });
  const turn = second.prompt(sessionId, 'me too');
  await expect.poll(() => prompts).toHaveLength(1);
  const words = (more: string) => [{ type: 'text', text: more }];
  await second.call('_session/steering', { sessionId, prompt: words('and faster') });
  await expect.poll(() => prompts).toHaveLength(2);
  // A prompt of the editor joins the turn, and reaches the agent once.
  const joined = stage.prompt('here too');
  await expect.poll(() => prompts).toHaveLength(3);
  for (const end of ends) end();
  expect((await turn).stopReason).toBe('end_turn');
  await joined;
  expect(prompts).toEqual(
    ['me too', 'and faster', 'here too'].map((each) => ({ sessionId: 's1', prompt: words(each) })),
  );
  const updates = stage.editor.frames.map(
    ({ params }) => params?.update as { content?: { text?: string } } | undefined,
  );
  expect(updates.flatMap((each) => each?.content?.text ?? [])).toEqual(['me too', 'on it', 'and faster']);
  expect((await stage.tasks()).map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED']);
  expect(await second.refused('_session/steering', { sessionId, prompt: words('late') })).toMatchObject({
    message: expect.stringContaining('no turn runs'),
  });
});

test('a prompt that is part of a trace makes its turn part of it', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.agent.on('session/prompt', () => ({ stopReason: 'end_turn' }));
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const prompt = [{ type: 'text', text: 'go' }];
  await stage.editor.ask('session/prompt', { sessionId: 's1', prompt, _meta: { traceparent } });
  const ids = (events: readonly CoreEvent[]) => [...new Set(events.map(({ trace_id }) => trace_id))];
  expect(ids(await stage.home.events((await stage.task()).id))).toEqual(['4bf92f3577b34da6a3ce929d0e0e4736']);
  await stage.editor.ask('session/prompt', { sessionId: 's1', prompt, _meta: { traceparent: 'not a trace' } });
  expect(ids(await stage.home.events((await stage.task()).id))).toEqual([undefined]);
});
