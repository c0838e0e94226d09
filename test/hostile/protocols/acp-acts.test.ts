/**
 * An agent that has leave for one act and tries to do another, or the same twice, with the built relay between it and its
 * editor.
 */
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Json } from '../../../src/model/schema.ts';
import { line, OPTIONS, openRig, type Rig } from '../../support/acp/built-relay.ts';
import { checkActs } from '../../support/oracle/oracle.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await openRig();
}, 60_000);
afterEach(async () => {
  const wrong = await checkActs(rig.data, rig.contacts);
  await rig.close();
  expect(wrong).toEqual([]);
}, 60_000);

const write = (more: object = {}) => ({ sessionId: 's1', path: `${rig.cwd}/allowed/a`, content: 'x', ...more });

describe('a decision covers exactly the act that was decided, once', () => {
  const permission = (toolCall: object) =>
    rig.ask('session/request_permission', { sessionId: 's1', toolCall, options: OPTIONS });
  const yes = { outcome: { outcome: 'selected', optionId: 'y' } };

  test('a call labelled read covers no write and no command', async () => {
    const path = `${rig.cwd}/secret`;
    const rawInput = { path };
    expect((await permission({ toolCallId: 'c', kind: 'read', rawInput, locations: [{ path }] })).result).toEqual(yes);
    rig.answers('reject_once');
    expect((await rig.ask('fs/write_text_file', write({ path }))).error).toMatchObject({ code: 1403 });
    const ran = await rig.ask('terminal/create', { sessionId: 's1', command: 'cat', args: [path] });
    expect(ran.result?.terminalId).toMatch(/^gw-refused/);
    expect(rig.acts()).toEqual([]);
  });

  test.each([
    ['a command', { command: 'rm -r /' }],
    ['a command in a member', { input: { cmd: ['rm'] } }],
    ['a command as text of an object', { arguments: '{"command":"rm"}' }],
    ['content', { path: '/a', content: 'x' }],
    ['an edit', { file_path: '/a', old_string: 'a', new_string: 'b' }],
  ])('a call labelled read that shows %s asks a person', async (_, rawInput) => {
    rig.answers('reject_once');
    const answer = await permission({ toolCallId: 'c', kind: 'read', title: 'Look', rawInput });
    expect(answer.result).toEqual({ outcome: { outcome: 'selected', optionId: 'n' } });
    expect(rig.questions()).toHaveLength(1);
  });

  test('after a yes to one edit the call is said to be about another file and a command', async () => {
    const content = [{ type: 'diff', path: `${rig.cwd}/a`, oldText: null, newText: 'x' }];
    expect((await permission({ toolCallId: 'c', kind: 'edit', content })).result).toEqual(yes);
    const update = {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'c',
      kind: 'execute',
      rawInput: { command: 'rm x', path: `${rig.cwd}/b` },
      locations: [{ path: `${rig.cwd}/b` }],
    };
    await rig.say(line({ method: 'session/update', params: { sessionId: 's1', update } }));
    rig.answers('reject_once');
    expect((await rig.ask('fs/write_text_file', write({ path: `${rig.cwd}/b` }))).error).toMatchObject({ code: 1403 });
    const ran = await rig.ask('terminal/create', { sessionId: 's1', command: 'rm', args: ['x'] });
    expect(ran.result?.terminalId).toMatch(/^gw-refused/);
    expect(rig.acts()).toEqual([]);
  });

  test('an edit is covered with the content that was shown, once', async () => {
    const path = `${rig.cwd}/a`;
    const content = [{ type: 'diff', path, oldText: null, newText: 'shown' }];
    expect((await permission({ toolCallId: 'c', kind: 'edit', content })).result).toEqual(yes);
    rig.answers('reject_once');
    expect((await rig.ask('fs/write_text_file', write({ path, content: 'other' }))).error).toMatchObject({
      code: 1403,
    });
    expect((await rig.ask('fs/write_text_file', write({ path, content: 'shown' }))).result).toEqual({});
    expect((await rig.ask('fs/write_text_file', write({ path, content: 'shown' }))).error).toMatchObject({
      code: 1403,
    });
    expect(rig.acts()).toEqual(['fs/write_text_file']);
  });

  test('a command is covered as it was shown, once: not with other words, elsewhere or with variables', async () => {
    const run = (more: object) =>
      rig.ask('terminal/create', { sessionId: 's1', command: 'make', args: ['all'], ...more });
    expect((await permission({ toolCallId: 'c', kind: 'execute', rawInput: { command: 'make all' } })).result).toEqual(
      yes,
    );
    rig.answers('reject_once');
    const others = [
      { args: ['all', '-k'] },
      { args: ['all;rm'] },
      { cwd: '/etc' },
      { env: [{ name: 'PATH', value: '/tmp' }] },
      { sessionId: 's2' },
    ];
    for (const more of others) expect((await run(more)).result?.terminalId).toMatch(/^gw-refused/);
    expect((await run({})).result).toEqual({ terminalId: 't1' });
    expect((await run({})).result?.terminalId).toMatch(/^gw-refused/);
    expect(rig.acts()).toEqual(['terminal/create']);
  });

  test('a call that changes while a person is asked about it covers nothing that only one of its states showed', async () => {
    const path = `${rig.cwd}/a`;
    const content = [{ type: 'diff', path, oldText: null, newText: 'x' }];
    let choose: (outcome: unknown) => void = () => {};
    rig.editor.on(
      'session/request_permission',
      () =>
        new Promise((resolve) => {
          choose = resolve;
        }),
    );
    const asked = permission({ toolCallId: 'c', kind: 'edit', content });
    await rig.editor.received(({ method }) => method === 'session/request_permission');
    const shown = [{ type: 'diff', path, oldText: null, newText: 'harmless' }];
    const update = { sessionUpdate: 'tool_call_update', toolCallId: 'c', content: shown };
    await rig.say(line({ method: 'session/update', params: { sessionId: 's1', update } }));
    choose({ outcome: { outcome: 'selected', optionId: 'y' } });
    expect((await asked).result).toEqual(yes);
    rig.editor.on('session/request_permission', () => ({ outcome: { outcome: 'cancelled' } }));
    expect((await rig.ask('fs/write_text_file', write({ path, content: 'x' }))).error).toMatchObject({ code: 1403 });
    expect(rig.acts()).toEqual([]);
  });

  test('two identical questions at once have an answer each', async () => {
    const ids: Json[] = [];
    rig.editor.on('session/request_permission', (_, { id }) => {
      ids.push(id as Json);
      return { outcome: { outcome: 'selected', optionId: ids.length === 1 ? 'y' : 'n' } };
    });
    const params = { sessionId: 's1', toolCall: { toolCallId: 'c', kind: 'edit', title: 'Edit' }, options: OPTIONS };
    await rig.say(
      line({ id: 'one', method: 'session/request_permission', params }) +
        line({ id: 'two', method: 'session/request_permission', params }),
    );
    const answers = () => rig.received().filter(({ id }) => id === 'one' || id === 'two');
    await expect.poll(() => answers().length).toBe(2);
    expect(ids).toHaveLength(2);
    const chosen = answers().map(({ result }) => JSON.stringify(result));
    expect(chosen.filter((each) => each.includes('"y"'))).toHaveLength(1);
  });

  test('a link is no way round a rule about the file behind it', async () => {
    await symlink('/etc', join(rig.cwd, 'allowed', 'link'));
    const answer = await rig.ask('fs/write_text_file', write({ path: `${rig.cwd}/allowed/link/x` }));
    expect(answer.error).toMatchObject({ code: 1403, message: 'Refused by rule outside: not outside' });
    expect(rig.acts()).toEqual([]);
  });

  test('terminals that were not made for a decided act are out of reach', async () => {
    const use = (more: object) => rig.ask('terminal/output', { sessionId: 's1', terminalId: 't1', ...more });
    expect((await use({})).error).toMatchObject({ code: -32602 });
    expect((await rig.ask('terminal/create', { sessionId: 's1', command: 'ls', args: ['x'] })).result).toEqual({
      terminalId: 't1',
    });
    for (const more of [{ sessionId: 's2' }, { terminalId: ['t1'] }, { terminalId: 't2' }]) {
      expect((await use(more)).error).toMatchObject({ code: -32602 });
    }
    expect((await use({})).result).toMatchObject({ output: '' });
    expect((await rig.ask('terminal/release', { sessionId: 's1', terminalId: 't1' })).result).toBeDefined();
    expect((await use({})).error).toMatchObject({ code: -32602 });
    expect(rig.acts()).toEqual(['terminal/create', 'terminal/output', 'terminal/release']);
  });

  test("a terminal of one session is out of the other's reach, in both directions", async () => {
    const USES = ['terminal/output', 'terminal/wait_for_exit', 'terminal/kill', 'terminal/release'];
    await rig.mark();
    for (const [owner, other] of [
      ['s1', 's2'],
      ['s2', 's1'],
    ]) {
      const made = await rig.ask('terminal/create', { sessionId: owner, command: 'ls', args: ['x'] });
      const { terminalId } = made.result as { terminalId: string };
      for (const method of USES) {
        expect((await rig.ask(method, { sessionId: other, terminalId })).error).toMatchObject({ code: -32602 });
      }
      expect((await rig.ask('terminal/output', { sessionId: owner, terminalId })).result).toMatchObject({ output: '' });
      expect((await rig.ask('terminal/release', { sessionId: owner, terminalId })).result).toBeDefined();
    }
    const each = ['terminal/create', 'terminal/output', 'terminal/release'];
    expect(rig.acts()).toEqual([...each, ...each]);
  });
});
