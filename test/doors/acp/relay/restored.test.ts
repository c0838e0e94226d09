/** Sessions that are loaded and resumed at agents that cannot do that: the log has what they have forgotten. */
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { CWD, OPTIONS, openStage, picks, type Stage, text, update } from '../../../support/acp/relay.ts';

const END = { stopReason: 'end_turn' };
const again = (sessionId: string) => ({ sessionId, cwd: CWD, mcpServers: [] });
const shown = ({ editor }: Stage) =>
  editor.frames
    .filter(({ method }) => method === 'session/update')
    .map(({ params }) => {
      const { sessionUpdate, content, title, status } = (params?.update ?? {}) as Record<string, never>;
      return [params?.sessionId, sessionUpdate, (content as { text?: string } | undefined)?.text ?? title ?? status];
    });

/** One turn with a question; then the history is as good as new. */
async function talked(init: JsonObject): Promise<Stage> {
  const stage = await openStage({ rules: '[{ id: edits, when: { effect: write }, then: ask, say: look at edits }]' });
  await stage.greeted({ init });
  stage.editor.on('session/request_permission', picks('allow_once'));
  stage.agent.on('session/prompt', async () => {
    stage.agent.notify('session/update', text('first words'));
    const toolCall = { toolCallId: 't1', title: 'Edit a.ts', kind: 'edit', rawInput: { path: 'a.ts' } };
    await stage.agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
    stage.agent.notify('session/update', update('tool_call_update', { toolCallId: 't1', status: 'completed' }));
    return END;
  });
  await stage.prompt('one');
  stage.editor.frames.length = 0;
  return stage;
}

test('an agent that can restore nothing gets a new session and the conversation; the editor notices neither', async () => {
  const stage = await talked({ agentCapabilities: {} });
  stage.agent.on('session/new', () => ({ sessionId: 's2', modes: { currentModeId: 'ask', availableModes: [] } }));
  const loaded = await stage.editor.ask('session/load', again('s1'));
  expect(loaded.result).toEqual({ modes: { currentModeId: 'ask', availableModes: [] } });
  expect(shown(stage)).toEqual([
    ['s1', 'user_message_chunk', 'one'],
    ['s1', 'agent_message_chunk', 'first words'],
    ['s1', 'tool_call', 'Edit a.ts'],
    // Questions and their answers are part of the past.
    ['s1', 'tool_call', expect.stringContaining('edit')],
    ['s1', 'tool_call_update', 'completed'],
  ]);
  stage.editor.frames.length = 0;

  const prompts: unknown[] = [];
  stage.agent.on('session/prompt', (params) => {
    prompts.push(params);
    stage.agent.notify('session/update', { ...text('second words'), sessionId: 's2' });
    stage.agent.notify('session/update', { ...text(' and more'), sessionId: 's2' });
    return END;
  });
  expect((await stage.prompt('two')).result).toEqual(END);
  expect(prompts).toEqual([
    {
      sessionId: 's2',
      prompt: [
        {
          type: 'text',
          text: expect.stringMatching(/^What was said before[\s\S]*user: one[\s\S]*assistant: first words$/),
        },
        { type: 'text', text: 'two' },
      ],
    },
  ]);
  expect(shown(stage)).toEqual([
    ['s1', 'agent_message_chunk', 'second words'],
    ['s1', 'agent_message_chunk', ' and more'],
  ]);
  const sessions = new Set((await stage.tasks()).map(({ session_id }) => session_id));
  expect(sessions.size).toBe(1);
  await stage.prompt('three');
  expect((prompts[1] as { prompt: unknown[] }).prompt).toEqual([{ type: 'text', text: 'three' }]);
});

test('an agent that can load is loaded when the editor resumes, and its history is not shown', async () => {
  const stage = await talked({ agentCapabilities: { loadSession: true } });
  stage.agent.on('session/load', () => {
    stage.agent.notify('session/update', text('first words'));
    return {};
  });
  expect((await stage.editor.ask('session/resume', again('s1'))).result).toEqual({});
  expect(shown(stage)).toEqual([]);
});

test('an agent that has forgotten the session is helped by the log', async () => {
  const stage = await talked({ agentCapabilities: { loadSession: true } });
  const error = { code: -32603, message: 'unknown session' };
  stage.agent.on('session/load', (_, { id }) => void stage.agent.say({ id, error }));
  stage.agent.on('session/new', () => ({ sessionId: 's2' }));
  expect((await stage.editor.ask('session/load', again('s1'))).result).toEqual({});
  expect(shown(stage)[0]).toEqual(['s1', 'user_message_chunk', 'one']);
});

test('every agent can load and resume, as far as the editor knows; a session nobody knows is not there', async () => {
  const stage = await openStage();
  stage.agent.on('initialize', () => ({
    protocolVersion: 1,
    agentCapabilities: { promptCapabilities: { image: true } },
  }));
  const { result } = await stage.editor.ask('initialize', { protocolVersion: 1 });
  expect(result?.agentCapabilities).toEqual({
    promptCapabilities: { image: true },
    loadSession: true,
    sessionCapabilities: { resume: {} },
  });
  expect((await stage.editor.ask('session/load', again('nobodys'))).error).toMatchObject({ code: -32002 });
});
