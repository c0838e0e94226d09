/**
 * An agent and an editor that break the protocol, with the built relay between them. Each case: the sender hears the error,
 * nothing reaches the other side, the log has the reason, the relay lives.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../../src/model/schema.ts';
import { line, openRig, PUPPET, type Rig, RULES } from '../../support/acp/built-relay.ts';
import { checkActs } from '../../support/oracle/oracle.ts';
import { aGateway, startSpeaking } from '../../support/process/stdio-process.ts';

let rig: Rig;
beforeAll(async () => {
  rig = await openRig();
}, 60_000);
beforeEach(async () => {
  await rig.mark();
  rig.answers('allow_once');
});
afterAll(async () => {
  const wrong = await checkActs(rig.data, rig.contacts);
  await rig.close();
  expect(wrong).toEqual([]);
}, 60_000);

const write = (more: object = {}) => ({ sessionId: 's1', path: `${rig.cwd}/allowed/a`, content: 'x', ...more });

describe('frames of an agent that cannot be read never reach the editor', () => {
  const call = () => line({ id: 7, method: 'fs/write_text_file', params: write() }).trimEnd();
  const CASES: readonly (readonly [string, () => string | Buffer, number, Json])[] = [
    ['a byte order mark', () => `\ufeff${call()}\n`, -32700, 7],
    ['a carriage return before it', () => `\r${call()}\n`, -32700, 7],
    ['a carriage return inside', () => `{"a":\r${call()}\r}\n`, -32700, null],
    ['a name twice in the envelope', () => `${call().replace('{', '{"method":"session/update",')}\n`, -32600, 7],
    [
      'a name twice in the parameters',
      () => `${call().replace('"content"', '"path":"/etc/x","content"')}\n`,
      -32600,
      7,
    ],
    [
      'a name twice, once escaped',
      () => `${call().replace('"content"', '"p\\u0061th":"/etc/x","content"')}\n`,
      -32600,
      7,
    ],
    ['two ids', () => `${call().replace('{', '{"id":8,')}\n`, -32600, null],
    ['bytes that are not UTF-8', () => spoiled(call(), 0xff), -32700, 7],
    ['an overlong spelling', () => spoiled(call(), 0xc0, 0xaf), -32700, 7],
    ['a null byte', () => `\0${call()}\n`, -32700, null],
    ['two values on one line', () => `${call()}${call()}\n`, -32700, null],
    ['words before it', () => `x ${call()}\n`, 0, null],
    ['words after it', () => `${call()} x\n`, -32700, null],
    [
      'nesting without an end',
      () => `${call().replace('"content"', `"d":${'['.repeat(5_000)}${']'.repeat(5_000)},"content"`)}\n`,
      -32600,
      7,
    ],
    ['another spelling of method', () => `${call().replace('"method"', '"Method"')}\n`, -32600, 7],
    ['both a call and an answer', () => `${call().replace('{', '{"result":{},')}\n`, -32600, 7],
    ['an id that is an object', () => `${call().replace(':7,', ':{"a":1},')}\n`, -32600, null],
    ['a batch of one', () => `[${call()}]\n`, -32600, null],
    ['a batch in a batch', () => `[[${call()}]]\n`, -32600, null],
  ];
  test.each(CASES)('%s', async (_, bytes, code, id) => {
    await rig.say(bytes());
    expect(rig.acts()).toEqual([]);
    // Stray words are for the process's own log; a frame has a sender who is notified.
    if (code === 0) await expect.poll(rig.stderr).toContain('not the protocol');
    else {
      await expect.poll(() => rig.received().filter(({ error }) => error)).toMatchObject([{ id, error: { code } }]);
      await expect.poll(rig.reasons, { timeout: 10_000 }).not.toEqual([]);
    }
    expect((await rig.ask('fs/write_text_file', write())).result).toEqual({});
  });

  test('an oversized line is skipped, and what comes after it is read', async () => {
    await rig.flood(70 * 1024 * 1024);
    await expect.poll(() => rig.received().filter(({ error }) => error)).toMatchObject([{ error: { code: -32700 } }]);
    expect(rig.editor.lines.some((each) => each.length > 1_000_000)).toBe(false);
    expect((await rig.ask('fs/write_text_file', write())).result).toEqual({});
  }, 60_000);
});

function spoiled(text: string, ...bytes: number[]): Buffer {
  const at = text.indexOf('allowed');
  return Buffer.concat([Buffer.from(text.slice(0, at)), Buffer.from(bytes), Buffer.from(`${text.slice(at)}\n`)]);
}

describe('frames of an agent that cannot be placed never reach the editor', () => {
  const placed = (params: object) => ({
    path: `${rig.cwd}/allowed/a`,
    content: 'x',
    command: 'ls',
    args: ['x'],
    ...params,
  });
  const SESSIONS: readonly (readonly [string, object])[] = [
    ['no session', {}],
    ['an empty session', { sessionId: '' }],
    ['a number for a session', { sessionId: 1 }],
    ['a list for a session', { sessionId: ['s1'] }],
    ['null for a session', { sessionId: null }],
    ['a session nobody opened', { sessionId: 's9' }],
    ['a session that looks like another', { sessionId: '\uff531' }],
    ['a session with an invisible character', { sessionId: 's1\u200b' }],
    ['another spelling of the name', { SessionId: 's1' }],
    ['another spelling beside the name', { sessionId: 's1', Path: '/etc/passwd', Command: 'rm' }],
  ];
  test.each(SESSIONS)('%s', async (_, params) => {
    for (const method of ['fs/write_text_file', 'fs/read_text_file', 'terminal/create', 'terminal/output']) {
      expect((await rig.ask(method, placed(params), `${method}?`)).error).toMatchObject({ code: -32602 });
    }
    expect(rig.acts()).toEqual([]);
    await expect.poll(rig.reasons, { timeout: 10_000 }).not.toEqual([]);
    expect(rig.alive()).toBe(true);
  });

  test('calls sent as notifications', async () => {
    const methods = [
      'fs/write_text_file',
      'fs/read_text_file',
      'terminal/create',
      'terminal/kill',
      'session/request_permission',
    ];
    for (const method of methods) await rig.say(line({ method, params: placed({ sessionId: 's1' }) }));
    await expect.poll(() => rig.received().filter(({ error }) => error).length).toBe(methods.length);
    expect(rig.received().find(({ error }) => error)).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: {
        code: -32600,
        message: 'fs/write_text_file is a request and needs an id; as a notification it is not passed on',
      },
    });
    expect(rig.acts()).toEqual([]);
    expect(rig.questions()).toEqual([]);
  });

  test('notifications sent as calls, and calls of the editor', async () => {
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'x' } };
    expect((await rig.ask('session/update', { sessionId: 's1', update })).error).toMatchObject({ code: -32600 });
    expect((await rig.ask('session/prompt', { sessionId: 's1', prompt: [] })).error).toEqual({
      code: -32600,
      message: 'session/prompt is sent by the editor, not by the agent',
    });
    const wrapped = { method: 'fs/write_text_file', params: write() };
    expect((await rig.ask('proxy/successor', wrapped)).error).toMatchObject({ code: -32600 });
    expect(rig.editor.frames.some(({ method }) => method === 'proxy/successor' || method === 'session/prompt')).toBe(
      false,
    );
  });

  test.each([
    'FS/WRITE_TEXT_FILE',
    'fs/write_text_file ',
    '/fs/write_text_file',
    'fs//write_text_file',
    'fs/write_text_file\u200b',
  ])('a method that is almost one: %j', async (method) => {
    expect((await rig.ask(method, write())).error).toMatchObject({ code: -32600 });
    expect(rig.acts()).toEqual([]);
  });

  test('parameters of other types', async () => {
    const wrong: readonly (readonly [string, unknown])[] = [
      ['fs/write_text_file', [write()]],
      ['fs/write_text_file', write({ path: [`${rig.cwd}/allowed/a`] })],
      ['fs/write_text_file', write({ path: 'allowed/a' })],
      ['fs/write_text_file', write({ path: `${rig.cwd}/allowed/a\0b` })],
      ['fs/write_text_file', write({ content: null })],
      ['fs/write_text_file', write({ content: '\ud800' })],
      ['fs/read_text_file', write({ line: 1.5 })],
      ['terminal/create', { sessionId: 's1', command: ['ls', '-l'] }],
      ['terminal/create', { sessionId: 's1', command: 'ls', args: [['-l']] }],
      ['terminal/create', { sessionId: 's1', command: 'ls', args: ['x'], env: { A: 'b' } }],
      ['terminal/create', { sessionId: 's1', command: 'ls', args: ['x'], cwd: 'here' }],
    ];
    for (const [method, params] of wrong) {
      expect((await rig.ask(method, params as object)).error).toMatchObject({ code: -32602 });
    }
    expect(rig.acts()).toEqual([]);
  });

  test('an id that is in use, and one that is ours', async () => {
    await rig.say(line({ id: 'gw:1', method: 'fs/write_text_file', params: write() }));
    await expect.poll(() => rig.received().find(({ id }) => id === 'gw:1')?.error).toMatchObject({ code: -32600 });
    rig.editor.on('elicitation/create', () => undefined);
    const form = { sessionId: 's1', mode: 'form', message: '?', requestedSchema: {} };
    await rig.say(line({ id: 'twice', method: 'elicitation/create', params: form }));
    await rig.say(line({ id: 'twice', method: 'fs/write_text_file', params: write() }));
    await expect.poll(() => rig.received().find(({ id }) => id === null)?.error).toMatchObject({ code: -32600 });
    expect(rig.acts()).toEqual([]);
  });

  test('answers to requests nobody made', async () => {
    const before = rig.editor.frames.length;
    await rig.say(line({ id: 999, result: {} }));
    await rig.say(line({ id: 'gw:1', result: { outcome: { outcome: 'selected', optionId: 'approve' } } }));
    expect(rig.editor.frames.slice(before).filter(({ method }) => method === undefined)).toEqual([]);
  });
});

describe('requests nobody knows are acts', () => {
  test('of the agent: a person is asked, and a no keeps it from the editor', async () => {
    rig.answers('reject_once');
    for (const method of [
      '_vendor/do',
      'host/call',
      'builtin_call',
      'mcp/message',
      'fs/delete',
      '__proto__',
      'constructor',
    ]) {
      expect((await rig.ask(method, { sessionId: 's1', name: 'exec' })).error).toMatchObject({ code: 1403 });
    }
    expect(rig.questions()).toHaveLength(7);
    expect(rig.editor.frames.some(({ method }) => method === '_vendor/do' || method === 'host/call')).toBe(false);
  });

  test('of the editor: the same, before the agent has it', async () => {
    rig.answers('reject_once');
    const answer = await rig.editor.ask('_vendor/do', { sessionId: 's1', n: 1 });
    expect(answer.error).toMatchObject({ code: 1403 });
    expect(rig.received().some(({ method }) => method === '_vendor/do')).toBe(false);
  });

  test('known ones pass, and so do notifications that vendors may name', async () => {
    rig.editor.on('host/capabilities', () => ({}));
    expect((await rig.ask('host/capabilities', { sessionId: 's1' })).result).toEqual({});
    await rig.say(line({ method: '_vendor/told', params: {} }));
    await rig.editor.received(({ method }) => method === '_vendor/told');
    await rig.say(line({ method: 'vendor/told', params: {} }));
    await expect.poll(() => rig.received().find(({ error }) => error)?.error).toMatchObject({ code: -32600 });
    expect(rig.editor.frames.some(({ method }) => method === 'vendor/told')).toBe(false);
  });
});

describe('an editor that breaks the protocol', () => {
  test.each([
    ['a call of the agent', '{"jsonrpc":"2.0","id":"e","method":"fs/write_text_file","params":{}}', 'e', -32600],
    [
      'a prompt without an id',
      '{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}',
      null,
      -32600,
    ],
    [
      'a prompt without a session',
      '{"jsonrpc":"2.0","id":"e","method":"session/prompt","params":{"prompt":[]}}',
      'e',
      -32602,
    ],
    ['a name twice', '{"jsonrpc":"2.0","id":"e","method":"session/prompt","method":"session/list"}', 'e', -32600],
    ['a mark at the beginning', '\ufeff{"jsonrpc":"2.0","id":"e","method":"session/list"}', 'e', -32700],
    ['words', 'hello', null, -32700],
    ['a batch', '[{"jsonrpc":"2.0","id":"e","method":"session/list"}]', null, -32600],
  ])('%s is refused, and the agent has none of it', async (_, text, id, code) => {
    const before = rig.received().length;
    const refused = rig.editor.next(({ error }) => error !== undefined);
    rig.editor.raw(`${text}\n`);
    expect(await refused).toMatchObject({ id, error: { code } });
    await rig.say('');
    expect(rig.received()).toHaveLength(before);
  });

  test('an answer to nothing does not reach the agent', async () => {
    const before = rig.received().length;
    rig.editor.say({ id: 'nobody', result: { outcome: { outcome: 'selected', optionId: 'y' } } });
    await rig.say('');
    expect(rig.received()).toHaveLength(before);
  });
});

test('an agent that dies in the middle of a line leaves a prompt that is answered', async () => {
  const { config, data } = await aGateway(RULES);
  const { end: editor, exited } = startSpeaking([
    '--config',
    config,
    '--data',
    data,
    'acp',
    '--',
    process.execPath,
    PUPPET,
  ]);
  onTestFinished(async () => {
    editor.close();
    await exited;
  });
  await editor.ask('initialize', { protocolVersion: 1 });
  await editor.ask('session/new', { cwd: data, mcpServers: [] });
  const done = editor.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: 'go' }] });
  await editor.received(({ method }) => method === '_test/heard');
  const half = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","upd';
  editor.notify('_test/die', { bytes: Buffer.from(half).toString('base64') });
  expect((await done).error).toMatchObject({ code: -32603 });
  expect(editor.lines.some((each) => each.includes('"upd') && !each.includes('_test'))).toBe(false);
}, 60_000);
