/** Sessions that are loaded and resumed at agents that cannot do that: the log has what they have forgotten. */
import { describe, expect, test } from 'vitest';
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

describe('without additions', () => {
  const WRITES = '[{ id: edits, when: { effect: write }, then: block, say: no edits today }]';
  /** An agent that passes no error on to its model; its person is asked nothing, a rule says no. */
  async function refusedOnce(additions: boolean) {
    const stage = await openStage({ rules: WRITES, relay: { additions } });
    await stage.greeted();
    stage.agent.on('session/prompt', async () => {
      const toolCall = { toolCallId: 't1', title: 'Edit a.ts', kind: 'edit', rawInput: { path: 'a.ts' } };
      await stage.agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
      return END;
    });
    await stage.prompt('one');
    stage.agent.on('session/prompt', () => END);
    // Spelled as no encoder of ours would.
    const line =
      '{"method" : "session/prompt","jsonrpc":"2.0","id":77.0,"params":{"prompt":[{"text":"two","type":"text"}],"sessionId":"s1"}}';
    stage.editor.raw(`${line}\n`);
    await stage.editor.received(({ id, method }) => id === 77 && method === undefined);
    return { got: stage.agent.lines.at(-1), line };
  }

  test('a prompt arrives as it left, also after a refusal that the agent was not told the reason of', async () => {
    const { got, line } = await refusedOnce(false);
    expect(got).toBe(line);
    expect((await refusedOnce(true)).got).toContain('no edits today');
  });

  test('the response to initialize arrives as it left', async () => {
    const stage = await openStage({ relay: { additions: false } });
    const line = '{"id" : 5, "jsonrpc":"2.0","result":{"protocolVersion":1,"agentCapabilities":{ }}}';
    stage.agent.on('initialize', () => void stage.agent.raw(`${line}\n`));
    await stage.editor.ask('initialize', { protocolVersion: 1 }, 5);
    expect(stage.editor.lines.at(-1)).toBe(line);
  });

  test('sessions are the agent’s to restore: it is asked, whatever it said it can, and its error is the editor’s', async () => {
    const stage = await openStage({ relay: { additions: false } });
    await stage.greeted();
    stage.agent.on('session/prompt', () => END);
    await stage.prompt('one');
    const error = { code: -32601, message: 'Method not found' };
    stage.agent.on('session/load', (_, { id }) => void stage.agent.say({ id, error }));
    expect((await stage.editor.ask('session/load', again('s1'))).error).toEqual(error);
    expect(stage.agent.frames.filter(({ method }) => method === 'session/new')).toHaveLength(1);
  });
});
