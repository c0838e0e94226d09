/** Nonsense, floods and tricks at our door: each is answered in the protocol's own words, and the next message is received. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { Row } from '../../../src/ports/index.ts';
import { openEditor, openEditorGateway } from '../../support/acp/client.ts';
import { troubleOf } from '../../support/acp/schema.ts';
import { latch, scriptedAgent } from '../../support/gateway/agents.ts';
import { openTestGateway } from '../../support/gateway/test-gateway.ts';

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal });
const demo = () => ({ agents: [createDemoAgent({ pause })], tools: [createDemoTools({})] });

const NONSENSE = [
  ['not JSON', 'hello?', -32700],
  ['half of it', '{"jsonrpc":"2.0","id":1', -32700],
  ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"session/list"}]', -32600],
  ['a number', '7', -32600],
  ['nothing in particular', '{"jsonrpc":"2.0"}', -32600],
  ['an id that is none', '{"jsonrpc":"2.0","id":{},"method":"session/list"}', -32600],
  ['nested without end', `${'['.repeat(50_000)}${']'.repeat(50_000)}`, -32700],
  ['spread without end', `[${'0,'.repeat(600_000)}0]`, -32700],
] as const;

test('nonsense is answered to nobody in particular', async () => {
  const { editor } = await openEditorGateway(demo());
  for (const [what, line, code] of NONSENSE) {
    editor.write(line);
    const problem = await editor.next(({ error }) => error);
    expect([what, problem.id, problem.error.code]).toEqual([what, null, code]);
  }
  expect(await editor.call('session/list')).toEqual({ sessions: [] });
});

const IDS = [
  ['"7"', '"7"'],
  ['7', '7'],
  ['0', '0'],
  ['null', 'null'],
  ['-1', '-1'],
  ['90071992547409931234', '90071992547409931234'],
  ['"\\u00e9"', '"é"'],
] as const;

test('an id comes back as it was', async () => {
  const { editor } = await openEditorGateway(demo());
  for (const [id, back] of IDS) {
    const before = editor.lines.length;
    editor.write(`{"id":${id},"params":{"note":{"id":3}},"method":"session/list","jsonrpc":"2.0"}`);
    await editor.next(({ result }) => result?.sessions);
    expect(editor.lines[before]).toBe(`{"jsonrpc":"2.0","id":${back},"result":{"sessions":[]}}`);
  }
});

test('nothing is done before initialize, and no version but ours is spoken', async () => {
  const at = await openTestGateway(demo());
  const editor = await openEditor(at);
  expect((await editor.call('initialize', { protocolVersion: 2, clientCapabilities: {} })).protocolVersion).toBe(1);
  expect(await editor.refused('initialize', { protocolVersion: 'one' })).toMatchObject({ code: -32602 });
});

const MISTAKES = [
  ['session/new', { cwd: 'relative', mcpServers: [] }, -32602],
  ['session/new', { cwd: '/w' }, -32602],
  ['session/new', { cwd: 7, mcpServers: [] }, -32602],
  ['session/new', { cwd: '/w\u0000/x', mcpServers: [] }, -32602],
  ['session/load', {}, -32602],
  ['session/load', { sessionId: { $ne: null } }, -32602],
  ['session/load', { sessionId: 'nobodys', cwd: '/w', mcpServers: [] }, -32002],
  ['session/resume', { sessionId: 'nobodys', cwd: '/w' }, -32002],
  ['session/prompt', { sessionId: 'nobodys', prompt: [{ type: 'text', text: 'x' }] }, -32002],
  ['session/close', { sessionId: 'nobodys' }, -32002],
  ['session/set_mode', { sessionId: 'nobodys', modeId: 'yolo' }, -32002],
  ['session/fork', { sessionId: 'nobodys', cwd: '/w' }, -32002],
  ['session/list', { cursor: 'made up' }, -32602],
  ['authenticate', { methodId: 'any' }, -32602],
  ['session/set_model', { modelId: 'x' }, -32601],
  ['_vendor/method', {}, -32601],
  ['constructor', {}, -32601],
  ['__proto__', {}, -32601],
  ['harn.hitl.respond', { request_id: 'ask_nobodys', approved: true }, -32002],
] as const;

test('a mistake is reported with its code, in a shape the schema knows', async () => {
  const { editor } = await openEditorGateway(demo());
  for (const [method, params, code] of MISTAKES) {
    const error = await editor.refused(method, params);
    expect([method, error.code]).toEqual([method, code]);
    expect(troubleOf({ jsonrpc: '2.0', id: 1, error }, new Map())).toEqual([]);
  }
});

test('deleting what is not there succeeds; what was there is closed and no longer listed', async () => {
  const { editor } = await openEditorGateway(demo());
  expect(await editor.call('session/delete', { sessionId: 'nobodys' })).toEqual({});
  const sessionId = await editor.session();
  expect(await editor.call('session/status', { sessionId })).toEqual({ status: 'open' });
  expect(await editor.call('session/delete', { sessionId })).toEqual({});
  expect(await editor.call('session/list')).toEqual({ sessions: [] });
  expect(await editor.call('session/status', { sessionId })).toEqual({ status: 'saved' });
});

test('a prompt of strange blocks is kept, not guessed at', async () => {
  const { at, editor } = await openEditorGateway(demo());
  const sessionId = await editor.session();
  const prompt = [
    { type: 'text', text: 'hello', annotations: { priority: 1 } },
    { type: 'hologram', data: 'x' },
    { type: 'image', data: '!!! not base64', mimeType: 'image/png' },
    { type: 'text' },
    { type: 'resource', resource: { uri: 'file:///a.txt', text: 'words' } },
    { type: 'resource_link', uri: 'file:///b.txt', name: 'b' },
    null,
    'text',
  ];
  const { _meta } = await editor.call('session/prompt', { sessionId, prompt });
  const task = await at.runtime.store.get<Task & Row>('task', _meta.tollbridge.taskId);
  expect(task?.input.parts).toEqual([
    { type: 'text', text: 'hello', visibility: 'public', acp: { annotations: { priority: 1 } } },
    { type: 'json', value: { acp: { type: 'hologram', data: 'x' } }, visibility: 'internal' },
    { type: 'json', value: { acp: prompt[2] }, visibility: 'internal' },
    { type: 'json', value: { acp: { type: 'text' } }, visibility: 'internal' },
    { type: 'text', text: 'words', resource: { uri: 'file:///a.txt' }, visibility: 'public' },
    {
      type: 'file_ref',
      uri: 'file:///b.txt',
      mime_type: 'application/octet-stream',
      visibility: 'public',
      acp: { name: 'b' },
    },
    { type: 'json', value: { acp: null }, visibility: 'internal' },
    { type: 'json', value: { acp: 'text' }, visibility: 'internal' },
  ]);
  expect(await editor.refused('session/prompt', { sessionId, prompt: [] })).toMatchObject({ code: -32602 });
  expect(await editor.refused('session/prompt', { sessionId, prompt: 'hello' })).toMatchObject({ code: -32602 });
});

test('half a character is mended, wherever it stands', async () => {
  const { editor } = await openEditorGateway(demo());
  const sessionId = await editor.session();
  editor.write(
    `{"jsonrpc":"2.0","id":"x","method":"session/prompt","params":{"sessionId":"${sessionId}","prompt":[{"type":"text","text":"hello \\ud83d"}]}}`,
  );
  expect((await editor.next(({ id }) => id === 'x')).result.stopReason).toBe('end_turn');
});

test('more calls at once than anyone means are turned away, and the rest are served', async () => {
  const go = latch();
  const at = await openTestGateway();
  const list = async () => {
    await go.promise;
    return { data: [], next: undefined };
  };
  const editor = await openEditor({ ...at, bridge: { ...at.bridge, list } });
  for (let n = 0; n < 300; n += 1) editor.write(`{"jsonrpc":"2.0","id":"c${n}","method":"session/list","params":{}}`);
  await editor.next(({ id }) => id === 'c299');
  expect(editor.frames.filter(({ error }) => error?.code === 1429)).toHaveLength(44);
  go.open();
  await editor.next(({ id }) => id === 'c255');
  expect(editor.frames.filter(({ result }) => result?.sessions)).toHaveLength(256);
});

test('a secret in what an editor says of its servers is nowhere in the log', async () => {
  const { at, editor } = await openEditorGateway(demo());
  const env = [{ name: 'TOKEN', value: 'hunter2-hunter2' }];
  const mcpServers = [{ name: 'files', command: '/bin/files', args: [], env }];
  await editor.call('session/new', { cwd: '/notes', mcpServers });
  const log = JSON.stringify(await at.all());
  expect(log).toContain('"servers":["files"]');
  expect(log).not.toContain('hunter2');
});

test('what one connection watches another does not hear of', async () => {
  const { at, editor } = await openEditorGateway(demo());
  const other = await openEditor(at);
  const sessionId = await editor.session();
  await editor.prompt(sessionId, 'hello');
  await other.call('session/list');
  expect(other.updates()).toEqual([]);
});

test('a mode is a persona: offered, chosen for what follows, and refused where the rules say so', async () => {
  const rules =
    '- { id: no-modes, when: { kind: extension, tool: session/set_mode }, then: block, say: not while I watch }';
  const { at, editor } = await openEditorGateway({ ...demo(), rules });
  const persona = {
    name: 'careful',
    version: '1',
    entry_workflow: 'demo',
    description: 'asks first',
    autonomy_tier: 'suggest',
    receipt_policy: 'required',
  };
  const { resource } = await at.send('resource.create', { object: 'persona', body: persona });
  const made = await editor.call('session/new', { cwd: '/notes', mcpServers: [] });
  expect(made.modes).toEqual({
    currentModeId: 'default',
    availableModes: [
      { id: 'default', name: 'Default', description: 'As the session was opened.' },
      { id: resource.id, name: 'careful', description: 'asks first (suggest)' },
    ],
  });
  const { sessionId } = made;
  expect(await editor.refused('session/set_mode', { sessionId, modeId: 'yolo' })).toMatchObject({ code: -32602 });
  expect(await editor.refused('session/set_mode', { sessionId, modeId: resource.id })).toMatchObject({
    code: 1403,
    message: 'not while I watch',
  });
  expect(editor.updates('current_mode_update')).toEqual([
    { sessionUpdate: 'current_mode_update', currentModeId: 'default' },
  ]);
});

test('a mode that may be chosen is who the next task works as; an agent that is chosen does it', async () => {
  const second = scriptedAgent(async () => undefined, { name: 'second' });
  const { at, editor } = await openEditorGateway({ ...demo(), agents: [createDemoAgent({ pause }), second] });
  const persona = {
    name: 'careful',
    version: '1',
    entry_workflow: 'nobody',
    description: 'asks first',
    autonomy_tier: 'act_auto',
    receipt_policy: 'required',
  };
  const { resource } = await at.send('resource.create', { object: 'persona', body: persona });
  const { sessionId, configOptions } = await editor.call('session/new', { cwd: '/notes', mcpServers: [] });
  expect(configOptions).toMatchObject([{ id: 'agent', type: 'select', currentValue: 'demo' }]);
  await editor.call('session/set_mode', { sessionId, modeId: resource.id });
  const chosen = await editor.call('session/set_config_option', { sessionId, configId: 'agent', value: 'second' });
  expect(chosen.configOptions[0].currentValue).toBe('second');
  await editor.prompt(sessionId, 'x');
  const [task] = await at.runtime.store.list({ object: 'task' });
  expect(task).toMatchObject({ persona_id: resource.id, assigned_agent_id: 'second' });
});
