import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { createAsking } from '../../../adapters/ahp/client/harness-client.ts';
import { openLink } from '../../../adapters/ahp/client/transports.ts';
import { serveUnix } from '../../../adapters/ahp/server/door.ts';
import { serveLines } from '../../../adapters/ahp/server/streams.ts';
import type { AhpEvent } from '../../../adapters/ahp/translate.ts';
import type { PolicyEngine, Store } from '../../../src/ports/index.ts';
import { AGENT, event, openAgent, QUIET, type Said } from '../../support/ahp/gateway.ts';
import { ana } from '../../support/gateway/actors.ts';
import { pulledDisk } from '../../support/gateway/failing-store.ts';

const RULES =
  '- { id: tools, when: { kind: tool }, then: allow }\n- { id: mail, when: { tool: mail }, then: ask, say: who knows }';
const bash = { tool_name: 'bash', arguments: { command: 'ls' } };
const framesIn = (output: PassThrough): Said[] =>
  String(output.read())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

test('a log that cannot be written lets nothing through', async () => {
  const disk = pulledDisk();
  const agent = await openAgent({ rules: RULES, store: disk.wrap });
  expect(await agent.ask('pre_action', bash)).toMatchObject({ decision: 'allow' });
  disk.down = true;
  const no = { decision: 'block', reason: 'decisions cannot be written down now, so nothing is let through' };
  expect(await agent.ask('pre_action', bash)).toEqual(no);
  expect(await agent.ask('pre_prompt', { prompt: 'p' })).toEqual(no);
  expect(await agent.ask('idle', { idle_duration_ms: 1, idle_reason: 'r' })).toMatchObject({ decision: 'defer' });
  expect(
    await agent.ask('confirmation', { session_id: 's', confirmation_type: 'user_confirm', message: 'm' }),
  ).toMatchObject({ decision: 'reject' });
  expect(
    await agent.request('ahp/query', { session_id: 's', agent_id: 'a', query_type: 'q', payload: {} }),
  ).toMatchObject({ answer: 'no' });
  expect(await agent.request('ahp/handshake', {})).toMatchObject({ protocol_version: '2.4' });
  disk.down = false;
  expect(await agent.ask('pre_action', bash)).toMatchObject({ decision: 'allow' });
});

test('a log that is slow is not waited for, and the yes that comes too late is called off', async () => {
  let slow = 0;
  const wrap = (store: Store): Store => ({
    ...store,
    async commit(unit) {
      if (slow > 0) await new Promise((resolve) => setTimeout(resolve, slow));
      return await store.commit(unit);
    },
  });
  const agent = await openAgent({ rules: RULES, store: wrap, config: { timeout_ms: 300 } });
  await agent.tell('session_start', {});
  const { id } = await agent.task();
  slow = 800;
  expect(await agent.ask('pre_action', bash)).toEqual({ decision: 'block', reason: 'it was not decided in time' });
  slow = 0;
  const failed = await agent.t.seen(id, 'tool.failed');
  expect(failed.payload).toMatchObject({ name: 'bash', code: 'called_off', error: 'the agent got a refusal' });
});

test('a policy that does not answer is a no', async () => {
  const silent: PolicyEngine = { name: 'silent', decide: () => new Promise(() => {}) };
  const agent = await openAgent({ rules: RULES, engines: [silent], settings: { policyTimeoutMs: 200 } });
  expect(await agent.ask('pre_action', bash)).toMatchObject({ decision: 'block' });
});

test('the client that hangs up while people are asked loses nothing: the answer waits for the next time', async () => {
  const agent = await openAgent({ rules: RULES });
  const mail = { tool_name: 'mail', arguments: { to: 'bo' } };
  await agent.tell('session_start', {});
  const { id } = await agent.task();
  const gone = new AbortController();
  const held = agent.ask('pre_action', mail, {}, { ...agent.caller, gone: gone.signal });
  const [ask] = await agent.t.asks(id);
  gone.abort();
  expect(await held).toMatchObject({ decision: 'block', metadata: { question: ask!.id } });
  await agent.t.answer(ask!.id, { approved: true });
  expect((await agent.t.events(id)).some(({ event }) => event === 'vendor.tollbridge.ask_used')).toBe(false);
  expect(await agent.ask('pre_action', mail)).toMatchObject({ decision: 'allow' });
});

test('a question nobody answers is over before a client hangs up', async () => {
  const agent = await openAgent({ rules: RULES });
  const hungUp = new Promise((resolve) => setTimeout(resolve, 10_000, 'hung up').unref());
  const asked = agent.ask('pre_action', { tool_name: 'mail', arguments: {} });
  expect(await Promise.race([asked, hungUp])).toMatchObject({ decision: 'block' });
}, 20_000);

test('a batch answers every entry, whatever becomes of one', async () => {
  const broken: PolicyEngine = {
    name: 'broken',
    async decide({ arguments: args }) {
      if (args.fail) throw new Error('down');
      return { verdict: 'allow', reason: 'fine', code: 'no_objection', engine: 'broken' };
    },
  };
  const agent = await openAgent({ rules: RULES, engines: [broken] });
  const entry = (payload: object, type = 'pre_action') => ({
    event_type: type,
    session_id: 's',
    agent_id: 'a',
    timestamp: 't',
    depth: 0,
    payload,
  });
  const { decisions } = await agent.request('ahp/batch', {
    events: [
      entry(bash),
      entry({ tool_name: 'bash', arguments: { fail: true } }),
      entry({}, 'post_action'),
      entry({ tool_name: 'mail', arguments: {} }),
    ],
  });
  expect(decisions.map(({ decision }: { decision: string }) => decision)).toEqual(['allow', 'block', 'allow', 'block']);
});

test('a stream of nonsense harms nobody, and the same request gets the same answer', async () => {
  const agent = await openAgent({ rules: RULES });
  const [input, output] = [new PassThrough(), new PassThrough()];
  const serving = serveLines(agent.harness, { input, output }, { actor: AGENT, log: QUIET, limit: 1000 });
  const params = { event_type: 'pre_action', session_id: 's', agent_id: 'a', timestamp: 't', depth: 0, payload: bash };
  const request = JSON.stringify({ jsonrpc: '2.0', id: 'one', method: 'ahp/event', params });
  for (const line of ['', '{', '[]', 'null', '"x"', '{"jsonrpc":"2.0"}', 'y'.repeat(5000), request, request])
    input.write(`${line}\n`);
  input.write(Buffer.from([0xff, 0xfe, 0x0a]));
  input.end();
  await serving;
  const said = framesIn(output);
  expect(said.map(({ id, result }) => [id, result.decision])).toEqual([
    ['one', 'allow'],
    ['one', 'allow'],
  ]);
  const asked = (await agent.t.all()).filter(({ event }) => event === 'tool.requested');
  expect(asked).toHaveLength(1);
});

test('a question too long or too deep to read is refused in its own words, and nobody waits for an answer in vain', async () => {
  const agent = await openAgent({ rules: RULES });
  const [input, output] = [new PassThrough(), new PassThrough()];
  const serving = serveLines(agent.harness, { input, output }, { actor: AGENT, log: QUIET, limit: 2000 });
  const location = { agent_id: 'a', session_id: 's', timestamp: 't', depth: 0 };
  const ask = (id: unknown, event_type: string, payload: unknown) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'ahp/event', params: { event_type, ...location, payload } });
  const long = { ...bash, note: 'y'.repeat(3000) };
  const deep = '[1]'.replace('1', `${'['.repeat(150)}${']'.repeat(150)}`);
  for (const line of [
    ask('call', 'pre_action', long),
    ask(7, 'rate_limit', long),
    ask('told', 'post_action', long),
    JSON.stringify({ jsonrpc: '2.0', method: 'ahp/event', params: { event_type: 'pre_action', payload: long } }),
    ask('late', 'confirmation', 0).replace('"payload":0', `"payload":${deep}`),
    // Written in another order than clients commonly do.
    `{"method":"ahp/event","id":"turned","jsonrpc":"2.0","params":${JSON.stringify({ event_type: 'pre_action', ...location, payload: long })}}`,
    `{"params":${JSON.stringify({ event_type: 'pre_action', ...location, payload: 0 }).replace('"payload":0', `"payload":${deep}`)},"id":"last","method":"ahp/event","jsonrpc":"2.0"}`,
    'y'.repeat(3000),
  ]) {
    // In pieces, as a pipe would bring it.
    for (let at = 0; at < line.length; at += 700) input.write(line.slice(at, at + 700));
    input.write('\n');
  }
  input.end();
  await serving;
  const said = framesIn(output);
  expect(said).toEqual([
    { jsonrpc: '2.0', id: 'call', result: { decision: 'block', reason: 'a line is longer than 2000 bytes' } },
    { jsonrpc: '2.0', id: 7, result: { decision: 'skip', reason: 'a line is longer than 2000 bytes' } },
    { jsonrpc: '2.0', id: 'late', result: { decision: 'reject', reason: 'JSON may be nested at most 127 deep' } },
    { jsonrpc: '2.0', id: 'turned', result: { decision: 'block', reason: 'a line is longer than 2000 bytes' } },
    { jsonrpc: '2.0', id: 'last', result: { decision: 'block', reason: 'JSON may be nested at most 127 deep' } },
  ]);
});

test('a question that holds what cannot be written down is refused, whatever order it is written in', async () => {
  const agent = await openAgent({ rules: RULES });
  const [input, output] = [new PassThrough(), new PassThrough()];
  const serving = serveLines(agent.harness, { input, output }, { actor: AGENT, log: QUIET, limit: 4000 });
  const ask = (type: string, payload: string, more = '"id":"q",') =>
    `{"method":"ahp/event",${more}"params":{"event_type":"${type}","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":${payload}},"jsonrpc":"2.0"}`;
  for (const line of [
    ask('pre_action', '{"tool":"bash","arguments":{"text":"cut \\ud83d"}}'),
    ask('idle', '{"idle_duration_ms":1e999,"idle_reason":"r"}'),
    ask('post_action', '"\\ud83d"'),
    ask('pre_action', '"\\ud83d"', ''),
    ask('pre_action', '"\\ud83d'),
  ])
    input.write(`${line}\n`);
  input.end();
  await serving;
  expect(framesIn(output)).toEqual([
    { jsonrpc: '2.0', id: 'q', result: { decision: 'block', reason: 'a text holds half of a character' } },
    { jsonrpc: '2.0', id: 'q', result: { decision: 'defer', reason: 'a number is too large', retry_after_ms: 60_000 } },
  ]);
});

test('an id is answered as it was written, however large a number it is', async () => {
  const agent = await openAgent({ rules: RULES });
  const [input, output] = [new PassThrough(), new PassThrough()];
  const serving = serveLines(agent.harness, { input, output }, { actor: AGENT, log: QUIET, limit: 4000 });
  const params = JSON.stringify(event('pre_action', bash));
  const ids = ['9007199254740993', '-9223372036854775808', '18446744073709551615'];
  for (const id of ids) input.write(`{"jsonrpc":"2.0","id":${id},"method":"ahp/event","params":${params}}\n`);
  input.end();
  await serving;
  const said = String(output.read()).trim().split('\n');
  expect(said.map((line) => /"id":(-?\d+)/.exec(line)?.[1]).toSorted()).toEqual(ids.toSorted());
  for (const line of said) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0', result: { decision: 'allow' } });
});

test('a delay too long for any reader is sent as one that it can hold', async () => {
  const agent = await openAgent({ rules: RULES });
  const limits = { session_id: 's', limit_type: 'llm_token_limit', retry_after_ms: 2 ** 64, current_usage: 'all' };
  expect(await agent.ask('rate_limit', limits)).toEqual({
    decision: 'retry',
    retry_after_ms: Number.MAX_SAFE_INTEGER,
  });
});

test('what is kept of a connection to answer repeats alike has a bound', async () => {
  const agent = await openAgent({ rules: RULES });
  const [input, output] = [new PassThrough(), new PassThrough()];
  const serving = serveLines(agent.harness, { input, output }, { actor: AGENT, log: QUIET, limit: 4 << 20 });
  const params = { event_type: 'pre_action', session_id: 's', agent_id: 'a', timestamp: 't', depth: 0, payload: bash };
  const metadata = { note: 'y'.repeat(3 << 20) };
  const ask = (id: string, more: object) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'ahp/event', params: { ...params, ...more } });
  for (const line of [
    ask('one', {}),
    ask('one', {}),
    ask('big', { metadata }),
    ask('bigger', { metadata }),
    ask('one', {}),
  ])
    input.write(`${line}\n`);
  input.end();
  await serving;
  const asked = (await agent.t.all()).filter(({ event }) => event === 'tool.requested');
  // The second was a repeat; the last would have been one, had two long ones not come between.
  expect(asked).toHaveLength(4);
});

test('a connection that breaks off mid-question takes nothing with it', async () => {
  const agent = await openAgent({ rules: RULES, config: { timeout_ms: 20_000 } });
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-ahp-'));
  const path = join(dir, 'ahp.sock');
  const listening = await serveUnix(path, agent.harness, { lineLimit: 1 << 20 }, { log: QUIET });
  onTestFinished(async () => {
    await listening.close();
    await rm(dir, { recursive: true, force: true });
  });
  const connect = async () => {
    let count = 0;
    const asking = createAsking(await openLink({ socket: path }, undefined, QUIET), () => `q${++count}`, 60_000);
    onTestFinished(() => asking.close());
    await asking.handshake({ session_id: 's', agent_id: 'a' });
    return asking;
  };
  const mail = event('pre_action', { tool_name: 'mail', arguments: { to: 'bo' } }) as unknown as AhpEvent;
  const first = await connect();
  const lost = first.event(mail).catch((cause: Error) => cause.message);
  await expect.poll(async () => (await agent.t.bridge.list(ana, { object: 'ask', limit: 5 })).data.length).toBe(1);
  await first.close();
  expect(await lost).toBe('the connection to the harness was lost');
  // Another connection is answered, so the harness knows by now that the first one is gone.
  const again = await connect();
  const { data } = await agent.t.bridge.list(ana, { object: 'ask', limit: 5 });
  await agent.t.answer(data[0]!.id, { approved: true });
  expect(await again.event(mail)).toMatchObject({ decision: 'allow' });
  const asks = (await agent.t.all()).filter(({ event: kind }) => kind === 'vendor.tollbridge.ask_opened');
  expect(asks).toHaveLength(1);
});
