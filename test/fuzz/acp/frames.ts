/**
 * Frames of a valid conversation between an editor and an agent, and ways to spoil them: in their kind, id, method, members,
 * nesting, encoding and order. A spoiled frame is bytes, because many of the ways are below JSON.
 */
import fc from 'fast-check';

export const CWD = '/repo/project';
const OPTIONS = [
  { optionId: 'y', name: 'Allow', kind: 'allow_once' },
  { optionId: 'n', name: 'Reject', kind: 'reject_once' },
];

type Members = Record<string, unknown>;
export interface Draft {
  readonly from: 'agent' | 'editor';
  readonly frame: Members;
}

/** Numbers make frames differ from each other, so that a leave for one is not a leave for another. */
export function draft(kind: number, n: number): Draft {
  const [path, other] = [`${CWD}/allowed/f${n}`, `${CWD}/f${n}`];
  const reported = (update: Members) => ({ method: 'session/update', params: { sessionId: 's1', update } });
  const asks = (method: string, params: Members) => ({ id: `a${n}`, method, params: { sessionId: 's1', ...params } });
  const question = (toolCall: Members) => asks('session/request_permission', { toolCall, options: OPTIONS });
  const agent: readonly Members[] = [
    reported({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `word ${n}` } }),
    reported({
      sessionUpdate: 'tool_call',
      toolCallId: `t${n % 5}`,
      kind: 'read',
      title: 'Look',
      rawInput: { path: other },
    }),
    reported({
      sessionUpdate: 'tool_call_update',
      toolCallId: `t${n % 5}`,
      rawInput: { command: `rm ${n}` },
      kind: 'read',
    }),
    question({ toolCallId: `t${n % 5}`, kind: 'read', title: 'Look', rawInput: { path: other } }),
    question({ toolCallId: `w${n}`, kind: 'edit', rawInput: { path: other, content: `x${n}` } }),
    question({ toolCallId: `c${n}`, kind: 'execute', rawInput: { command: `make ${n}` } }),
    asks('fs/read_text_file', { path: other }),
    asks('fs/write_text_file', { path, content: `x${n}` }),
    asks('fs/write_text_file', { path: `${CWD}/f${n - 1}`, content: `x${n - 1}` }),
    asks('fs/write_text_file', { path: `/etc/f${n}`, content: `x${n}` }),
    asks('terminal/create', { command: 'ls', args: [`f${n}`] }),
    asks('terminal/create', { command: 'make', args: [String(n - 1)] }),
    asks('terminal/create', { command: 'rm', args: [String(n)], env: [{ name: 'PATH', value: '/tmp' }] }),
    asks('terminal/output', { terminalId: `x${n % 9}` }),
    asks('terminal/wait_for_exit', { terminalId: `x${n % 9}` }),
    asks('terminal/kill', { terminalId: `x${n % 9}` }),
    asks('terminal/release', { terminalId: `x${n % 9}` }),
    asks('elicitation/create', {
      mode: 'form',
      message: 'which?',
      requestedSchema: { type: 'object', properties: {} },
    }),
    asks('mcp/message', { serverId: 's', requestId: n, method: 'tools/call', params: { name: 'pay', n } }),
    asks('_vendor/do', { n }),
    asks('host/call', { name: 'exec', args: { n } }),
    { id: n, result: { stopReason: 'end_turn' } },
    { method: '_vendor/told', params: { n } },
    { method: '$/cancel_request', params: { requestId: `a${n - 3}` } },
  ];
  const editor: readonly Members[] = [
    { id: n, method: 'session/list', params: {} },
    { id: n, method: '_vendor/ask', params: { n } },
    { id: n, method: 'session/set_mode', params: { sessionId: 's1', modeId: 'yolo' } },
    { id: n, method: 'session/set_config_option', params: { sessionId: 's1', configId: 'model', value: 'm' } },
    { id: `a${n - 2}`, result: { outcome: { outcome: 'selected', optionId: 'y' } } },
    { method: '_vendor/said', params: { n } },
  ];
  const at = kind % (agent.length + editor.length);
  const frame = agent[at] ?? (editor[at - agent.length] as Members);
  return { from: at < agent.length ? 'agent' : 'editor', frame: { jsonrpc: '2.0', ...frame } };
}

/** Ways to spoil a frame while it is an object. */
const MEMBERS: readonly ((frame: Members, n: number) => Members)[] = [
  ({ id: _, ...rest }) => rest,
  (frame, n) => ({ ...frame, id: n }),
  (frame) => ({ ...frame, id: null }),
  (frame, n) => ({ ...frame, id: n + 0.5 }),
  (frame) => ({ ...frame, id: { a: 1 } }),
  (frame) => ({ ...frame, id: ['a1'] }),
  (frame, n) => ({ ...frame, id: `gw:${n % 20}` }),
  (frame, n) => ({ ...frame, id: `a${n - 1}` }),
  (frame) => ({ ...frame, method: String(frame.method).toUpperCase() }),
  (frame) => ({ ...frame, method: `${String(frame.method)} ` }),
  (frame) => ({ ...frame, method: `/${String(frame.method)}` }),
  (frame) => ({ ...frame, method: String(frame.method).replace('/', '\u2215') }),
  (frame) => ({ ...frame, method: 'session/update' }),
  (frame) => ({ ...frame, method: 'terminal/create' }),
  (frame) => ({ ...frame, method: ['fs/write_text_file'] }),
  (frame) => ({ ...frame, method: 'proxy/successor', params: { method: frame.method, params: frame.params } }),
  (frame) => ({ ...frame, Method: 'fs/write_text_file' }),
  (frame) => ({ ...frame, result: {} }),
  (frame) => ({ ...frame, params: [frame.params] }),
  (frame) => ({ ...frame, params: null }),
  (frame) => ({ ...frame, params: JSON.stringify(frame.params) }),
  ({ params, ...rest }) => ({ ...rest, Params: params }),
  ...(
    [
      ({ sessionId: _, ...rest }) => rest,
      (params) => ({ ...params, sessionId: '' }),
      (params) => ({ ...params, sessionId: 1 }),
      (params) => ({ ...params, sessionId: ['s1'] }),
      (params) => ({ ...params, sessionId: 's2' }),
      (params) => ({ ...params, sessionId: 's1\u200b' }),
      (params) => ({ ...params, sessionId: '\uff531' }),
      ({ sessionId, ...rest }) => ({ ...rest, SessionId: sessionId }),
      (params) => ({ ...params, Path: '/etc/passwd' }),
      (params) => ({ ...params, path: `${String(params.path)}/../../../etc/x` }),
      (params) => ({ ...params, path: 'relative' }),
      (params) => ({ ...params, path: [params.path] }),
      (params) => ({ ...params, path: `${CWD}/a\0b` }),
      (params) => ({ ...params, content: { toString: 1 } }),
      (params) => ({ ...params, command: ['ls'] }),
      (params) => ({ ...params, args: [['-r']] }),
      (params) => ({ ...params, args: 'x' }),
      (params) => ({ ...params, cwd: '/etc' }),
      (params) => ({ ...params, cwd: 7 }),
      (params) => ({ ...params, env: [{ name: 'LD_PRELOAD', value: '/tmp/x' }] }),
      (params) => ({ ...params, env: [{ name: 'A', value: 1 }] }),
      (params) => ({ ...params, line: 1.5 }),
      (params) => ({ ...params, terminalId: ['x1'] }),
      (params) => ({ ...params, __proto__x: 1, constructor: 1 }),
    ] as readonly ((params: Members) => Members)[]
  ).map((spoil) => (frame: Members) => ({ ...frame, params: spoil({ ...(frame.params as Members | undefined) }) })),
];

/** Ways to spoil it once it is a line. */
const LINES: readonly ((line: string) => string | Buffer)[] = [
  (line) => `\ufeff${line}`,
  (line) => `\r${line}`,
  (line) => line.replace(',', ',\r'),
  (line) => `{"a":\r${line}\r}`,
  (line) => line.replace('{', '{"method":"session/update",'),
  (line) => line.replace(/}$/, ',"method":"fs/write_text_file"}'),
  (line) => line.replace('"params":{', '"params":{"path":"/etc/passwd","sessionId":"s1",'),
  (line) => line.replace('"params":{', '"params":{"p\\u0061th":"/etc/passwd",'),
  (line) => `${line}${line}`,
  (line) => `${line} ${line}`,
  (line) => `[${line}]`,
  (line) => `[${line},${line}]`,
  (line) => `[[${line}]]`,
  (line) => `\0${line}`,
  (line) => line.slice(0, -1),
  (line) => `x${line}`,
  (line) => `${line}x`,
  (line) => line.replace('"params":{', `"params":{"deep":${'['.repeat(200)}${']'.repeat(200)},`),
  (line) => line.replace('"params":{', `"params":{"t":"\u2028${line.replaceAll('"', '\\"')}\u2028",`),
  (line) => line.replace('"params":{', '"params":{"t":"\\ud800",'),
  (line) => line.replace('"params":{', '"params":{"t":1e999,'),
  (line) => Buffer.concat([Buffer.from(line.slice(0, -2)), Buffer.from([0xff]), Buffer.from(line.slice(-2))]),
  (line) => Buffer.concat([Buffer.from(line.slice(0, 20)), Buffer.from([0xc0, 0xaf]), Buffer.from(line.slice(20))]),
  (line) => `${line}\n${line}`,
];

export interface Spoiled {
  readonly from: Draft['from'];
  readonly bytes: Buffer;
}

/** One frame: which one, and how it is spoiled, if it is. */
const plan = fc.record({
  kind: fc.nat({ max: 1_000 }),
  members: fc.array(fc.nat({ max: MEMBERS.length - 1 }), { maxLength: 2 }),
  line: fc.option(fc.nat({ max: LINES.length - 1 }), { freq: 3 }),
  back: fc.option(fc.nat({ max: 40 }), { freq: 8 }),
  other: fc.boolean(),
});

export function spoiledFrames(count: number, seed: number): Spoiled[] {
  const plans = fc.sample(plan, { numRuns: count, seed });
  return plans.map(({ kind, members, line, back, other }, at) => {
    // An earlier number: a frame that comes again, or out of its order.
    const { from, frame } = draft(kind, Math.max(10, at + 10 - (back ?? 0)));
    const spoiled = members.reduce((each, way) => (MEMBERS[way] as (typeof MEMBERS)[0])(each, at), frame);
    const text = JSON.stringify(spoiled);
    const bytes = Buffer.from(line === null ? text : (LINES[line] as (typeof LINES)[0])(text));
    // Now and then the other side says it.
    const side = other && kind % 7 === 0 ? (from === 'agent' ? 'editor' : 'agent') : from;
    return { from: side, bytes: Buffer.concat([bytes, Buffer.from('\n')]) };
  });
}
