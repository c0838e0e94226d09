/** The Harn profile in both directions: an agent that speaks it behind, editors that do and do not in front. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  harnCapabilities,
  harnFields,
  normalised,
  toolFields,
  visibleText,
  workerEvent,
} from '../../../adapters/acp/harn.ts';
import { HARN_UPDATES } from '../../../mappings/acp-harn.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { openAgentGateway } from '../../support/acp/agent-gateway.ts';
import { openEditor, openEditorGateway } from '../../support/acp/client.ts';
import { troubleOf } from '../../support/acp/schema.ts';
import { ana } from '../../support/gateway/actors.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { of } from '../../support/gateway/test-gateway.ts';

const HARN = { _meta: { harn: {} } };
const NOTICES = { session: { notices: {}, compaction: {} } };

/** One of each kind that goes both ways, as the page describes it. */
const SAMPLES: Readonly<Record<string, JsonObject>> = {
  artifact: {
    artifactId: 'a1',
    kind: 'file',
    title: 'report.md',
    mimeType: 'text/markdown',
    spec: { uri: 'file:///w/report.md', name: 'report.md', sha256: `sha256:${'a'.repeat(64)}`, size_bytes: 7 },
  },
  fs_watch: {
    subscriptionId: 'w1',
    events: [{ kind: 'modify', paths: ['/w/a'], relative_paths: ['a'], raw_kind: 'M' }],
  },
  handoff: {
    handoffId: 'h1',
    artifactId: 'a2',
    handoff: {
      _type: 'handoff_artifact',
      id: 'h1',
      target_persona_or_human: { kind: 'persona', id: 'bo' },
      task: 'review',
    },
  },
  log: { level: 'warn', message: 'careful', fields: { n: 1 } },
  progress: { phase: 'narration', message: 'half way', progress: 1, total: 2 },
  reminder_emitted: { reminder: { reminderId: 'r1', body: 'drink' } },
  skill_activated: { skillName: 'lint', iteration: 1, reason: 'asked' },
  skill_deactivated: { skillName: 'lint', iteration: 2 },
  skill_narrow: { reason: 'scope', removedTools: ['a'], remainingTools: ['b'], policy: 'p' },
  skill_scope_tools: { skillName: 'lint', allowedTools: ['read'] },
  stance_transition: { phase: 'enter', escapeTool: 'leave', allowedTools: [], justification: 'j' },
  tool_search_query: { toolUseId: 't1', name: 'search', query: 'grep', strategy: 'bm25', mode: 'client' },
  tool_search_result: { toolUseId: 't1', promoted: ['grep'], strategy: 'bm25', mode: 'client' },
  transcript_compacted: {
    mode: 'auto',
    strategy: 'summarise',
    archivedMessages: 4,
    estimatedTokensBefore: 900,
    estimatedTokensAfter: 100,
    snapshotAssetId: null,
  },
  transcript_projected: { policy: 'p', reason: 'r', prefixHash: 'h', keptCount: 1, droppedCount: 2 },
  worker_update: {
    workerId: 'k1',
    workerName: 'digger',
    workerTask: 'dig',
    workerMode: 'bg',
    event: 'WorkerSpawned',
    status: 'running',
    terminal: false,
    metadata: {},
  },
};

const proper = (kind: string) => ({ sessionUpdate: kind, _meta: { harn: SAMPLES[kind] } });
const older = (kind: string) => ({ sessionUpdate: kind, ...SAMPLES[kind] });

async function watched(updates: readonly object[], capabilities: object) {
  const at = await openAgentGateway();
  const editor = await openEditor(at.t, { capabilities });
  await editor.call('session/load', { sessionId: at.room.session, cwd: at.dir, mcpServers: [] });
  const task = await at.run(updates.map((update) => ({ update })));
  // Its end is reported after everything else: once a second prompt is answered, all of the first has been received.
  await editor.prompt(at.room.session, 'done?');
  return { at, editor, task };
}

test('the samples are one of each', () => {
  const asked = ['hitl_request', 'hitl_resolved'];
  const both = HARN_UPDATES.filter(({ dir }) => dir === '<->').map(({ wire }) => wire as string);
  expect([...Object.keys(SAMPLES), ...asked].sort()).toEqual([...both].sort());
});

describe('every kind of update', () => {
  const kinds = Object.keys(SAMPLES);

  test.each([
    ['as the page puts it', proper],
    ['as older agents put it', older],
  ])('%s reaches a client of the profile as the page puts it', async (_, form) => {
    const { editor } = await watched(kinds.map(form), HARN);
    const reported = editor.updates().filter(({ sessionUpdate }) => kinds.includes(sessionUpdate));
    // Our own account of the artifact comes under our own name for it.
    const withoutOurs = reported.filter(
      ({ sessionUpdate, _meta }) => sessionUpdate !== 'artifact' || _meta.harn.artifactId === 'a1',
    );
    expect(withoutOurs).toEqual(kinds.filter((kind) => kind !== 'artifact').map(proper));
    expect(reported.filter(({ sessionUpdate }) => sessionUpdate === 'artifact')).toMatchObject([
      {
        _meta: {
          harn: { kind: 'file', title: 'report.md', spec: { uri: 'file:///w/report.md', sha256: 'a'.repeat(64) } },
        },
      },
    ]);
  });

  test('reaches any other client in a form it can take, or not at all', async () => {
    const { editor } = await watched(kinds.map(proper), NOTICES);
    const trouble = editor.frames.filter(({ method }) => method).flatMap((frame) => troubleOf(frame, new Map()));
    expect(trouble).toEqual([]);
    const shown = editor
      .updates()
      .filter(
        ({ sessionUpdate, content }) =>
          sessionUpdate !== 'user_message_chunk' && !content?.text?.startsWith('you said'),
      );
    expect(
      shown.map((update) => [
        update.sessionUpdate,
        update.title ?? update.status ?? update.content?.text ?? update.content?.uri,
      ]),
    ).toEqual([
      ['tool_call', 'handed to bo'],
      ['notice', 'half way'],
      ['tool_call', 'search for tools: grep'],
      ['tool_call_update', 'completed'],
      ['compaction_update', 'completed'],
      ['tool_call', 'digger'],
      ['agent_message_chunk', 'file:///w/report.md'],
    ]);
  });

  test('stands in the log under its own name', async () => {
    const { at, task } = await watched(kinds.map(proper), {});
    const events = await at.t.events(task.id);
    for (const kind of kinds) {
      const { facts } = HARN_UPDATES.find(({ wire }) => wire === kind)!;
      expect(events.filter(({ event }) => (facts as readonly string[]).includes(event)).length, kind).toBeGreaterThan(
        0,
      );
    }
    expect(of(events, 'agent.handoff')[0]?.payload).toEqual({
      target_agent: 'bo',
      task_id: 'h1',
      status: 'accepted',
      task: 'review',
    });
    expect(of(events, 'span.started')[0]?.payload).toMatchObject({
      span: { name: 'digger', status: 'running' },
      task: 'dig',
    });
  });
});

test('a list of steps is a plan and words are progress: neither is reported as the other', async () => {
  const entries = [{ content: 'one', status: 'completed', priority: 'high' }];
  const plan = { sessionUpdate: 'plan', entries, harnPlan: { id: 'plan_1' } };
  const { at, editor, task } = await watched([plan, proper('progress')], HARN);
  const events = await at.t.events(task.id);
  expect(of(events, 'vendor.tollbridge.plan').map(({ payload }) => payload)).toEqual([{ entries }]);
  expect(of(events, 'span.updated').map(({ payload }) => payload.message)).toEqual(['half way']);
  expect(editor.updates('plan')).toEqual([plan]);
});

describe('what is said of a tool', () => {
  const fields = { executor: 'harn_builtin', durationMs: 12, executionDurationMs: 7, audit: { session_id: 's' } };
  const call = { sessionUpdate: 'tool_call', toolCallId: 'c', title: 'grep', kind: 'search', status: 'pending' };
  const over = { sessionUpdate: 'tool_call_update', toolCallId: 'c', title: 'grep', status: 'completed' };

  test.each([
    ['below _meta.harn', { ...over, _meta: { harn: fields } }],
    ['at the root', { ...over, ...fields }],
  ])('%s is read, and written below _meta.harn', async (_, update) => {
    const { at, editor, task } = await watched([call, update], HARN);
    const [done] = of(await at.t.events(task.id), 'tool.completed');
    expect(done?.payload).toMatchObject({ name: 'grep', harn: fields });
    expect(editor.updates('tool_call_update').at(-1)).toEqual({ ...over, _meta: { harn: fields } });
  });

  test('a failure keeps its category: denied and cancelled are words of ours', async () => {
    const failed = (id: string, errorCategory: string) => ({
      sessionUpdate: 'tool_call_update',
      toolCallId: id,
      title: 'x',
      status: 'failed',
      _meta: { harn: { error: 'no', errorCategory } },
    });
    const { at, task } = await watched(
      [failed('1', 'permission_denied'), failed('2', 'cancelled'), failed('3', 'timeout')],
      {},
    );
    const codes = of(await at.t.events(task.id), 'tool.failed').map(({ payload }) => payload.code);
    expect(codes).toEqual(['permission_denied', 'canceled', 'timeout']);
  });

  test('of a call that ran through us a client of the profile hears who ran it and for how long', async () => {
    const rules = '- { id: t, when: { kind: terminal }, then: allow, say: fine }';
    const at = await openAgentGateway({ rules });
    const editor = await openEditor(at.t, { capabilities: HARN });
    const sessionId = await editor.session(at.dir);
    await editor.prompt(sessionId, JSON.stringify([{ terminal: { command: 'true' } }]));
    const reported = editor.updates().filter(({ toolCallId }) => toolCallId);
    expect(reported.map(({ status, _meta }) => [status, _meta.harn.executor, typeof _meta.harn.durationMs])).toEqual([
      ['pending', undefined, 'undefined'],
      ['in_progress', 'host_bridge', 'undefined'],
      ['completed', 'host_bridge', 'number'],
    ]);
    expect(reported[0]._meta.harn.audit).toMatchObject({ session_id: sessionId, mutation_scope: 'apply_workspace' });
  });
});

test('text that may be seen is what is kept; the rest of the chunk rides along', async () => {
  const content = {
    type: 'text',
    text: '<think>hm</think>Yes',
    _meta: { harn: { visible_text: 'Yes', visible_delta: 'Yes' } },
  };
  const update = { sessionUpdate: 'agent_message_chunk', content };
  const { at, editor, task } = await watched([update], HARN);
  const [message] = of(await at.t.events(task.id), 'agent.message');
  expect(message?.payload.message).toMatchObject({ parts: [{ type: 'text', text: 'Yes' }] });
  expect(editor.updates('agent_message_chunk')[0]).toEqual(update);
});

describe('questions of people', () => {
  const hitl = (kind: string, payload: object) => ({
    update: { sessionUpdate: 'hitl_request', _meta: { harn: { requestId: 'q1', kind, payload } } },
  });

  test.each([
    ['question', { question: 'which?' }, { value: 'blue' }, { answer: 'blue' }],
    ['approval', { action: 'deploy', args: { to: 'prod' } }, { approved: true }, { approved: true }],
    ['escalation', { action: 'help' }, { approved: false, reason: 'no' }, { accepted: false, reason: 'no' }],
  ])('a %s of an agent is ours to put, and its answer goes back as a call', async (kind, payload, answer, said) => {
    const at = await openAgentGateway();
    const task = await at.task([hitl(kind, payload), { untilCanceled: true }]);
    const [ask] = await at.t.asks(task.id);
    expect(ask?.kind).toBe(kind === 'question' ? 'input' : 'approval');
    await at.t.answer(ask!.id, answer);
    await expect.poll(() => at.notes('hitl').length).toBe(1);
    expect(JSON.parse(at.notes('hitl')[0]!)).toMatchObject({ request_id: 'q1', reviewer: 'ana', ...said });
    await at.t.send('task.cancel', { task_id: task.id });
  });

  test('one in the form of the first revision is put once, though a later agent repeats it as an update', async () => {
    const at = await openAgentGateway();
    const payload = { prompt: 'which?', schema: null };
    const params = { request_id: 'q1', kind: 'question', agent: 'main', trace_id: 't1', payload };
    const older = { frame: { jsonrpc: '2.0', method: 'harn.hitl.requested', params } };
    const task = await at.task([older, hitl('question', payload), { untilCanceled: true }]);
    const asks = await at.t.asks(task.id);
    expect(asks).toMatchObject([{ kind: 'input', question: 'which?' }]);
    await at.t.answer(asks[0]!.id, { value: 'blue' });
    await expect.poll(() => at.notes('hitl').length).toBe(1);
    expect(JSON.parse(at.notes('hitl')[0]!)).toMatchObject({ request_id: 'q1', answer: 'blue', reviewer: 'ana' });
    await at.t.send('task.cancel', { task_id: task.id });
  });

  test('one that the agent has settled by itself is closed, and is not answered', async () => {
    const at = await openAgentGateway();
    const resolved = { sessionUpdate: 'hitl_resolved', _meta: { harn: { requestId: 'q1', outcome: 'answered' } } };
    const now = join(at.dir, 'now');
    const params = { path: join(at.dir, 'b') };
    const later = { ask: 'fs/read_text_file', params, quiet: true, takeBackWhen: now };
    const task = await at.task([hitl('question', { question: 'which?' }), later, { update: resolved }, { say: 'on' }]);
    const [ask] = await at.t.asks(task.id);
    writeFileSync(now, '');
    expect((await at.t.until(task.id)).status).toBe('COMPLETED');
    expect(await at.t.bridge.view(ana, 'ask', ask!.id)).toMatchObject({ state: 'canceled' });
    expect(at.notes('hitl')).toEqual([]);
  });

  test('a client of the profile without forms is asked its way, answers with a call, and hears that it is settled', async () => {
    const at = await openAgentGateway();
    const editor = await openEditor(at.t, { capabilities: HARN });
    const sessionId = await editor.session(at.dir);
    const requestedSchema = { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] };
    const steps = [{ ask: 'elicitation/create', params: { mode: 'form', message: 'which colour?', requestedSchema } }];
    const done = editor.prompt(sessionId, JSON.stringify(steps));
    const { params } = await editor.next((frame) => frame.params?.update?.sessionUpdate === 'hitl_request');
    const { requestId, kind, payload } = params.update._meta.harn;
    expect([kind, payload]).toEqual(['question', { question: 'which colour?', schema: { type: 'string' } }]);
    expect(await editor.call('harn.hitl.respond', { request_id: requestId, answer: 'blue' })).toEqual({ ok: true });
    expect((await done).stopReason).toBe('end_turn');
    expect(at.notes('answer')).toEqual(['{"action":"accept","content":{"colour":"blue"}}']);
    expect(editor.updates('hitl_resolved')).toMatchObject([{ _meta: { harn: { requestId, outcome: 'answered' } } }]);
  });

  test('an older agent asks for permission without options, and hears a bare yes or no', async () => {
    const at = await openAgentGateway({ rules: '- { id: x, when: { tool: rm }, then: block, say: kept }' });
    const toolCall = { toolCallId: 'c', toolName: 'rm', rawInput: {} };
    await at.run([{ ask: 'session/request_permission', params: { toolCall, approvalRequest: { id: 'a' } } }]);
    expect(at.notes('answer')).toEqual(['{"granted":false,"reason":"kept"}']);
  });
});

describe('the catalog of providers', () => {
  const catalog = { schemaVersion: 2, providers: [{ id: 'local' }] };

  test('is answered and advertised where there is one, and neither where there is none', async () => {
    const at = await openAgentGateway();
    const without = await openEditor(at.t, { capabilities: HARN });
    expect(await without.refused('_harn/providerCatalog')).toMatchObject({ code: -32601 });
    const { extensionMethods } = without.frames[0].result.agentCapabilities._meta.harn;
    expect(Object.keys(extensionMethods)).toEqual(['_harn/agentEvent']);
    const having = await openEditor(at.t, { capabilities: HARN, config: { provider_catalog: catalog } });
    expect(await having.call('_harn/providerCatalog')).toEqual(catalog);
    expect(having.frames[0].result.agentCapabilities._meta.harn).toEqual(harnCapabilities(true));
  });

  test('of an agent behind us is written down once', async () => {
    const can = { _meta: { harn: { extensionMethods: { '_harn/providerCatalog': { schemaVersion: 2 } } } } };
    const at = await openAgentGateway({ agent: { can } });
    const first = await at.run('x');
    const second = await at.run('y');
    expect(of(await at.t.events(first.id), 'vendor.harn.provider_catalog')[0]?.payload).toEqual({ catalog });
    expect(of(await at.t.events(second.id), 'vendor.harn.provider_catalog')).toEqual([]);
  });
});

test('what an agent tells of its loop reaches clients of the profile on its own channel', async () => {
  const params = { kind: 'turn_start', iteration: 1 };
  const at = await openAgentGateway();
  const [harn, plain] = [await openEditor(at.t, { capabilities: HARN }), await openEditor(at.t)];
  for (const editor of [harn, plain]) {
    await editor.call('session/load', { sessionId: at.room.session, cwd: at.dir, mcpServers: [] });
  }
  await at.run([{ frame: { jsonrpc: '2.0', method: '_harn/agentEvent', params: { sessionId: 'theirs', ...params } } }]);
  for (const editor of [harn, plain]) await editor.prompt(at.room.session, 'done?');
  const reported = (editor: typeof harn) => editor.frames.filter(({ method }) => method === '_harn/agentEvent');
  expect(reported(harn).map((frame) => frame.params)).toEqual([{ sessionId: at.room.session, ...params }]);
  expect(reported(plain)).toEqual([]);
});

describe('places of members', () => {
  test('the page is read before the root, and null is only kept where it means something', () => {
    const update = { sessionUpdate: 'log', level: 'info', message: null, _meta: { harn: { level: 'warn' } } };
    expect(harnFields(update, ['level', 'message'])).toEqual({ level: 'warn' });
    expect(harnFields({ snapshotAssetId: null }, ['snapshotAssetId'])).toEqual({ snapshotAssetId: null });
  });
  test('others are left alone', () => {
    const update = {
      sessionUpdate: 'tool_call',
      toolCallId: 'c',
      title: 't',
      data: 1,
      _meta: { claudeCode: { x: 1 } },
    };
    expect(normalised(update)).toEqual({
      sessionUpdate: 'tool_call',
      toolCallId: 'c',
      title: 't',
      _meta: { claudeCode: { x: 1 }, harn: { data: 1 } },
    });
    expect(toolFields(update)).toEqual({ data: 1 });
  });
  test('both spellings of a worker event', () => {
    expect([workerEvent('WorkerFailed'), workerEvent('worker_waiting_for_input'), workerEvent('WorkerSlept')]).toEqual([
      'WorkerFailed',
      'WorkerWaitingForInput',
      undefined,
    ]);
  });
  test('a chunk without a visible part is visible', () => {
    expect([visibleText({ text: 'a' }), visibleText({ text: 'a', visible_delta: '' })]).toEqual(['a', '']);
  });
});

test('a handoff of an agent that does not speak the profile reaches its clients as one', async () => {
  const agent = scriptedAgent(async (sink) => {
    const payload = { target_agent: 'peer', task_id: 'task_9', status: 'completed', receipt_id: 'receipt_9' };
    await sink.emit({ event: 'agent.handoff', payload });
    return undefined;
  });
  const { editor } = await openEditorGateway({ agents: [agent] }, { capabilities: HARN });
  const sessionId = await editor.session();
  const { _meta } = await editor.prompt(sessionId, 'go');
  expect(editor.updates('handoff')).toMatchObject([
    {
      _meta: {
        harn: {
          handoffId: 'task_9',
          handoff: {
            _type: 'handoff_artifact',
            id: 'task_9',
            parent_run_id: _meta.tollbridge.taskId,
            source_persona: 'agent:agent',
            target_persona_or_human: { kind: 'agent', id: 'peer' },
            receipt_links: ['receipt_9'],
            metadata: { status: 'completed' },
          },
        },
      },
    },
  ]);
  expect(editor.updates('agent_message_chunk')).toEqual([]);
});

test('the catalog an agent reported is passed on to clients of the profile', async () => {
  const can = { _meta: { harn: { extensionMethods: { '_harn/providerCatalog': { schemaVersion: 2 } } } } };
  const at = await openAgentGateway({ agent: { can } });
  await at.run('x');
  const editor = await openEditor(at.t, { capabilities: HARN });
  const { extensionMethods, hostCapabilityOperations } = editor.frames[0].result.agentCapabilities._meta.harn;
  expect(Object.keys(extensionMethods)).toContain('_harn/providerCatalog');
  expect(hostCapabilityOperations.process).toContain('exec');
  expect(await editor.call('_harn/providerCatalog')).toEqual(expect.objectContaining({}));
});

test('an agent has its host run commands through the gate, and asks about its shells', async () => {
  const rules = `- { id: no-rm, when: { command: "rm *" }, then: block, say: nothing is removed here }
- { id: run, when: { kind: [terminal, extension] }, then: allow, say: in a sandbox }`;
  const at = await openAgentGateway({ rules });
  const call = (name: string, args: object) => ({ ask: 'host/call', params: { name, args } });
  const task = await at.run([
    call('process.exec', { command: 'echo hi' }),
    call('process.exec', { command: 'rm -r build' }),
    call('process.shell_invocation', { command: 'ls' }),
    call('process.get_default_shell', {}),
    call('mail.send', {}),
  ]);
  const answers = at.notes('answer').map((line) => JSON.parse(line));
  expect(answers).toMatchObject([
    { exit_code: 0, stdout: 'hi\n', success: true },
    { exit_code: 126, stdout: expect.stringContaining('nothing is removed here'), success: false },
    { program: '/bin/sh', args: ['-c', 'ls'] },
    { shell: { path: '/bin/sh' } },
    { code: -32601 },
  ]);
  const events = await at.t.events(task.id);
  expect(of(events, 'tool.requested').map(({ payload }) => [payload.name, payload.evidence])).toEqual([
    ['terminal', 'held'],
    ['terminal', 'held'],
    ['process.shell_invocation', 'held'],
    ['process.get_default_shell', 'held'],
  ]);
});
