/** What passes through us is held: files, terminals and switches are decided, written down, and only then handed on. */
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { modes } from '../../../support/acp/agents.ts';
import { CWD, openStage, picks, type Stage } from '../../../support/acp/relay.ts';
import { of } from '../../../support/gateway/test-gateway.ts';
import type { Wire } from '../../../support/wire/line-end.ts';

const END = { stopReason: 'end_turn' };

/** A turn in which the agent asks for these things, one after the other. */
async function turn(stage: Stage, ...wants: readonly (readonly [string, object])[]): Promise<Wire[]> {
  const answers: Wire[] = [];
  stage.agent.on('session/prompt', async () => {
    for (const [method, params] of wants) answers.push(await stage.agent.ask(method, { sessionId: 's1', ...params }));
    return END;
  });
  await stage.prompt();
  return answers;
}

async function calls({ home, task }: Stage) {
  const [receipt] = await home.receipts((await task()).id);
  return (receipt?.side_effects.tool_calls ?? []).map(({ tool, status, metadata }) => [
    tool,
    status,
    metadata?.evidence,
  ]);
}

test('reading a file is held, and its content is nowhere in the log', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.editor.on('fs/read_text_file', () => ({ content: 'the words of the file' }));
  const [answer] = await turn(stage, ['fs/read_text_file', { path: `${CWD}/a.txt` }]);
  expect(answer?.result).toEqual({ content: 'the words of the file' });
  expect(await calls(stage)).toEqual([['fs.read', 'succeeded', 'held']]);
  expect(JSON.stringify(await stage.home.all())).not.toContain('the words of the file');
});

test('a write a rule forbids never reaches the editor, and the agent hears why in a code of its own', async () => {
  const rules = `[{ id: inside, when: { kind: fs.write, target: "/etc/*" }, then: block, say: not outside the project }]`;
  const stage = await openStage({ rules });
  await stage.greeted();
  const [answer] = await turn(stage, ['fs/write_text_file', { path: '/etc/passwd', content: 'x' }]);
  expect(answer?.error).toEqual({
    code: 1403,
    message: 'Refused by rule inside: not outside the project',
    data: { code: 'policy_violation', reason: 'Refused by rule inside: not outside the project' },
  });
  const shown = stage.editor.frames.map(({ params }) => params?.update as JsonObject | undefined);
  expect(shown.find((card) => card?.status === 'failed')).toMatchObject({
    title: 'Write /etc/passwd',
    content: [{ content: { text: 'Refused by rule inside: not outside the project' } }],
  });
  expect(stage.editor.frames.some(({ method }) => method === 'fs/write_text_file')).toBe(false);
  expect(await calls(stage)).toEqual([['fs.write', 'canceled', 'held']]);
});

test('a path that climbs out is decided by where it ends', async () => {
  const rules = `[{ id: inside, when: { kind: fs.write, target: "/etc/*" }, then: block, say: no }]`;
  const stage = await openStage({ rules });
  await stage.greeted();
  const [answer] = await turn(stage, ['fs/write_text_file', { path: `${CWD}/../../etc/passwd`, content: 'x' }]);
  expect(answer?.error).toMatchObject({ code: 1403 });
});

test('a write nobody has a rule for is asked about at the editor, in words of ours', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.editor.on('session/request_permission', picks('reject_once'));
  const [answer] = await turn(stage, ['fs/write_text_file', { path: `${CWD}/a.txt`, content: 'x' }]);
  expect(answer?.error).toMatchObject({ code: 1403, message: 'said no in the editor' });
  const question = stage.editor.frames.find(({ method }) => method === 'session/request_permission');
  expect(question?.id).toBe('gw:1');
  expect(question?.params?.toolCall).toMatchObject({ title: 'Write a.txt', kind: 'edit', status: 'pending' });
});

test('a yes to a call does not cover another file', async () => {
  const stage = await openStage();
  await stage.greeted();
  const asked: unknown[] = [];
  stage.editor.on('session/request_permission', (params, frame) => {
    asked.push(frame.id);
    return picks('allow_once')(params, frame);
  });
  stage.editor.on('fs/write_text_file', () => null);
  const options = [{ optionId: 'y', name: 'Y', kind: 'allow_once' }];
  const toolCall = { toolCallId: 't', kind: 'edit', title: 'Edit', locations: [{ path: `${CWD}/a.txt` }] };
  await turn(
    stage,
    ['session/request_permission', { toolCall, options }],
    ['fs/write_text_file', { path: `${CWD}/a.txt`, content: 'x' }],
    ['fs/write_text_file', { path: `${CWD}/b.txt`, content: 'x' }],
  );
  expect(asked).toEqual([0 + Number(asked[0]), 'gw:1']);
});

test('a rule that changes where to write is obeyed, and both paths are on record', async () => {
  const rules = `[{ id: move, when: { kind: fs.write }, then: modify, set: { path: ${CWD}/safe.txt }, say: somewhere safe }]`;
  const stage = await openStage({ rules });
  await stage.greeted();
  stage.editor.on('fs/write_text_file', () => null);
  await turn(stage, ['fs/write_text_file', { path: `${CWD}/a.txt`, content: 'x', _meta: { keep: 1 } }]);
  const received = stage.editor.frames.find(({ method }) => method === 'fs/write_text_file');
  expect(received?.params).toEqual({ sessionId: 's1', path: `${CWD}/safe.txt`, content: 'x', _meta: { keep: 1 } });
});

test('a request in which a name stands twice is turned back, and its sender hears so under its id', async () => {
  const rules = '[{ id: ok, when: { kind: fs.write }, then: allow, say: fine }]';
  const stage = await openStage({ rules });
  await stage.greeted();
  stage.editor.on('fs/write_text_file', () => null);
  stage.agent.on('session/prompt', async () => {
    const done = stage.agent.next(({ id }) => id === 'dup');
    stage.agent.raw(
      `{"jsonrpc":"2.0","id":"dup","method":"fs/write_text_file","params":{"path":"/etc/passwd","sessionId":"s1","content":"x","path":"${CWD}/a.txt"}}\n`,
    );
    expect((await done).error).toEqual({ code: -32600, message: 'a name stands twice in one object' });
    return END;
  });
  await stage.prompt();
  expect(stage.editor.lines.filter((each) => each.includes('fs/write_text_file'))).toEqual([]);
});

test('a terminal is held from its creation to its exit, and its output is kept', async () => {
  const rules = '[{ id: ok, when: { kind: terminal }, then: allow, say: fine }]';
  const stage = await openStage({ rules });
  await stage.greeted();
  stage.editor.on('terminal/create', () => ({ terminalId: 'x1' }));
  stage.editor.on('terminal/output', () => ({ output: 'built\n', truncated: false }));
  stage.editor.on('terminal/wait_for_exit', () => ({ exitCode: 2, signal: null }));
  stage.editor.on('terminal/release', () => ({}));
  const use = { terminalId: 'x1' };
  await turn(
    stage,
    ['terminal/create', { command: 'make', args: ['-j2'], env: [{ name: 'TOKEN', value: 'hunter2-secret' }] }],
    ['terminal/output', use],
    ['terminal/wait_for_exit', use],
    ['terminal/release', use],
  );
  expect(await calls(stage)).toEqual([['terminal', 'failed', 'held']]);
  const events = await stage.home.events((await stage.task()).id);
  expect(of(events, 'tool.requested')[0]?.payload).toMatchObject({
    target: 'make -j2',
    input: { command: 'make', args: ['-j2'], cwd: CWD, env: ['TOKEN'] },
  });
  expect(of(events, 'tool.failed')[0]?.payload).toMatchObject({ output: { exit_code: 2 }, error: 'exited with 2' });
  expect(of(events, 'artifact.created')[0]?.payload.artifact).toMatchObject({ kind: 'log' });
  expect(JSON.stringify(await stage.home.all())).not.toContain('hunter2-secret');
});

test('a terminal that may not be had looks like a command that could not be run', async () => {
  const rules = '[{ id: no, when: { kind: terminal }, then: block, say: no shells }]';
  const stage = await openStage({ rules });
  await stage.greeted();
  const use = { terminalId: 'gw-refused-1' };
  const answers = await turn(
    stage,
    ['terminal/create', { command: 'rm', args: ['-r', '/'] }],
    ['terminal/wait_for_exit', use],
    ['terminal/output', use],
    ['terminal/release', use],
  );
  expect(answers.map(({ result }) => result)).toEqual([
    { terminalId: 'gw-refused-1' },
    { exitCode: 126, signal: null },
    { output: 'Refused by rule no: no shells\n', truncated: false, exitStatus: { exitCode: 126, signal: null } },
    {},
  ]);
  expect(stage.editor.frames.some(({ method }) => method?.startsWith('terminal/'))).toBe(false);

  const strict = await openStage({ rules, relay: { blockedTerminal: 'error' } });
  await strict.greeted();
  const [refused] = await turn(strict, ['terminal/create', { command: 'rm' }]);
  expect(refused?.error).toMatchObject({ code: 1403, message: 'Refused by rule no: no shells' });
});

test('a terminal still running when its turn ends was not seen to end', async () => {
  const rules = '[{ id: ok, when: { kind: terminal }, then: allow, say: fine }]';
  const stage = await openStage({ rules });
  await stage.greeted();
  stage.editor.on('terminal/create', () => ({ terminalId: 'x1' }));
  await turn(stage, ['terminal/create', { command: 'sleep', args: ['99'] }]);
  expect(await calls(stage)).toEqual([['terminal', 'failed', 'held']]);
});

test('a switch to a mode that asks for nothing is decided, and undone in the editor when refused', async () => {
  const rules =
    '[{ id: no-yolo, when: { kind: session.configure, attributes: { tier: act_auto } }, then: block, say: we look first }]';
  const stage = await openStage({ rules });
  await stage.greeted({ session: modes('default') });
  stage.agent.on('session/set_mode', () => ({}));
  const refused = await stage.editor.ask('session/set_mode', { sessionId: 's1', modeId: 'yolo' });
  expect(refused.error).toMatchObject({ code: 1403, message: 'Refused by rule no-yolo: we look first' });
  await stage.editor.received(({ params }) => JSON.stringify(params ?? {}).includes('current_mode_update'));
  expect(stage.agent.frames.some(({ method }) => method === 'session/set_mode')).toBe(false);
  const allowed = await stage.editor.ask('session/set_mode', { sessionId: 's1', modeId: 'plan' });
  expect(allowed.result).toEqual({});
});

test('without a rule a person is asked before an agent is switched to a mode that does not ask', async () => {
  const stage = await openStage();
  await stage.greeted({ session: modes('default') });
  stage.agent.on('session/set_mode', () => ({}));
  stage.editor.on('session/request_permission', picks('allow_once'));
  expect((await stage.editor.ask('session/set_mode', { sessionId: 's1', modeId: 'yolo' })).result).toEqual({});
  const question = stage.editor.frames.find(({ method }) => method === 'session/request_permission');
  expect(question?.params?.toolCall).toMatchObject({ title: 'Switch the agent to yolo', kind: 'switch_mode' });
  const { id } = await stage.task();
  expect((await stage.home.until(id)).status).toBe('COMPLETED');
});

test.each(['constructor', 'full-auto-9000'])('a switch to %s, a mode that nobody knows, asks', async (modeId) => {
  const stage = await openStage();
  await stage.greeted({ session: modes('default') });
  stage.agent.on('session/set_mode', () => ({}));
  stage.editor.on('session/request_permission', picks('reject_once'));
  const refused = await stage.editor.ask('session/set_mode', { sessionId: 's1', modeId });
  expect(refused.error).toMatchObject({ code: 1403 });
  expect(stage.agent.frames.some(({ method }) => method === 'session/set_mode')).toBe(false);
});

test('an option of the category mode is the same switch', async () => {
  const rules =
    '[{ id: no-yolo, when: { kind: session.configure, attributes: { tier: act_auto } }, then: block, say: no }]';
  const stage = await openStage({ rules });
  const option = { id: 'm', name: 'Mode', category: 'mode', type: 'select', currentValue: 'default', options: [] };
  await stage.greeted({ session: { configOptions: [option] } });
  const params = { sessionId: 's1', configId: 'm', value: 'bypassPermissions' };
  expect((await stage.editor.ask('session/set_config_option', params)).error).toMatchObject({ code: 1403 });
});

test('a server of ours is offered in a new session, beside what the editor offers', async () => {
  const own = { type: 'http', name: 'tollbridge', url: 'http://127.0.0.1:4319/mcp' };
  const servers = [
    { http: true, toWire: (value: string) => ({ ...own, headers: [{ name: 'tollbridge-session', value }] }) },
    { http: false, toWire: () => ({ name: 'own', command: 'x', args: [], env: [] }) },
  ];
  const stage = await openStage({ relay: { mcpServers: servers } });
  const mcpServers = [{ name: 'a', command: 'b', args: [], env: [{ name: 'KEY', value: 'hunter2-secret' }] }];
  stage.agent.on('initialize', () => ({ protocolVersion: 1, agentCapabilities: { mcpCapabilities: { http: true } } }));
  stage.agent.on('session/new', () => ({ sessionId: 's1' }));
  await stage.editor.ask('initialize', { protocolVersion: 1 });
  // Bytes of what the editor offers are not ours to change.
  const choices = JSON.stringify(mcpServers).replace('"b"', '"b", "n": 1.0');
  const asked = stage.editor.next(({ id }) => id === 7);
  stage.editor.raw(
    `{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"${CWD}","mcpServers":${choices}}}\n`,
  );
  await asked;
  expect(stage.agent.lines.at(-1)).toContain(choices.slice(0, -1));
  const received = stage.agent.frames.find(({ method }) => method === 'session/new');
  const [session] = await stage.home.runtime.store.list({ object: 'session' });
  expect(received?.params?.mcpServers).toEqual([
    { ...mcpServers[0], n: 1 },
    { ...own, headers: [{ name: 'tollbridge-session', value: session?.id }] },
    { name: 'own', command: 'x', args: [], env: [] },
  ]);
  expect(JSON.stringify(await stage.home.all())).not.toContain('hunter2-secret');
});

test('a session a rule forbids is not opened', async () => {
  const stage = await openStage({
    rules: '[{ id: shut, when: { kind: session.open }, then: block, say: closed today }]',
  });
  stage.agent.on('initialize', () => ({ protocolVersion: 1 }));
  await stage.editor.ask('initialize', { protocolVersion: 1 });
  const answer = await stage.editor.ask('session/new', { cwd: CWD, mcpServers: [] });
  expect(answer.error).toMatchObject({ code: 1403, message: 'Refused by rule shut: closed today' });
  expect(stage.agent.frames.map(({ method }) => method)).toEqual(['initialize']);
});

test('where a session may be opened, and with which servers, is for rules to say', async () => {
  const rules = `
- { id: home, when: { kind: session.open, arguments: { about: { acp: { cwd: "/repo/*" } } } }, then: allow, say: at home }
- { id: away, when: { kind: session.open }, unless: { arguments: { about: { acp: { cwd: "/repo/*" } } } }, then: block, say: only at home }`;
  const stage = await openStage({ rules });
  await stage.greeted();
  const answer = await stage.editor.ask('session/new', { cwd: '/elsewhere', mcpServers: [] });
  expect(answer.error).toMatchObject({ code: 1403, message: 'Refused by rule away: only at home' });
});

test('a prompt that waits to be allowed can be taken back by its id', async () => {
  const stage = await openStage({ rules: '[{ id: ask-first, when: { kind: prompt }, then: ask, say: think again }]' });
  await stage.greeted();
  const asked = stage.editor.ask('session/prompt', { sessionId: 's1', prompt: [] }, 'mine');
  await stage.editor.received(({ method }) => method === 'session/request_permission');
  stage.editor.notify('$/cancel_request', { requestId: 'mine' });
  expect((await asked).result).toEqual({ stopReason: 'cancelled' });
  expect(stage.agent.frames.some(({ method }) => method === 'session/prompt')).toBe(false);
});

test('the first answer to a question for a value counts, at the editor or elsewhere', async () => {
  const stage = await openStage();
  await stage.greeted();
  const form = {
    mode: 'form',
    message: 'Which?',
    requestedSchema: { type: 'object', properties: { a: { type: 'string' } } },
  };
  stage.agent.on('session/prompt', async () => {
    const { result } = await stage.agent.ask('elicitation/create', { sessionId: 's1', ...form });
    expect(result).toEqual({ action: 'accept', content: { a: 'x' } });
    return END;
  });
  const done = stage.prompt();
  await stage.editor.received(({ method }) => method === 'elicitation/create');
  const [ask] = await stage.home.asks((await stage.task()).id);
  await stage.home.answer(String(ask?.id), { value: { a: 'x' } });
  expect((await done).result).toEqual(END);
});

const ASK_FIRST = '[{ id: look, when: { kind: session.open }, then: ask, say: look first }]';

test('a session that a rule leaves to a person waits for the answer, which can be given elsewhere', async () => {
  const stage = await openStage({ rules: ASK_FIRST });
  stage.agent.on('initialize', () => ({ protocolVersion: 1 }));
  stage.agent.on('session/new', () => ({ sessionId: 's1' }));
  await stage.editor.ask('initialize', { protocolVersion: 1 });
  const open = () => stage.editor.ask('session/new', { cwd: CWD, mcpServers: [] });
  const asked = async () => {
    const { store } = stage.home.runtime;
    const where = { state: 'open' };
    await expect.poll(() => store.list({ object: 'ask', where })).toHaveLength(1);
    return (await store.list<Row & { session_id: string }>({ object: 'ask', where }))[0];
  };

  const first = open();
  const question = await asked();
  // Until then nothing works in it, for any client.
  const task = { session_id: question?.session_id ?? '', input: { text: 'go' }, agent: 'bot' };
  await expect(stage.home.send('task.submit', task)).rejects.toThrow('waits for an approval');
  expect(stage.agent.frames.some(({ method }) => method === 'session/new')).toBe(false);
  await stage.home.answer(question?.id ?? '');
  expect((await first).result).toEqual({ sessionId: 's1' });
  stage.agent.on('session/prompt', () => END);
  expect((await stage.prompt()).result).toEqual(END);

  const second = open();
  await stage.home.answer((await asked())?.id ?? '', { approved: false, reason: 'not today' });
  expect((await second).error).toMatchObject({ code: 1403, message: expect.stringContaining('not today') });
});

test('a session that waits to be opened is opened no more when the editor takes its request back, or the agent goes', async () => {
  const stage = await openStage({ rules: ASK_FIRST });
  stage.agent.on('initialize', () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true } }));
  await stage.editor.ask('initialize', { protocolVersion: 1 });
  const { store } = stage.home.runtime;
  const asked = (state: string) => store.list({ object: 'ask', where: { state } });
  const back = ['session/new', 'session/load'].map(async (method) => {
    const request = stage.editor.ask(method, { sessionId: 'earlier', cwd: CWD, mcpServers: [] }, `my ${method}`);
    await expect.poll(() => asked('open')).not.toEqual([]);
    stage.editor.notify('$/cancel_request', { requestId: `my ${method}` });
    return (await request).error?.code;
  });
  expect(await Promise.all(back)).toEqual([-32800, -32800]);
  expect(await asked('open')).toEqual([]);
  const last = stage.editor.ask('session/new', { cwd: CWD, mcpServers: [] });
  await expect.poll(() => asked('open')).toHaveLength(1);
  await stage.relay.agentGone('the agent exited with 1');
  expect((await last).error).toMatchObject({ message: 'the agent exited with 1' });
  expect(await asked('open')).toEqual([]);
  expect(stage.agent.frames.filter(({ method }) => method?.startsWith('session/'))).toEqual([]);
});

test('an editor that has forms is asked itself whether a session may be opened', async () => {
  const stage = await openStage({ rules: ASK_FIRST });
  stage.agent.on('initialize', () => ({ protocolVersion: 1 }));
  stage.agent.on('session/new', () => ({ sessionId: 's1' }));
  const clientCapabilities = { elicitation: { form: {} } };
  await stage.editor.ask('initialize', { protocolVersion: 1, clientCapabilities });
  stage.editor.on('elicitation/create', () => ({ action: 'accept', content: { allow: true } }));
  const answer = await stage.editor.ask('session/new', { cwd: CWD, mcpServers: [] });
  expect(answer.result).toEqual({ sessionId: 's1' });
  const form = stage.editor.frames.find(({ method }) => method === 'elicitation/create');
  expect(form?.params).toMatchObject({ requestId: answer.id, message: expect.stringContaining(CWD) });
  stage.editor.on('elicitation/create', () => ({ action: 'decline' }));
  expect((await stage.editor.ask('session/new', { cwd: CWD, mcpServers: [] })).error).toMatchObject({ code: 1403 });
});
