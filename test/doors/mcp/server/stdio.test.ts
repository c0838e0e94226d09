/**
 * `tollbridge mcp -- <server command>`: a client that starts its servers itself has the gate in front of them, in either era, and
 * nothing of the server is left when it is gone. The same serving half is spoken to directly where no process is needed.
 */
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { settingsOf } from '../../../../adapters/mcp/config.ts';
import { createCallTasks } from '../../../../adapters/mcp/server/call-tasks.ts';
import { createEndpoint } from '../../../../adapters/mcp/server/endpoint.ts';
import { serveStdio } from '../../../../adapters/mcp/server/transports/stdio.ts';
import { systemClock } from '../../../../src/core/clock.ts';
import type { Actor } from '../../../../src/model/actions.ts';
import type { Logger } from '../../../../src/ports/index.ts';
import { EVERYTHING, guardedServer } from '../../../support/mcp/command.ts';
import { openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';
import { echo, type Loose, openUpstream, type UpstreamOptions, untilStopped } from '../../../support/mcp/upstream.ts';
import { createEnd, type End } from '../../../support/wire/line-end.ts';

const QUIET: Logger = { info() {}, warn() {}, error() {} };
const AGENT: Actor = { id: 'agent:local', kind: 'agent', scopes: ['*'], door: 'mcp' };
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

async function openServed(options: UpstreamOptions & { rules?: string; person?: Actor } = {}) {
  const upstream = await openUpstream(options);
  const gateway = await openMcpGateway({
    upstreams: { u: { url: upstream.url } },
    ...(options.rules && { rules: options.rules }),
  });
  const { bridge } = gateway.runtime;
  const deps = { log: QUIET, clock: systemClock, ids: { next: (prefix: string) => `${prefix}_s` } };
  const settings = settingsOf({});
  const callTasks = createCallTasks(bridge, settings, deps);
  const handler = createEndpoint('u', { bridge, callTasks, settings, deps });
  const input = new PassThrough();
  const output = new PassThrough();
  const { person } = options;
  const serving = serveStdio(
    { input, output },
    { actor: AGENT, ...(person && { person }), handler, log: QUIET, lineLimit: 1e6 },
  );
  onTestFinished(async () => {
    input.end();
    await serving;
    handler.close();
    await callTasks.close();
    await gateway.close();
    await upstream.close();
  });
  return { ...createEnd(output, input), upstream, gateway, input, serving };
}

const asked = async (talk: End, method: string, params: object = {}): Promise<Loose> => await talk.ask(method, params);

async function initialized(talk: End, capabilities: Loose = {}, protocolVersion = '2025-11-25'): Promise<Loose> {
  const params = { protocolVersion, capabilities, clientInfo: { name: 'c', version: '1' } };
  const opened = await asked(talk, 'initialize', params);
  talk.notify('notifications/initialized', {});
  return opened;
}

test('both eras on one line', async () => {
  const talk = await openServed();
  expect((await initialized(talk)).result.serverInfo).toEqual({ name: 'test-upstream', version: '1.2.3' });
  const old = await asked(talk, 'tools/call', { name: 'echo', arguments: { text: 'old' } });
  expect(old.result.content).toEqual([{ type: 'text', text: 'old' }]);
  const now = await asked(talk, 'tools/call', { name: 'echo', arguments: { text: 'new' }, _meta: ENVELOPE });
  expect(now.result).toMatchObject({ resultType: 'complete', content: [{ text: 'new' }] });
  const wrong = { ...ENVELOPE, 'io.modelcontextprotocol/protocolVersion': '2031-01-01' };
  const { error } = await asked(talk, 'tools/list', { _meta: wrong });
  expect(error).toMatchObject({ code: -32022, data: { requested: '2031-01-01' } });
});

test('a client that asks before it opens its session is answered as the server answers, and opens it afterwards', async () => {
  const talk = await openServed({ eras: ['legacy'] });
  expect((await asked(talk, 'ping')).result).toEqual({});
  const { tools } = (await asked(talk, 'tools/list')).result;
  expect(tools.map(({ name }: Loose) => name)).toEqual(['echo']);
  expect((await initialized(talk)).result.serverInfo).toEqual({ name: 'test-upstream', version: '1.2.3' });
  const called = await asked(talk, 'tools/call', { name: 'echo', arguments: { text: 'then' } });
  expect(called.result.content).toEqual([{ type: 'text', text: 'then' }]);
});

test('requests whose client closes its input right after them are answered', async () => {
  const text = { content: [{ type: 'text', text: 'late' }] };
  let answer = () => {};
  const asked = new Promise<void>((reached) => {
    answer = reached;
  });
  const late = { call: () => asked.then(() => text) };
  const talk = await openServed({ tools: { late }, eras: ['legacy'] });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  talk.say({ id: 'i', method: 'initialize', params });
  talk.notify('notifications/initialized', {});
  talk.say({ id: 'l', method: 'tools/list' });
  talk.say({ id: 'c', method: 'tools/call', params: { name: 'late', arguments: {} } });
  talk.input.end();
  expect((await talk.received(({ id }) => id === 'i')).result?.serverInfo).toMatchObject({ name: 'test-upstream' });
  expect((await talk.received(({ id }) => id === 'l')).result?.tools).toHaveLength(1);
  answer();
  expect((await talk.received(({ id }) => id === 'c')).result).toEqual(text);
  await talk.serving;
});

test.each(['legacy', 'modern'] as const)(
  'a %s call that waits for a person ends when nobody is left to answer it, and runs nothing',
  async (era) => {
    const rules = '- { id: ask, when: { kind: tool }, then: ask, say: a person decides }';
    const ran: unknown[] = [];
    const pay = {
      call: async () => {
        ran.push('pay');
        return { content: [] };
      },
    };
    const talk = await openServed({ tools: { pay }, rules });
    if (era === 'legacy') await initialized(talk);
    const _meta = era === 'modern' ? { _meta: ENVELOPE } : {};
    talk.say({ id: 'c', method: 'tools/call', params: { name: 'pay', arguments: {}, ..._meta } });
    talk.input.end();
    const { result } = await talk.received(({ id }) => id === 'c');
    expect(result).toMatchObject({ isError: true });
    await talk.serving;
    expect(ran).toEqual([]);
  },
);

test('a client that leaves while a call runs or waits for a person is sent nothing more', async () => {
  const rules = '- { id: ask, when: { tool: echo }, then: ask }\n- { id: all, when: { tool: slow }, then: allow }';
  const { slow, stopped } = untilStopped();
  const talk = await openServed({ tools: { echo, slow }, rules });
  await initialized(talk);
  talk.say({ id: 'c', method: 'tools/call', params: { name: 'slow', arguments: {} } });
  const params = { name: 'echo', arguments: { text: 'hi' }, _meta: { progressToken: 'p' } };
  talk.say({ id: 'e', method: 'tools/call', params });
  await talk.received(({ method }) => method === 'notifications/progress');
  await asked(talk, 'tools/list');
  const before = talk.frames.length;
  talk.input.end();
  await Promise.all([talk.serving, stopped]);
  expect(talk.frames.slice(before)).toEqual([]);
});

test('what is no frame is said to be none, and the line goes on', async () => {
  const talk = await openServed();
  talk.raw('hello\n{"jsonrpc":"2.0"}\n');
  expect((await initialized(talk)).result.protocolVersion).toBe('2025-11-25');
  expect(talk.frames.filter(({ error }) => error !== undefined)).toMatchObject([
    { id: null, error: { code: -32700 } },
    { id: null, error: { code: -32700 } },
  ]);
});

test('several messages on one line are answered on one, in the revision that has that, and refused in others', async () => {
  const calls = [1, 2].map((id) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'echo', arguments: { text: `${id}` } },
  }));
  const batch = `${JSON.stringify(calls)}\n`;
  const older = await openServed();
  await initialized(older, {}, '2025-03-26');
  older.raw(batch);
  expect(await older.next(Array.isArray)).toMatchObject([
    { id: 1, result: { content: [{ text: '1' }] } },
    { id: 2, result: { content: [{ text: '2' }] } },
  ]);
  const newer = await openServed();
  const refusal = ({ error }: Loose) => error?.code === -32600;
  const refused = async (): Promise<Loose> => {
    const received = newer.next(refusal);
    newer.raw(batch);
    return await received;
  };
  expect((await refused()).error.message).toContain('no session is open: send each message by itself');
  await initialized(newer);
  expect((await refused()).error.message).toContain('this session speaks 2025-11-25');
  expect(newer.upstream.count('tools/call')).toBe(0);
});

test('an approval is put to the person at the client, who is not the agent that called', async () => {
  const rules = '- { id: ask, when: { kind: tool }, then: ask, say: a person decides }';
  const talk = await openServed({ rules, person: VISITOR });
  const questions: Loose[] = [];
  talk.on('elicitation/create', (params) => {
    questions.push(params.message);
    return { action: 'accept', content: { decision: 'approve' } };
  });
  await initialized(talk, { elicitation: {} });
  const { result } = await asked(talk, 'tools/call', { name: 'echo', arguments: { text: 'hi' } });
  expect(result.content).toEqual([{ type: 'text', text: 'hi' }]);
  expect(questions).toEqual([expect.stringContaining('May agent:local use echo?')]);
  const said: Loose[] = [];
  for await (const event of talk.gateway.runtime.store.read({ stream: { of: 'all' } })) {
    if (event.event === 'user.tool_confirmation') said.push(event.actor);
  }
  expect(said).toEqual(['visitor']);
});

test('a call that is taken back is taken back from the server, and gets no answer', async () => {
  const { slow, stopped } = untilStopped();
  const talk = await openServed({ tools: { slow } });
  await initialized(talk);
  talk.say({ id: 'slow', method: 'tools/call', params: { name: 'slow' } });
  while (talk.upstream.count('tools/call') === 0) await new Promise((resolve) => setImmediate(resolve));
  talk.notify('notifications/cancelled', { requestId: 'slow', reason: 'enough' });
  await stopped;
  const next = talk.next(({ method }) => method === undefined);
  talk.say({ id: 'next', method: 'ping' });
  // What comes next is the answer to what was asked next.
  expect(await next).toEqual({ jsonrpc: '2.0', id: 'next', result: {} });
});

test('the command: a server behind the gate, shared log, and nothing left afterwards', {
  timeout: 60_000,
}, async () => {
  const { end, exited } = await guardedServer({
    rules: '- { id: echo, when: { tool: echo, server: everything }, then: allow, say: fine }',
    server: EVERYTHING,
    args: ['--name', 'everything'],
  });
  expect((await initialized(end)).result.serverInfo.name).toBe('mcp-servers/everything');
  const { result } = await asked(end, 'tools/call', { name: 'echo', arguments: { message: 'hi' } });
  expect(result.content).toEqual([{ type: 'text', text: 'Echo: hi' }]);
  end.close();
  expect(await exited).toEqual({ code: 0, signal: null });
});
