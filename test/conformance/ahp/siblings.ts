/**
 * Cases nobody recorded, next to those that were: every event type over every method, every member of an envelope gone
 * or of another kind, ids and versions of every form. What the reference implementation would answer follows from its
 * order of checks, which is written down here once; where we differ on purpose, the same table as for recordings says so.
 */
import type { Check } from '../run.ts';
import { equal, expectAnswer } from './compare.ts';
import { details } from './details.ts';
import {
  ALL,
  allow,
  asked,
  BATCHED,
  CONTRACTS,
  error,
  event,
  type Frame,
  REPORTED,
  request,
  type Sibling,
  TYPED,
} from './frames.ts';
import { KEY, type Peer } from './gateway.ts';

/** An event that decodes, in the order the reference looks at it. */
function saidTo(type: string, depth = 0, broken = false): Frame {
  if (depth > 10) return error(-32602);
  if (broken && CONTRACTS[type]) return error(-32602);
  if (REPORTED.includes(type) || CONTRACTS[type]) return error(-32602);
  if (TYPED[type] && (broken || type !== 'idle')) return error(-32603);
  return allow;
}

function* requests(): Generator<Sibling> {
  for (const type of ALL) {
    for (const depth of [0, 10, 11, 4294967295]) {
      yield { name: `${type}, ${depth} deep`, sent: asked(event(type, { depth })), said: saidTo(type, depth) };
    }
    for (const payload of [null, 'x', 1, [], {}]) {
      if (TYPED[type] || CONTRACTS[type]) {
        yield {
          name: `${type} with ${JSON.stringify(payload)}`,
          sent: asked(event(type, { payload })),
          said: saidTo(type, 0, true),
        };
      }
    }
    yield { name: `${type} told`, sent: { jsonrpc: '2.0', method: 'ahp/event', params: event(type) }, said: undefined };
    const alone = BATCHED.includes(type) ? { result: { decisions: [{ decision: 'allow' }] } } : error(-32602);
    yield { name: `${type} in a batch`, sent: request('ahp/batch', { events: [event(type)] }), said: alone };
    const deep = { events: [event('pre_action'), event(type, { depth: 11 })] };
    yield { name: `${type} too deep in a batch`, sent: request('ahp/batch', deep), said: error(-32602) };
    if (CONTRACTS[type]) {
      const bad = { events: [event(type, { payload: {} }), event('pre_action')] };
      yield { name: `a broken ${type} in a batch`, sent: request('ahp/batch', bad), said: error(-32602) };
    }
    const odd = type.replace(/(^|_)(.)/g, (_, _gap, letter) => letter.toUpperCase());
    for (const word of [odd, type.toUpperCase(), `${type} `]) {
      yield { name: `no event ${word}`, sent: asked({ ...event(type), event_type: word }), said: error(-32602) };
    }
  }
  yield* members('ahp/event', event('pre_action'), { payload: [] });
  yield* members(
    'ahp/query',
    { session_id: 's', agent_id: 'a', query_type: 'should_i_proceed', payload: { question: '?' } },
    { payload: [] },
  );
  for (const payload of [null, 'go on?', 0, false, [], {}]) {
    const params = { session_id: 's', agent_id: 'a', query_type: '', payload };
    yield {
      name: `a query about ${JSON.stringify(payload)}`,
      sent: request('ahp/query', params),
      said: error(-32603),
    };
  }
}

/** Each member gone, and of kinds it may not have. */
function* members(method: string, whole: Frame, unfit: Frame): Generator<Sibling> {
  for (const name of Object.keys(whole)) {
    const { [name]: _, ...without } = whole;
    yield { name: `${method} without ${name}`, sent: request(method, without), said: error(-32602) };
    for (const value of unfit[name] ?? [null, true, -1, 0.5, ['x'], { x: 1 }]) {
      const sent = request(method, { ...whole, [name]: value });
      yield { name: `${method} with ${JSON.stringify(value)} for ${name}`, sent, said: error(-32602) };
    }
  }
  for (const params of [null, 'x', 1, true, [], [whole]]) {
    const name = `${method} of ${JSON.stringify(params).slice(0, 20)}`;
    yield { name, sent: request(method, params), said: error(-32602) };
  }
}

function* handshakes(): Generator<Sibling> {
  const hello = {
    protocol_version: '2.4',
    agent_info: { framework: 'f', version: '1', capabilities: ['pre_action', 'whatever'] },
    session_id: 's',
    agent_id: 'a',
  };
  const welcome = {
    result: {
      protocol_version: '2.4',
      harness_info: { name: 'n', version: 'v', capabilities: ['pre_action', 'query', 'batch'] },
      config: { timeout_ms: 10000, batch_size: 100, max_depth: 10 },
    },
  };
  for (const version of ['2', '2.0', '2.1', '2.2', '2.3', '2.4', '2.5', '2.10', '2.', '2.x', '2.4.1', '2..']) {
    yield { name: `version ${version}`, sent: greet({ ...hello, protocol_version: version }), said: welcome };
  }
  for (const version of ['', '1', '1.9', '3', '3.0', '20', '02.4', 'v2.4', ' 2.4', '2-beta', '-2.4', '.2', 'two']) {
    const sent = greet({ ...hello, protocol_version: version });
    yield { name: `version "${version}"`, sent, said: error(-32000) };
  }
  for (const odd of [2, 2.4, true, ['2.4'], { major: 2 }]) {
    const sent = greet({ ...hello, protocol_version: odd });
    yield { name: `version ${JSON.stringify(odd)}`, sent, said: error(-32602) };
  }
  for (const info of ['f', 1, [], { ...hello.agent_info, framework: 1 }, { ...hello.agent_info, capabilities: [1] }]) {
    const sent = greet({ ...hello, agent_info: info });
    yield { name: `agent ${JSON.stringify(info)}`, sent, said: error(-32602) };
  }
  for (const name of Object.keys(hello)) {
    const { [name as keyof typeof hello]: _, ...without } = hello;
    yield { name: `a handshake without ${name}`, sent: greet(without), said: error(-32602) };
    yield { name: `a handshake with null for ${name}`, sent: greet({ ...hello, [name]: null }), said: error(-32602) };
  }
  yield { name: 'hands shaken again', sent: greet({ ...hello, extra: 1 }), said: welcome };
}
const greet = (params: Frame) => request('ahp/handshake', params);

function* batches(): Generator<Sibling> {
  const act = (tool: string, args: Frame = {}) =>
    event('pre_action', { payload: { tool_name: tool, arguments: args } });
  const batch = (events: Frame) => request('ahp/batch', { events });
  const decisions = (...words: string[]) => ({ result: { decisions: words.map((decision) => ({ decision })) } });
  for (const size of [0, 1, 100]) {
    const events = Array.from({ length: size }, (_, index) => event('heartbeat', { payload: { index } }));
    const said = decisions(...events.map(() => 'allow'));
    yield { name: `a batch of ${size}`, sent: batch(events), said };
  }
  for (const size of [101, 250]) {
    const events = Array.from({ length: size }, () => act('bash'));
    yield { name: `a batch of ${size}`, sent: batch(events), said: error(-32602) };
  }
  yield {
    name: 'answers in the order of the questions',
    sent: batch([act('rm'), act('bash'), act('rm', { a: 1 }), event('post_action'), act('bash', { fail: true })]),
    said: decisions('block', 'allow', 'block', 'allow', 'block'),
  };
  for (const odd of [null, 'x', 1, {}, [1], [null], [[]], [{}], [event('pre_action'), {}]]) {
    yield { name: `a batch of ${JSON.stringify(odd).slice(0, 30)}`, sent: batch(odd), said: error(-32602) };
  }
  for (const odd of [null, 'x', [], [[]], {}]) {
    const sent = request('ahp/batch', odd);
    yield { name: `ahp/batch of ${JSON.stringify(odd)}`, sent, said: error(-32602) };
  }
}

function* envelopes(): Generator<Sibling> {
  const good = event('pre_action');
  for (const id of ['', ' ', '0', 'käse 🧀', 'x'.repeat(2000), '{"a":1}']) {
    yield { name: `id ${JSON.stringify(id).slice(0, 20)}`, sent: request('ahp/event', good, id), said: allow };
  }
  for (const id of [0, 1, -1, 1e15, null, true, false, 1.5, [], ['x'], {}, { id: 'x' }]) {
    const sent = request('ahp/event', good, id);
    yield { name: `id ${JSON.stringify(id)}`, sent, said: undefined };
  }
  for (const method of ['', 'ahp', 'ahp/', 'AHP/event', 'ahp/Event', 'ahp/event ', 'harness/event', 'constructor']) {
    yield { name: `method "${method}"`, sent: request(method, good), said: error(-32601) };
    yield { name: `method "${method}", told`, sent: { jsonrpc: '2.0', method, params: good }, said: undefined };
  }
  for (const method of ['ahp/handshake', 'ahp/event', 'ahp/query', 'ahp/batch', 'ahp/nope']) {
    yield { name: `${method} without params`, sent: { jsonrpc: '2.0', id: 'q', method }, said: undefined };
    yield { name: `${method} told without params`, sent: { jsonrpc: '2.0', method }, said: undefined };
  }
  for (const method of ['ahp/handshake', 'ahp/query', 'ahp/batch']) {
    yield { name: `${method}, told`, sent: { jsonrpc: '2.0', method, params: {} }, said: undefined };
  }
  for (const method of [null, 1, ['ahp/event'], {}]) {
    yield { name: `method ${JSON.stringify(method)}`, sent: { ...asked(good), method }, said: undefined };
  }
  for (const jsonrpc of [undefined, null, 2, 2.1]) {
    yield { name: `jsonrpc ${jsonrpc}`, sent: { ...asked(good), jsonrpc }, said: undefined };
  }
  for (const jsonrpc of ['1.0', '2', '']) {
    yield { name: `jsonrpc "${jsonrpc}"`, sent: { ...asked(good), jsonrpc }, said: allow };
  }
  for (const odd of [null, true, 7, 'text', [], [[]], [asked(good), asked(good)], {}, { id: 'q' }]) {
    yield { name: `${JSON.stringify(odd).slice(0, 30)} alone`, sent: odd, said: undefined };
  }
  const strange = { session_id: 'Ω\u0000\u2028"\\', agent_id: '👩‍🚀', timestamp: '', metadata: { a: [{ b: null }] } };
  yield { name: 'strange names', sent: asked({ ...good, ...strange }), said: allow };
  yield { name: 'an event type as a key', sent: asked({ ...good, event_type: { pre_action: null } }), said: allow };
  yield { name: 'a payload 120 deep', sent: asked({ ...good, payload: nested(120) }), said: allow };
  yield {
    name: 'a payload cut in the middle of a character',
    sent: asked({ ...good, payload: 'x\ud83d' }),
    said: undefined,
  };
  yield {
    name: 'a payload with a member cut',
    sent: asked(event('idle', { payload: { '\udc00': 1 } })),
    said: undefined,
  };
  yield { name: 'a payload 200 deep', sent: asked({ ...good, payload: nested(200) }), said: undefined };
}

function nested(depth: number): Frame {
  return depth === 0 ? {} : { a: nested(depth - 1) };
}

const SIBLINGS = [requests, handshakes, batches, envelopes, details];

export function* siblingChecks(peer: Peer): Generator<Check> {
  for (const family of SIBLINGS) {
    for (const { name, sent, said } of family()) {
      const received = said && { jsonrpc: '2.0', id: sent.id, ...said };
      yield {
        name: `sibling: ${name}`,
        async run() {
          const answered = said !== undefined || Number.isInteger(sent?.id) || name.startsWith('a payload');
          expectAnswer(name, sent, received, await peer.line(JSON.stringify(sent), answered));
        },
      };
    }
  }
  yield* overHttp(peer);
}

/** What HTTP says where streams are silent, and what is not a message at all. */
function* overHttp(peer: Peer): Generator<Check> {
  const post = async (body: string | Buffer, type = 'application/json', path = '/ahp', method = 'POST') => {
    const headers = { 'x-api-key': KEY, ...(type && { 'content-type': type }) };
    const came = await fetch(`${peer.url}${path}`, { method, headers, ...(method === 'POST' && { body }) });
    return { status: came.status, text: await came.text() };
  };
  const silent = (params: Frame, method = 'ahp/event') => JSON.stringify({ jsonrpc: '2.0', method, params });
  for (const type of ALL) {
    const fine = REPORTED.includes(type) || CONTRACTS[type] !== undefined;
    yield {
      name: `sibling over HTTP: ${type} told`,
      run: async () => reported(await post(silent(event(type))), fine),
    };
    yield {
      name: `sibling over HTTP: ${type} told too deep`,
      run: async () => reported(await post(silent(event(type, { depth: 11 }))), false),
    };
  }
  yield {
    name: 'sibling over HTTP: an unknown method told',
    run: async () => reported(await post(silent({}, 'x')), false),
  };
  const bodies: readonly (readonly [string, string | Buffer, number])[] = [
    ['nothing', '', 400],
    ['blanks', ' \n', 400],
    ['half of it', '{"jsonrpc":', 400],
    ['more than one', '{}{}', 400],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22]), 400],
    ['half a character', '"\\ud800"', 400],
    ['nested without end', '['.repeat(200) + ']'.repeat(200), 400],
    ['null', 'null', 200],
    ['a text', '"ahp/event"', 200],
    ['as long as it may be', JSON.stringify('x'.repeat(2097150)), 200],
  ];
  for (const [name, body, status] of bodies) {
    yield { name: `sibling over HTTP: ${name}`, run: async () => equal((await post(body)).status, status) };
  }
  const question = JSON.stringify(asked(event('pre_action')));
  for (const type of ['Application/JSON', 'application/json;charset=UTF-8', 'application/json-patch+json']) {
    yield { name: `sibling over HTTP: ${type}`, run: async () => equal((await post(question, type)).status, 200) };
  }
  for (const type of ['', 'text/json', 'application/jsonl', 'application/x-www-form-urlencoded', 'json']) {
    yield { name: `sibling over HTTP: "${type}"`, run: async () => equal((await post(question, type)).status, 415) };
  }
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']) {
    const run = async () => equal((await post('', '', '/ahp', method)).status, 405);
    yield { name: `sibling over HTTP: ${method}`, run };
  }
  for (const [path, status] of [
    ['/ahp?x=1', 200],
    ['/AHP', 404],
    ['/ahp/x', 404],
    ['/ahpx', 404],
  ] as const) {
    const run = async () => equal((await post(question, undefined, path)).status, status);
    yield { name: `sibling over HTTP: ${path}`, run };
  }
}

function reported({ status, text }: { readonly status: number; readonly text: string }, fine: boolean): void {
  equal(status, fine ? 204 : 200);
  const { id, error: said } = fine ? { id: text } : (JSON.parse(text) as Frame);
  equal([id, said?.code], ['', fine ? undefined : -32603]);
}
