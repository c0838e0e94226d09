/**
 * Frames for the fuzzer: valid ones of both sides, and what becomes of them when kind, id, method, members, nesting, encoding
 * or order are not what they should be. Each is the bytes of one line or one body.
 */
import fc from 'fast-check';

type Loose = Record<string, unknown>;

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const ENVELOPE = { [VERSION]: '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };

const nonce = fc.string({ minLength: 8, maxLength: 12, unit: fc.constantFrom(...'0123456789abcdef') });
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    'true',
    1,
    0,
    -0,
    '',
    [],
    {},
    [true],
    1e21,
    9007199254740991,
    '\u2028x',
    '\u0000',
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

const call = fc
  .record({
    name: fc.constantFrom('echo', 'echo', 'echo', 'forced', 'danger', 'constructor', 'toString', 'nobody', 'ECHO'),
    n: nonce,
    more: fc.option(
      fc.dictionary(fc.constantFrom('force', 'Force', 'path', 'Path', '__proto__', 'x'), odd, { maxKeys: 2 }),
      {
        nil: {},
      },
    ),
  })
  .map(({ name, n, more }) => ({ method: 'tools/call', params: { name, arguments: { n, ...more } } }));

const other = fc.constantFrom<Loose>(
  { method: 'ping' },
  { method: 'tools/list', params: {} },
  { method: 'resources/read', params: { uri: 'x:1' } },
  { method: 'prompts/get', params: { name: 'p' } },
  { method: 'tasks/get', params: { taskId: 't' } },
  {
    method: 'completion/complete',
    params: { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
  },
  {
    method: 'initialize',
    params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'f', version: '1' } },
  },
  { method: 'server/discover', params: {} },
  { method: 'acme/allowed', params: { a: 1 } },
  { method: 'acme/other', params: { a: 1 } },
  { method: 'sampling/createMessage', params: {} },
  { method: 'roots/list' },
  { method: 'notifications/initialized' },
  { method: 'notifications/cancelled', params: { requestId: 1 } },
  { method: 'notifications/roots/list_changed' },
  { method: 'notifications/acme', params: { a: 1 } },
  { method: 'notifications/tools/list_changed' },
  { method: 'notifications/message', params: { level: 'info', data: 1 } },
);

const METHODS = [
  'tools/call',
  'tools/Call',
  'tools/call ',
  ' tools/call',
  'TOOLS/CALL',
  'tools//call',
  'tools/call\u0000',
  '',
  '__proto__',
];

type Change = (frame: Loose) => Loose;
const withParams =
  (change: (params: Loose) => unknown): Change =>
  (frame) => ({
    ...frame,
    params: change((frame.params ?? {}) as Loose),
  });

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.constant<Change>(({ id: _, ...rest }) => rest),
  odd.map(
    (id): Change =>
      (frame) => ({ ...frame, id }),
  ),
  fc.constantFrom(...METHODS).map(
    (method): Change =>
      (frame) => ({ ...frame, method }),
  ),
  odd.map(
    (method): Change =>
      (frame) => ({ ...frame, method }),
  ),
  odd.map(
    (params): Change =>
      (frame) => ({ ...frame, params }),
  ),
  fc.constantFrom('1.0', 2, null).map(
    (jsonrpc): Change =>
      (frame) => ({ ...frame, jsonrpc }),
  ),
  fc.constant<Change>((frame) => ({ ...frame, result: {}, error: { code: 1, message: 'm' } })),
  fc.constant<Change>(({ method: _, params: _p, ...rest }) => ({ ...rest, result: { content: [] } })),
  fc.constant<Change>(({ method, ...rest }) => ({ ...rest, Method: method })),
  fc
    .constantFrom('Name', 'NAME', 'Arguments', 'URI', 'na\u017fme')
    .map((name): Change => withParams((p) => ({ ...p, [name]: 'danger' }))),
  odd.map((name): Change => withParams((p) => ({ ...p, name }))),
  odd.map((args): Change => withParams((p) => ({ ...p, arguments: args }))),
  fc.constant<Change>(withParams((p) => ({ ...p, _meta: ENVELOPE }))),
  fc.constant<Change>(
    withParams((p) => ({
      ...p,
      requestState: 'made-up',
      inputResponses: { a: { action: 'accept' } },
      _meta: ENVELOPE,
    })),
  ),
  fc.constant<Change>(withParams((p) => ({ ...p, task: { ttl: 1000 }, _meta: { progressToken: 1 } }))),
  fc.integer({ min: 2, max: 400 }).map(
    (depth): Change =>
      withParams((p) => {
        let nested: unknown = 1;
        for (let at = 0; at < depth; at += 1) nested = { a: nested };
        return { ...p, arguments: nested };
      }),
  ),
);

type Text = (text: string) => Buffer;
const plain: Text = (text) => Buffer.from(text);
const encoding: fc.Arbitrary<Text> = fc.oneof(
  { weight: 12, arbitrary: fc.constant(plain) },
  {
    weight: 5,
    arbitrary: fc.constantFrom<Text>(
      (text) => Buffer.from(`\ufeff${text}`),
      (text) => Buffer.from(`${text}\r`),
      (text) => Buffer.from(`${text}${text}`),
      (text) => Buffer.from(`${text} {"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`),
      (text) => Buffer.from(`\r${text}`),
      (text) => Buffer.from(text.slice(0, Math.max(1, text.length - 3))),
      (text) => Buffer.from(text.replace(/^\{/, '{"method":"ping",')),
      (text) => Buffer.from(text.replace(/\}$/, ',"method":"tools/call"}')),
      (text) => Buffer.from(text.replace(/\}$/, ',"id":77}')),
      (text) => Buffer.from(text.replace('"name":', '"name":"danger","name":')),
      (text) => Buffer.from(text.replace('tools/call', '\\u0074ools\\/call')),
      (text) =>
        Buffer.concat([Buffer.from(text.slice(0, 20)), Buffer.from([0xc0, 0xaf, 0xff]), Buffer.from(text.slice(20))]),
      (text) => Buffer.concat([Buffer.from(text), Buffer.from([0])]),
      (text) => Buffer.from(`[${text}]`),
      (text) => Buffer.from(`[[${text}]]`),
      (text) => Buffer.from(`[${text},${text}]`),
      (text) => Buffer.from(`[1,${text},{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}]`),
      (text) => Buffer.from(text.replaceAll('a', '\ud800')),
      (text) => Buffer.from(text, 'utf16le'),
    ),
  },
);

const changes = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Change[]>([]) },
  { weight: 5, arbitrary: fc.array(change, { maxLength: 3 }) },
);

/** What a client sends: no newline in it, so that it is one line. */
export const clientFrame: fc.Arbitrary<Buffer> = fc
  .record({
    frame: fc.oneof({ weight: 3, arbitrary: call }, { weight: 2, arbitrary: other }),
    changes,
    encoding,
    id: fc.nat(1_000_000),
  })
  .map(({ frame, changes: all, encoding: encode, id }) => {
    const whole = all.reduce<Loose>((made, each) => each(made), { jsonrpc: '2.0', id: `f${id}`, ...frame });
    const bytes = encode(JSON.stringify(whole));
    return Buffer.from(bytes.filter((byte) => byte !== 0x0a));
  });

const said = fc.constantFrom<Loose>(
  { id: 's1', method: 'tools/call', params: { name: 'echo', arguments: {} } },
  { method: 'tools/call', params: { name: 'echo', arguments: {} } },
  { id: 's2', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } },
  {
    id: 's3',
    method: 'elicitation/create',
    params: { message: 'm', requestedSchema: { type: 'object', properties: {} } },
  },
  { id: 's4', method: 'roots/list' },
  { id: 's5', method: 'ping' },
  { id: 's6', method: 'acme/odd', params: {} },
  { id: 's7', method: 'initialize', params: {} },
  { id: 's8', method: 'tasks/cancel', params: { taskId: 't' } },
  { id: '__proto__', method: 'elicitation/create', params: { message: 'm' } },
  { method: 'notifications/progress', params: { progressToken: 't1', progress: 1 } },
  { method: 'notifications/initialized' },
  { method: 'notifications/cancelled', params: { requestId: 't1' } },
  { method: 'notifications/message', params: { level: 'info', data: {} } },
  { method: 'notifications/acme' },
  { method: 'acme/odd' },
  { method: 'constructor' },
  { id: 'nobody', result: { content: [{ type: 'text', text: 'poison' }] } },
  { id: null, result: { content: [{ type: 'text', text: 'poison' }] } },
  { id: 1, result: { content: [{ type: 'text', text: 'poison' }] } },
);

/** What a server says before its answer: the text of one event. */
export const serverFrame: fc.Arbitrary<string> = fc
  .record({ frame: said, changes, encoding })
  .map(({ frame, changes: all, encoding: encode }) => {
    const whole = all.reduce<Loose>((made, each) => each(made), { jsonrpc: '2.0', ...frame });
    return encode(JSON.stringify(whole))
      .toString('utf8')
      .replace(/[\r\n]/g, ' ');
  });
