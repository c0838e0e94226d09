/** An editor at our door receives any agent's work in the protocol's own words. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { Sink } from '../../../src/ports/index.ts';
import { openEditor, openEditorGateway } from '../../support/acp/client.ts';
import { latch, scriptedAgent } from '../../support/gateway/agents.ts';
import { of, openTestGateway } from '../../support/gateway/test-gateway.ts';

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal });
const demo = () => ({ agents: [createDemoAgent({ pause })], tools: [createDemoTools({})] });
const ASK = '- { id: mail, when: { tool: send_mail }, then: ask, say: mail leaves this host }';

test('hello: initialize, a session, a prompt, streamed text, end of turn', async () => {
  const { at, editor } = await openEditorGateway(demo());
  const sessionId = await editor.session('/repo/here');
  const result = await editor.prompt(sessionId, 'hello');
  expect(result).toMatchObject({ stopReason: 'end_turn', _meta: { tollbridge: { taskId: expect.any(String) } } });
  const text = editor.updates('agent_message_chunk').map(({ content }) => content.text);
  expect(text.join('')).toBe(
    'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.',
  );
  expect(editor.updates('user_message_chunk')).toEqual([]);
  const workspaces = await at.runtime.store.list({ object: 'workspace' });
  expect(workspaces).toMatchObject([{ name: 'here', root: 'file:///repo/here' }]);
  // The answer to session/new comes before any update of the session, the result after everything of the turn.
  const first = editor.frames.findIndex(({ method }) => method === 'session/update');
  expect(editor.frames.findIndex(({ result: made }) => made?.sessionId)).toBeLessThan(first);
  expect(editor.frames.at(-1).result).toEqual(result);
});

test('the same directory is the same workspace', async () => {
  const { at, editor } = await openEditorGateway(demo());
  await editor.session('/w');
  await editor.session('/w/');
  expect(await at.runtime.store.list({ object: 'workspace' })).toHaveLength(1);
});

test('what we say we are', async () => {
  const { editor } = await openEditorGateway(demo());
  expect(editor.frames[0].result).toMatchObject({
    protocolVersion: 1,
    agentInfo: { name: 'tollbridge' },
    agentCapabilities: { loadSession: true, sessionCapabilities: { list: {}, resume: {}, close: {} } },
    authMethods: [],
  });
  expect(editor.frames[0].result.agentCapabilities._meta.harn).toBeUndefined();
  const again = await editor.call('initialize', { protocolVersion: 99, clientCapabilities: {} });
  expect(again.protocolVersion).toBe(1);
});

test('a tool: asked about, allowed by its person, shown as it goes', async () => {
  const { editor } = await openEditorGateway({ ...demo(), rules: ASK });
  const sessionId = await editor.session();
  const done = editor.prompt(sessionId, 'send the plan to bo');
  const question = await editor.next(({ method }) => method === 'session/request_permission');
  expect(question.params).toMatchObject({
    sessionId,
    toolCall: {
      title: 'May agent:demo use send_mail on bo?',
      kind: 'other',
      status: 'pending',
      rawInput: { to: 'bo', text: 'the plan' },
    },
    options: [
      { optionId: 'approve', kind: 'allow_once' },
      { optionId: 'reject', kind: 'reject_once' },
    ],
  });
  editor.answer(question.id, { outcome: { outcome: 'selected', optionId: 'approve' } });
  expect((await done).stopReason).toBe('end_turn');
  const states = editor.updates().flatMap(({ sessionUpdate, status }) => (status ? [[sessionUpdate, status]] : []));
  expect(states).toEqual([
    ['tool_call', 'pending'],
    ['tool_call_update', 'in_progress'],
    ['tool_call_update', 'completed'],
  ]);
});

test.each([
  ['rejected', { outcome: { outcome: 'selected', optionId: 'reject' } }, 'ana said no'],
  ['dismissed', { outcome: { outcome: 'cancelled' } }, 'the question was dismissed'],
  ['nonsense', { outcome: { outcome: 'selected', optionId: 'allow_always' } }, 'ana said no'],
  ['empty', {}, 'the question was dismissed'],
])('an answer that is not a yes is a no: %s', async (_, outcome, reason) => {
  const { at, editor } = await openEditorGateway({ ...demo(), rules: ASK });
  const sessionId = await editor.session();
  const done = editor.prompt(sessionId, 'send the plan to bo');
  const question = await editor.next(({ method }) => method === 'session/request_permission');
  editor.answer(question.id, outcome);
  const { taskId } = (await done)._meta.tollbridge;
  expect(of(await at.events(taskId), 'tool.denied')[0]?.payload).toMatchObject({ by: 'ana', reason });
  expect(editor.updates('tool_call_update').at(-1)).toMatchObject({ status: 'failed' });
});

test('answered elsewhere: the dialog is withdrawn, and its late answer changes nothing', async () => {
  const { at, editor } = await openEditorGateway({ ...demo(), rules: ASK });
  const sessionId = await editor.session();
  const done = editor.prompt(sessionId, 'send the plan to bo');
  const question = await editor.next(({ method }) => method === 'session/request_permission');
  await at.answer(question.params._meta.tollbridge.askId, { approved: false, reason: 'not from me' });
  const withdrawn = await editor.next(({ method }) => method === '$/cancel_request');
  expect(withdrawn.params).toEqual({ requestId: question.id });
  editor.answer(question.id, { outcome: { outcome: 'selected', optionId: 'approve' } });
  const { taskId } = (await done)._meta.tollbridge;
  expect(of(await at.events(taskId), 'tool.completed')).toEqual([]);
});

test('an editor that cannot show a question leaves it open for others', async () => {
  const { at, editor } = await openEditorGateway({ ...demo(), rules: ASK });
  const sessionId = await editor.session();
  const done = editor.prompt(sessionId, 'send the plan to bo');
  const question = await editor.next(({ method }) => method === 'session/request_permission');
  const error = { code: -32601, message: 'Method not found' };
  editor.write(JSON.stringify({ jsonrpc: '2.0', id: question.id, error }));
  await at.answer(question.params._meta.tollbridge.askId);
  expect((await done).stopReason).toBe('end_turn');
});

test('someone who may not answer watches and is not asked', async () => {
  const { at, editor } = await openEditorGateway({ ...demo(), rules: ASK });
  const watcher = await openEditor(at, {
    actor: { id: 'watcher', kind: 'person', scopes: ['sessions:*', 'tasks:*', 'events:read', 'others:read'] },
  });
  const sessionId = await editor.session();
  await watcher.call('session/load', { sessionId, cwd: '/notes', mcpServers: [] });
  const done = editor.prompt(sessionId, 'send the plan to bo');
  await watcher.next(({ params }) => params?.update?.sessionUpdate === 'tool_call');
  const question = await editor.next(({ method }) => method === 'session/request_permission');
  editor.answer(question.id, { outcome: { outcome: 'selected', optionId: 'approve' } });
  await done;
  await watcher.next(({ params }) => params?.update?.status === 'completed');
  expect(watcher.frames.filter(({ method }) => method === 'session/request_permission')).toEqual([]);
});

test('a second viewer attaches, receives the past, watches live, and answers', async () => {
  const { at, editor } = await openEditorGateway({ ...demo(), rules: ASK });
  const sessionId = await editor.session();
  await editor.prompt(sessionId, 'hello');
  const done = editor.prompt(sessionId, 'send the plan to bo');
  const first = await editor.next(({ method }) => method === 'session/request_permission');
  const second = await openEditor(at);
  const { sessions } = await second.call('session/list', { cwd: '/notes' });
  expect(sessions).toMatchObject([{ sessionId, cwd: '/notes' }]);
  await second.call('session/load', { sessionId, cwd: '/notes', mcpServers: [] });
  expect(second.updates().map(({ sessionUpdate, content }) => [sessionUpdate, content?.text])).toEqual([
    ['user_message_chunk', 'hello'],
    ['agent_message_chunk', expect.stringContaining('Hello! I am the demo agent')],
    ['user_message_chunk', 'send the plan to bo'],
    ['tool_call', undefined],
  ]);
  expect(second.updates().every(({ _meta }) => _meta.tollbridge.replayed === true)).toBe(true);
  const question = await second.next(({ method }) => method === 'session/request_permission');
  second.answer(question.id, { outcome: { outcome: 'selected', optionId: 'approve' } });
  expect((await editor.next(({ method }) => method === '$/cancel_request')).params).toEqual({ requestId: first.id });
  expect((await done).stopReason).toBe('end_turn');
  await second.next(({ params }) => params?.update?.content?.text?.includes('is sent.'));
});

test('a value is asked for with a form where there are forms', async () => {
  const { editor } = await openEditorGateway(demo());
  const sessionId = await editor.session();
  const done = editor.prompt(sessionId, 'ask which colour?');
  const form = await editor.next(({ method }) => method === 'elicitation/create');
  expect(form.params).toEqual({
    mode: 'form',
    sessionId,
    message: 'which colour?',
    requestedSchema: {
      type: 'object',
      properties: { answer: { type: 'string', title: 'which colour?' } },
      required: ['answer'],
    },
  });
  editor.answer(form.id, { action: 'accept', content: { answer: 'blue' } });
  await done;
  expect(editor.updates('agent_message_chunk').at(-1).content.text).toContain('blue');
});

test('and in words where there are none: the turn ends with the question, and the next prompt is the answer', async () => {
  const { at, editor } = await openEditorGateway(demo(), { capabilities: {} });
  const sessionId = await editor.session();
  const waiting = await editor.prompt(sessionId, 'ask which colour?');
  expect(waiting).toMatchObject({ stopReason: 'end_turn', _meta: { tollbridge: { waiting: 'input' } } });
  expect(editor.updates('agent_message_chunk').at(-1).content.text).toBe('which colour?\n');
  const done = await editor.prompt(sessionId, 'blue');
  expect(done._meta.tollbridge.taskId).toBe(waiting._meta.tollbridge.taskId);
  expect(editor.updates('agent_message_chunk').at(-1).content.text).toContain('blue');
  expect((await at.runtime.store.list({ object: 'task' })).length).toBe(1);
});

test('cancel stops the work, and the turn says so', async () => {
  const begun = latch();
  const agent = scriptedAgent(async (_sink, _work, signal) => {
    begun.open();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return { state: 'CANCELED' };
  });
  const { at, editor } = await openEditorGateway({ agents: [agent] });
  const sessionId = await editor.session();
  const done = editor.prompt(sessionId, 'go');
  await begun.promise;
  editor.tell('session/cancel', { sessionId, _meta: { tollbridge: { reason: 'enough' } } });
  const result = await done;
  expect(result.stopReason).toBe('cancelled');
  const ended = of(await at.events(result._meta.tollbridge.taskId), 'task.canceled');
  expect(ended[0]?.payload.reason).toBe('enough');
});

test('a prompt that is withdrawn is canceled', async () => {
  const begun = latch();
  const agent = scriptedAgent(async (_sink, _work, signal) => {
    begun.open();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return { state: 'CANCELED' };
  });
  const { editor } = await openEditorGateway({ agents: [agent] });
  const sessionId = await editor.session();
  editor.write(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 'p',
      method: 'session/prompt',
      params: { sessionId, prompt: [{ type: 'text', text: 'x' }] },
    }),
  );
  await begun.promise;
  editor.tell('$/cancel_request', { requestId: 'p' });
  expect((await editor.next(({ id }) => id === 'p')).result.stopReason).toBe('cancelled');
});

test('an editor that goes away takes its work with it', async () => {
  const begun = latch();
  const agent = scriptedAgent(async (_sink, { task }, signal) => {
    begun.open();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return { state: 'CANCELED', summary: task.id };
  });
  const { at, editor } = await openEditorGateway({ agents: [agent] });
  const sessionId = await editor.session();
  editor.prompt(sessionId, 'go').catch(() => {});
  await begun.promise;
  await editor.close();
  const [task] = await at.runtime.store.list({ object: 'task' });
  expect((await at.until(task!.id)).status).toBe('CANCELED');
});

test('a session that was being opened when its editor went away is followed by nobody', async () => {
  const at = await openTestGateway();
  const [opening, gone] = [latch(), latch()];
  const followed: AbortSignal[] = [];
  const bridge: typeof at.bridge = {
    ...at.bridge,
    async submit(command) {
      const accepted = await at.bridge.submit(command);
      if (command.kind === 'session.create') {
        opening.open();
        await gone.promise;
      }
      return accepted;
    },
    follow(actor, from, signal) {
      followed.push(signal);
      return at.bridge.follow(actor, from, signal);
    },
  };
  const editor = await openEditor({ ...at, bridge });
  editor.session().catch(() => {});
  await opening.promise;
  await editor.close();
  gone.open();
  await expect.poll(() => followed.map(({ aborted }) => aborted)).toEqual([true]);
});

test('a prompt policy does not let in is refused in words, and nothing runs', async () => {
  const rules = '- { id: quiet, when: { kind: prompt }, then: block, say: nobody works today }';
  const { at, editor } = await openEditorGateway({ ...demo(), rules });
  const sessionId = await editor.session();
  expect(await editor.prompt(sessionId, 'hello')).toEqual({ stopReason: 'refusal' });
  expect(editor.updates('agent_message_chunk').map(({ content }) => content.text)).toEqual(['nobody works today\n']);
  expect(await at.runtime.store.list({ object: 'task' })).toEqual([]);
});

test('work that fails is an error that names the task and its code', async () => {
  const { editor } = await openEditorGateway(demo());
  const sessionId = await editor.session();
  const error = await editor.refused('session/prompt', {
    sessionId,
    prompt: [{ type: 'text', text: 'fail out_of_paper' }],
  });
  expect(error).toMatchObject({
    code: -32603,
    message: 'the demo agent was asked to fail',
    data: { code: 'out_of_paper', taskId: expect.any(String), receiptId: expect.any(String) },
  });
});

test('a prompt that is part of a trace makes its task part of it', async () => {
  const { at, editor } = await openEditorGateway(demo());
  const sessionId = await editor.session();
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const prompt = [{ type: 'text', text: 'hello' }];
  const { _meta } = await editor.call('session/prompt', { sessionId, prompt, _meta: { traceparent } });
  const events = await at.events(_meta.tollbridge.taskId);
  expect(new Set(events.map(({ trace_id }) => trace_id))).toEqual(new Set(['4bf92f3577b34da6a3ce929d0e0e4736']));
});

test('a session that another client loads or resumes goes on with its own agent', async () => {
  const done: string[] = [];
  const agent = (name: string) =>
    scriptedAgent(
      async () => {
        done.push(name);
        return undefined;
      },
      { name },
    );
  const { at, editor } = await openEditorGateway({ agents: [agent('first'), agent('second')] });
  const sessionId = await editor.session();
  await editor.call('session/set_config_option', { sessionId, configId: 'agent', value: 'second' });
  await editor.prompt(sessionId, 'one');
  for (const method of ['session/load', 'session/resume']) {
    const back = await openEditor(at);
    const { configOptions } = await back.call(method, { sessionId, cwd: '/notes', mcpServers: [] });
    expect(configOptions[0].currentValue).toBe('second');
    await back.prompt(sessionId, 'two');
  }
  const { sessionId: forked } = await editor.call('session/fork', { sessionId, cwd: '/notes', mcpServers: [] });
  await editor.prompt(forked, 'three');
  expect(done).toEqual(['second', 'second', 'second', 'second']);
});

test('a message that follows another begins a paragraph, and a handoff is no part of the text', async () => {
  const says = (sink: Sink, text: string) =>
    sink.emit({
      event: 'agent.message',
      payload: { message: { role: 'assistant', parts: [{ type: 'text', text, visibility: 'public' }] } },
    });
  const agent = scriptedAgent(async (sink) => {
    await says(sink, 'Working on it.');
    await says(sink, 'Half way.');
    const about = { target_agent: 'peer', task_id: 'task_9' };
    await sink.emit({ event: 'agent.handoff', payload: { ...about, status: 'accepted' } });
    await sink.emit({ event: 'agent.handoff', payload: { ...about, status: 'completed' } });
    await says(sink, 'The answer.');
    return undefined;
  });
  const { editor } = await openEditorGateway({ agents: [agent] });
  const sessionId = await editor.session();
  await editor.prompt(sessionId, 'go');
  expect(editor.updates().map(({ title, status, content }) => content?.text ?? title ?? status)).toEqual([
    'Working on it.',
    '\n\nHalf way.',
    'handed to peer',
    'completed',
    'The answer.',
  ]);
});

test('a session that a rule leaves to a person waits for the answer: here where there are forms, or elsewhere', async () => {
  const rules = '- { id: look, when: { kind: session.open }, then: ask, say: look first }';
  const { at, editor } = await openEditorGateway({ ...demo(), rules });
  const asked = async (count: number) => {
    await expect.poll(() => at.openAsks()).toHaveLength(count);
    return (await at.openAsks())[0]?.id ?? '';
  };
  const shown = editor.session('/w');
  const form = await editor.next(({ method }) => method === 'elicitation/create');
  expect(form.params).toMatchObject({
    mode: 'form',
    requestId: 1,
    message: 'May a session be opened in /w? (session/new)',
  });
  editor.answer(form.id, { action: 'accept', content: { allow: true } });
  expect((await editor.prompt(await shown, 'hello')).stopReason).toBe('end_turn');

  const refused = editor.refused('session/new', { cwd: '/w', mcpServers: [] });
  const { id } = await editor.next(({ method }) => method === 'elicitation/create');
  editor.answer(id, { action: 'decline' });
  expect(await refused).toMatchObject({ code: 1403, message: expect.stringContaining('said no in the editor') });

  // Without forms the request waits for an answer from elsewhere; taken back, nobody is asked any more.
  const plain = await openEditor(at, { capabilities: {} });
  const elsewhere = plain.session('/w');
  await at.answer(await asked(1));
  expect(await elsewhere).toMatch(/^session_/);
  const back = plain.refused('session/new', { cwd: '/w', mcpServers: [] });
  await asked(1);
  plain.tell('$/cancel_request', { requestId: 2 });
  expect(await back).toMatchObject({ code: -32800 });
  await asked(0);
  expect(plain.frames.some(({ method }) => method === 'elicitation/create')).toBe(false);
});
