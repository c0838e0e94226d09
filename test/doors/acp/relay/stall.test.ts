/** An agent that falls silent in the middle of a turn is noticed; one that waits for a person is not an agent that hangs. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ToolResult } from '../../../../src/model/actions.ts';
import { CWD, OPTIONS, openStage, picks, type Stage, text, update } from '../../../support/acp/relay.ts';
import { latch } from '../../../support/gateway/agents.ts';
import { of } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';

const STALL_MS = 120;
const WHY = 'the agent bot has not said a word for 0.1 seconds';
/** For what takes several steps of the test before the turn is known to wait: a busy machine must not take them for silence. */
const LONG_STALL_MS = 600;
const LONG_WHY = 'the agent bot has not said a word for 0.6 seconds';

async function silent(options: Parameters<typeof openStage>[0] = {}): Promise<Stage> {
  const stage = await openStage({ ...options, relay: { stallMs: STALL_MS, ...options.relay } });
  await stage.greeted();
  return stage;
}

test('silence in a turn: the editor hears why, the agent is asked to stop, and the task has failed with what was said', async () => {
  const stage = await silent();
  stage.agent.on('session/prompt', () => {
    stage.agent.notify('session/update', text('so far'));
    return undefined;
  });
  const answer = await stage.prompt();
  expect(answer.error).toEqual({ code: -32603, message: WHY, data: { code: 'upstream_unavailable' } });
  await stage.agent.received(({ method }) => method === 'session/cancel');
  const task = await stage.task();
  expect(task).toMatchObject({ status: 'FAILED', failure: { code: 'upstream_unavailable', message: WHY } });
  const [message] = of(await stage.home.events(task.id), 'agent.message');
  expect(message?.payload.message).toMatchObject({ parts: [{ text: 'so far' }] });
  expect(await stage.home.receipts(task.id)).toMatchObject([{ lifecycle: { final_state: 'FAILED' } }]);
});

test('what it says to the prompt after that is for nobody, and the next turn is a turn', async () => {
  const stage = await silent();
  const ids: unknown[] = [];
  stage.agent.on('session/prompt', (_, { id }) => void ids.push(id));
  await stage.prompt();
  stage.agent.say({ id: ids[0], result: { stopReason: 'cancelled' } });
  stage.agent.on('session/prompt', () => ({ stopReason: 'end_turn' }));
  expect((await stage.prompt()).result).toEqual({ stopReason: 'end_turn' });
  expect(stage.editor.frames.filter(({ id, method }) => id === ids[0] && !method)).toHaveLength(1);
  expect((await stage.tasks()).map(({ status }) => status)).toEqual(['COMPLETED', 'FAILED']);
});

test('every prompt of the turn is answered', async () => {
  const stage = await silent();
  stage.agent.on('session/prompt', () => undefined);
  const both = await Promise.all([stage.prompt('one'), stage.prompt('two')]);
  expect(both.map(({ error }) => error?.message)).toEqual([WHY, WHY]);
});

test('progress of any kind keeps a turn alive', async () => {
  const stage = await silent();
  const signs = [
    () => stage.agent.notify('session/update', text('a')),
    () => stage.agent.notify('session/update', update('usage_update', { used: 1, size: 2 })),
    () => stage.agent.notify('_vendor/alive', { sessionId: 's1' }),
    () => stage.agent.raw('{"jsonrpc":"2.0","id":"nobody","result":{}}\n'),
  ];
  stage.agent.on('session/prompt', async () => {
    for (const sign of [...signs, ...signs]) {
      sign();
      await pause(STALL_MS / 2);
    }
    return { stopReason: 'end_turn' };
  });
  expect((await stage.prompt()).result).toEqual({ stopReason: 'end_turn' });
});

const ASKS: readonly (readonly [string, string, object, object])[] = [
  ['a permission', 'session/request_permission', { toolCall: { toolCallId: 'c' }, options: OPTIONS }, {}],
  ['a value', 'elicitation/create', { mode: 'form', message: 'which?', requestedSchema: {} }, { action: 'decline' }],
  ['a file', 'fs/read_text_file', { path: `${CWD}/a` }, { content: '' }],
  ['something nobody here knows', '_vendor/choose', { among: [1, 2] }, { chosen: 1 }],
];
test.each(ASKS)('waiting for %s is not hanging; silence after it is', async (_, method, params, result) => {
  const stage = await silent({ rules: '[{ id: vendors, when: { kind: extension }, then: allow, say: known here }]' });
  stage.agent.on('session/prompt', async () => {
    await stage.agent.ask(method, { sessionId: 's1', ...params });
    stage.agent.notify('_test/answered', {});
    return undefined;
  });
  stage.editor.on(method, async (asked) => {
    await pause(STALL_MS * 4);
    return method === 'session/request_permission' ? picks('allow_once')(asked, {}) : result;
  });
  const answer = await stage.prompt();
  expect(stage.editor.frames.some((frame) => frame.method === '_test/answered')).toBe(true);
  expect(answer.error?.message).toBe(WHY);
});

test('a question about the turn that came another way is waited for, too', async () => {
  const rules = '[{ id: send, when: { tool: mail }, then: ask, say: a person decides }]';
  const stage = await silent({ rules, relay: { stallMs: LONG_STALL_MS } });
  stage.agent.on('session/prompt', () => undefined);
  const turn = stage.prompt();
  await stage.agent.received(({ method }) => method === 'session/prompt');
  const { id } = await stage.task();
  const action = { kind: 'tool', tool: 'mail', tool_call_id: 'm1', effect: 'send' } as const;
  const proposed = stage.home.send('action.propose', { task_id: id, action });
  const dialog = await stage.editor.received(({ method }) => method === 'session/request_permission');
  await pause(LONG_STALL_MS * 1.6);
  expect((await stage.task()).status).toBe('AUTH_REQUIRED');
  stage.editor.say({ id: dialog.id, result: { outcome: { outcome: 'selected', optionId: 'approve' } } });
  expect((await proposed).decision?.verdict).toBe('allow');
  expect((await turn).error?.message).toBe(LONG_WHY);
});

describe('a call of its that runs in another process', () => {
  const ALLOW =
    '[{ id: slow, when: { tool: slow }, then: allow }, { id: mail, when: { tool: mail }, then: ask, say: a person decides }]';

  /** Another process of ours, where the agent has called a tool that takes for ever. */
  async function calledElsewhere(tool: string) {
    const stage = await silent({ rules: ALLOW, relay: { stallMs: LONG_STALL_MS } });
    const done = latch<ToolResult>();
    const spec = { run: () => done.promise };
    // Opened before the turn begins: a gateway takes a while to open, and the silence meanwhile would count.
    const other = await stage.home.second({ agents: [], tools: [countingTools({ slow: spec, mail: spec })] });
    stage.agent.on('session/prompt', () => undefined);
    const turn = stage.prompt();
    await stage.agent.received(({ method }) => method === 'session/prompt');
    const { id } = await stage.task();
    const action = { kind: 'tool', tool, tool_call_id: 'c1' } as const;
    const called = other.send('tool.call', { task_id: id, action });
    called.catch(() => {});
    await stage.home.seen(id, 'tool.requested');
    await pause(LONG_STALL_MS * 1.6);
    expect((await stage.task()).status).not.toBe('FAILED');
    return { stage, turn, other, called, done };
  }

  test('is waited for; silence after it is hanging', async () => {
    const { turn, called, done } = await calledElsewhere('slow');
    done.open({ status: 'ok', output: 'done' });
    expect((await called).act).toMatchObject({ kind: 'done', result: { output: 'done' } });
    expect((await turn).error?.message).toBe(LONG_WHY);
  });

  test.each(['slow', 'mail'])('is not waited for once that process is gone (%s)', async (tool) => {
    const { stage, turn, other } = await calledElsewhere(tool);
    await other.close();
    expect((await turn).error?.message).toBe(LONG_WHY);
    expect(await stage.task()).toMatchObject({ status: 'FAILED', failure: { code: 'upstream_unavailable' } });
  });
});

test('in the second version of the wire the end is reported as an update', async () => {
  const stage = await openStage({ relay: { stallMs: STALL_MS } });
  await stage.greeted({ init: { protocolVersion: 2 } });
  stage.agent.on('session/prompt', () => ({ messageId: 'm1' }));
  expect((await stage.prompt()).result).toEqual({ messageId: 'm1' });
  const { params } = await stage.editor.received(({ params }) => JSON.stringify(params ?? {}).includes('state_update'));
  expect(params?.update).toMatchObject({ state: 'idle', stopReason: 'error', error: { message: WHY } });
  expect((await stage.task()).status).toBe('FAILED');
});

test('where it is switched off an agent may be silent for as long as it likes', async () => {
  const stage = await silent({ relay: { stallMs: undefined } });
  stage.agent.on('session/prompt', async () => {
    await pause(STALL_MS * 4);
    return { stopReason: 'end_turn' };
  });
  expect((await stage.prompt()).result).toEqual({ stopReason: 'end_turn' });
});
