/**
 * An agent and an editor that break the protocol, with the built relay between them. The editor takes down every act that
 * reaches it. Each case: the sender hears the error, nothing reaches the other side, the log has the reason, the relay lives.
 */
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Json, JsonObject } from '../../src/model/schema.ts';
import type { Wire } from '../support/line-end.ts';
import { aHouse, startSpeaking } from '../support/stdio-process.ts';
import { type Contact, checkActs, forgetLogs, newestPosition, readEvents } from './oracle.ts';

const PUPPET = fileURLToPath(new URL('./acp-puppet.mjs', import.meta.url));
const RULES = `rules:
  - { id: outside, when: { kind: fs.write, target: "/etc/*" }, then: block, say: not outside }
  - { id: fine, when: { kind: fs.write, target: "*/allowed/*" }, then: allow, say: fine }
  - { id: listing, when: { kind: terminal, target: "ls *" }, then: allow, say: fine }
`;
const OPTIONS = [
  { optionId: 'y', name: 'Allow', kind: 'allow_once' },
  { optionId: 'n', name: 'Reject', kind: 'reject_once' },
];
const isAct = (method: unknown) => /^(fs|terminal)\//i.test(String(method).trim());

async function openRig() {
  const { data, config } = await aHouse(RULES);
  const cwd = join(data, '..', 'project');
  await mkdir(join(cwd, 'allowed'), { recursive: true });
  const words = ['--config', config, '--data', data, 'acp', '--', process.execPath, PUPPET];
  const { end: editor, child, exited, stderr } = startSpeaking(words);
  const contacts: Contact[] = [];
  let answer: 'allow_once' | 'reject_once' = 'allow_once';
  const record = (tool: string, of: (params: JsonObject) => JsonObject, result: unknown) => (params: JsonObject) => {
    contacts.push({ tool, arguments: of(params), after: newestPosition(data) });
    return result;
  };
  const reads = ({ path, line = null, limit = null }: JsonObject) => ({ path, line, limit }) as JsonObject;
  editor.on('fs/read_text_file', record('fs.read', reads, { content: 'x' }));
  editor.on(
    'fs/write_text_file',
    record('fs.write', ({ path, content }) => ({ path, content }) as JsonObject, {}),
  );
  const runs = ({ command, args = [], cwd: where = cwd, env = [] }: JsonObject) =>
    ({ command, args, cwd: where, env }) as JsonObject;
  editor.on('terminal/create', record('terminal', runs, { terminalId: 't1' }));
  for (const method of ['terminal/output', 'terminal/wait_for_exit', 'terminal/kill', 'terminal/release']) {
    editor.on(method, () => ({ output: '', truncated: false, exitCode: 0 }));
  }
  const questions: Wire[] = [];
  editor.on('session/request_permission', (_, frame) => {
    questions.push(frame);
    const kind = answer;
    return { outcome: { outcome: 'selected', optionId: optionOf(frame, kind) } };
  });
  await editor.ask('initialize', { protocolVersion: 1 });
  await editor.ask('session/new', { cwd, mcpServers: [] });
  await editor.ask('session/new', { cwd: join(cwd, 'two'), mcpServers: [] });
  const prompted = editor.next(
    ({ method, params }) => method === '_test/heard' && String(params?.line).includes('prompt'),
  );
  void editor.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: 'go' }] });
  await prompted;
  let said = 0;

  /** The agent writes these bytes; resolves when whatever came of them, short of people, has reached the editor. */
  async function say(bytes: string | Uint8Array): Promise<void> {
    const n = said++;
    const done = editor.next(({ method, params }) => method === '_test/said' && params?.n === n);
    editor.notify('_test/say', { n, bytes: Buffer.from(bytes).toString('base64') });
    await done;
  }

  const heard = () =>
    editor.frames.flatMap(({ method, params }) =>
      method === '_test/heard' ? [JSON.parse(String(params?.line)) as Wire] : [],
    );
  async function reply(id: Json, from: number): Promise<Wire> {
    const like = (frame: Wire) => frame.method === undefined && frame.id === id;
    const before = heard().slice(from).find(like);
    if (before) return before;
    const found = await editor.next(
      ({ method, params }) => method === '_test/heard' && like(JSON.parse(String(params?.line))),
    );
    return JSON.parse(String(found.params?.line)) as Wire;
  }

  return {
    data,
    cwd,
    editor,
    contacts,
    questions,
    say,
    stderr,
    heard,
    answers(kind: typeof answer) {
      answer = kind;
    },
    alive: () => child.exitCode === null,
    /** The agent asks, and has this answer. */
    async ask(method: string, params: object, id: Json = `r${said}`): Promise<Wire> {
      const from = heard().length;
      await say(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      return await reply(id, from);
    },
    acts: () => editor.frames.filter(({ method }) => isAct(method)).map(({ method }) => method),
    reasons: async () =>
      (await readEvents(data, ['vendor.acp.frame_refused'])).map(({ payload }) => String(payload.reason)),
    async close() {
      editor.close();
      await exited;
      forgetLogs();
    },
  };
}
type Rig = Awaited<ReturnType<typeof openRig>>;

function optionOf(frame: Wire, kind: string): string {
  const options = frame.params?.options as unknown as { kind: string; optionId: string }[];
  return options.find((option) => option.kind === kind)?.optionId ?? '';
}

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
const line = (frame: object) => `${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`;

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
    // Stray words are for the process's own log; a frame has a sender who is told.
    if (code === 0) await expect.poll(rig.stderr).toContain('not the protocol');
    else {
      await expect.poll(() => rig.heard().filter(({ error }) => error)).toMatchObject([{ id, error: { code } }]);
      await expect.poll(rig.reasons).toHaveLength(1);
    }
    expect((await rig.ask('fs/write_text_file', write())).result).toEqual({});
  });

  test('an oversized line is skipped, and what comes after it is read', async () => {
    await rig.say(`{"jsonrpc":"2.0","method":"_x","params":"${'x'.repeat(70 * 1024 * 1024)}"}\n`);
    await expect.poll(() => rig.heard().filter(({ error }) => error)).toMatchObject([{ error: { code: -32700 } }]);
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
    await expect.poll(rig.reasons).not.toEqual([]);
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
    await expect.poll(() => rig.heard().filter(({ error }) => error).length).toBe(methods.length);
    expect(rig.heard().find(({ error }) => error)).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: {
        code: -32600,
        message: 'fs/write_text_file is a request and needs an id; as a notification it is not passed on',
      },
    });
    expect(rig.acts()).toEqual([]);
    expect(rig.questions).toEqual([]);
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
    await expect.poll(() => rig.heard().find(({ id }) => id === 'gw:1')?.error).toMatchObject({ code: -32600 });
    rig.editor.on('elicitation/create', () => undefined);
    const form = { sessionId: 's1', mode: 'form', message: '?', requestedSchema: {} };
    await rig.say(line({ id: 'twice', method: 'elicitation/create', params: form }));
    await rig.say(line({ id: 'twice', method: 'fs/write_text_file', params: write() }));
    await expect.poll(() => rig.heard().find(({ id }) => id === null)?.error).toMatchObject({ code: -32600 });
    expect(rig.acts()).toEqual([]);
  });

  test('answers to requests nobody made', async () => {
    const before = rig.editor.frames.length;
    await rig.say(line({ id: 999, result: {} }));
    await rig.say(line({ id: 'gw:1', result: { outcome: { outcome: 'selected', optionId: 'approve' } } }));
    expect(rig.editor.frames.slice(before).filter(({ method }) => method === undefined)).toEqual([]);
  });
});

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
    expect(rig.questions).toHaveLength(1);
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

  test('a call that changes while a person is asked about it covers nothing', async () => {
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
    await rig.editor.heard(({ method }) => method === 'session/request_permission');
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
    const answers = () => rig.heard().filter(({ id }) => id === 'one' || id === 'two');
    await expect.poll(() => answers().length).toBe(2);
    expect(ids).toHaveLength(2);
    const chosen = answers().map(({ result }) => JSON.stringify(result));
    expect(chosen.filter((each) => each.includes('"y"'))).toHaveLength(1);
  });

  test('a link is no way round a rule about the file behind it', async () => {
    await symlink('/etc', join(rig.cwd, 'allowed', 'link'));
    const answer = await rig.ask('fs/write_text_file', write({ path: `${rig.cwd}/allowed/link/x` }));
    expect(answer.error).toMatchObject({ code: 1403, message: 'not outside' });
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
    expect(rig.questions).toHaveLength(7);
    expect(rig.editor.frames.some(({ method }) => method === '_vendor/do' || method === 'host/call')).toBe(false);
  });

  test('of the editor: the same, before the agent has it', async () => {
    rig.answers('reject_once');
    const answer = await rig.editor.ask('_vendor/do', { sessionId: 's1', n: 1 });
    expect(answer.error).toMatchObject({ code: 1403 });
    expect(rig.heard().some(({ method }) => method === '_vendor/do')).toBe(false);
  });

  test('known ones pass, and so do notifications that vendors may name', async () => {
    rig.editor.on('host/capabilities', () => ({}));
    expect((await rig.ask('host/capabilities', { sessionId: 's1' })).result).toEqual({});
    await rig.say(line({ method: '_vendor/told', params: {} }));
    await rig.editor.heard(({ method }) => method === '_vendor/told');
    await rig.say(line({ method: 'vendor/told', params: {} }));
    await expect.poll(() => rig.heard().find(({ error }) => error)?.error).toMatchObject({ code: -32600 });
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
    const before = rig.heard().length;
    const refused = rig.editor.next(({ error }) => error !== undefined);
    rig.editor.raw(`${text}\n`);
    expect(await refused).toMatchObject({ id, error: { code } });
    await rig.say('');
    expect(rig.heard()).toHaveLength(before);
  });

  test('an answer to nothing does not reach the agent', async () => {
    const before = rig.heard().length;
    rig.editor.say({ id: 'nobody', result: { outcome: { outcome: 'selected', optionId: 'y' } } });
    await rig.say('');
    expect(rig.heard()).toHaveLength(before);
  });
});

test('an agent that dies in the middle of a line leaves a prompt that is answered', async () => {
  const { config, data } = await aHouse(RULES);
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
  await editor.heard(({ method }) => method === '_test/heard');
  const half = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","upd';
  editor.notify('_test/die', { bytes: Buffer.from(half).toString('base64') });
  expect((await done).error).toMatchObject({ code: -32603 });
  expect(editor.lines.some((each) => each.includes('"upd') && !each.includes('_test'))).toBe(false);
}, 60_000);
