/** The door to editors elsewhere: sockets, messages with event streams, and who may use which. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as acp from '@agentclientprotocol/sdk';
import { createHttpStream } from '@agentclientprotocol/sdk/experimental/http-client';
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import { openRemoteDoor, type RemoteDoor } from '../../support/acp/remote.ts';
import { latch, scriptedAgent } from '../../support/gateway/agents.ts';

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal });
const demo = () => ({ agents: [createDemoAgent({ pause })], tools: [createDemoTools({})] });
const HELLO = 'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.';
const RULES = '- { id: mail, when: { tool: send_mail }, then: ask, say: mail leaves this host }';
const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } };

async function connect(door: RemoteDoor, token = 'ana'): Promise<string> {
  const answer = await door.ask('POST', { body: initialize, token });
  expect(answer.status).toBe(200);
  return answer.headers.get('acp-connection-id')!;
}

/** Reads frames of a stream until one satisfies the wish; the reader then goes away. */
async function readUntil(answer: Response, wish: (frame: Frame) => boolean) {
  const frames: { id: string; frame: Frame }[] = [];
  let rest = '';
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    rest += chunk;
    const pieces = rest.split('\n\n');
    rest = pieces.pop() ?? '';
    for (const piece of pieces) {
      if (piece.startsWith(':')) continue;
      const [id, data] = piece.split('\n').map((line) => line.slice(line.indexOf(': ') + 2));
      frames.push({ id: id!, frame: JSON.parse(data!) });
      if (wish(frames.at(-1)!.frame)) return frames;
    }
  }
  throw new Error(`the stream ended after ${JSON.stringify(frames)}`);
}
// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
type Frame = any;

describe('the published client', () => {
  test.each(['http', 'websocket'])('has a whole conversation over %s', async (transport) => {
    const door = await openRemoteDoor({ ...demo(), rules: RULES });
    const headers = { authorization: 'Bearer ana' };
    const stream =
      transport === 'http'
        ? createHttpStream(door.url, { headers })
        : createWebSocketStream(door.url.replace(/^http/, 'ws'), { headers, WebSocket: WebSocket as never });
    const reported: string[] = [];
    const asked: string[] = [];
    const app = acp
      .client({ name: 'published' })
      .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
        if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text')
          reported.push(update.content.text);
      })
      .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
        asked.push(String(params.toolCall.title));
        const once = params.options.find(({ kind }) => kind === 'allow_once')!;
        return { outcome: { outcome: 'selected', optionId: once.optionId } };
      });
    await app.connectWith(stream, async (agent) => {
      const { protocolVersion } = await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
      expect(protocolVersion).toBe(1);
      const { sessionId } = await agent.request('session/new', { cwd: '/notes', mcpServers: [] });
      const first = await agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'hello' }] });
      expect(first.stopReason).toBe('end_turn');
      const prompt: acp.ContentBlock[] = [{ type: 'text', text: 'send the plan to bo' }];
      expect((await agent.request('session/prompt', { sessionId, prompt })).stopReason).toBe('end_turn');
    });
    expect(reported.join('')).toContain(HELLO);
    expect(reported.join('')).toContain('Mail to bo is sent.');
    expect(asked).toEqual(['May agent:demo use send_mail on bo?']);
  });
});

describe('who may use a connection', () => {
  test('nobody without a token', async () => {
    const door = await openRemoteDoor(demo());
    for (const token of ['', 'made-up']) {
      const answer = await door.ask('POST', { body: initialize, token });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect(await answer.json()).toMatchObject({ error: { code: -32000 } });
    }
    await expect(door.socket('made-up')).rejects.toMatchObject({ status: 401 });
  });

  test('only the client that opened it: to anyone else it is not there', async () => {
    const door = await openRemoteDoor(demo());
    const id = await connect(door);
    const headers = { 'acp-connection-id': id, accept: 'text/event-stream' };
    const body = { jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: '/notes', mcpServers: [] } };
    expect((await door.ask('POST', { headers, body, token: 'acme' })).status).toBe(404);
    expect((await door.ask('GET', { headers, token: 'acme' })).status).toBe(404);
    expect((await door.ask('DELETE', { headers, token: 'acme' })).status).toBe(404);
    expect((await door.ask('POST', { headers, body })).status).toBe(202);
  });

  test('pages of other origins and other names of this host do not get as far as the door', async () => {
    const door = await openRemoteDoor(demo());
    const answer = await door.ask('POST', { body: initialize, headers: { origin: 'https://elsewhere.example' } });
    expect(answer.status).toBe(403);
    const socket = new WebSocket(door.url.replace(/^http/, 'ws'), {
      headers: { authorization: 'Bearer ana', origin: 'https://elsewhere.example' },
    });
    const refused = await new Promise((resolve) => {
      socket.once('error', () => {});
      socket.once('unexpected-response', (_, response) => resolve(response.statusCode));
    });
    expect(refused).toBe(403);
  });

  test('sessions of another tenant are not there, to load or to list', async () => {
    const door = await openRemoteDoor(demo());
    const mine = await door.socket('ana');
    const sessionId = await mine.session();
    const theirs = await door.socket('acme');
    expect(await theirs.refused('session/load', { sessionId, cwd: '/notes', mcpServers: [] })).toEqual({
      code: -32002,
      message: `there is no session ${sessionId}`,
      data: { code: 'resource_not_found', sessionId },
    });
    expect(await theirs.call('session/list')).toEqual({ sessions: [] });
    expect(await theirs.refused('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'x' }] })).toMatchObject({
      code: -32002,
    });
  });

  test('a token that no longer holds ends what was opened with it, and nothing else', async () => {
    const door = await openRemoteDoor(demo(), { recheck_ms: 20 });
    const [mine, theirs] = [await door.socket('ana'), await door.socket('acme')];
    const headers = { 'acp-connection-id': await connect(door), accept: 'text/event-stream' };
    const stream = await door.ask('GET', { headers });
    door.revoke('ana');
    expect(await mine.closed).toBe(4401);
    expect(await stream.text()).toBe('');
    expect(await theirs.call('session/list')).toEqual({ sessions: [] });
  });

  test('no more connections than the configuration allows', async () => {
    const door = await openRemoteDoor(demo(), { connections: 2 });
    await connect(door);
    const second = await connect(door);
    expect((await door.ask('POST', { body: initialize })).status).toBe(429);
    expect((await door.ask('POST', { body: initialize, token: 'acme' })).status).toBe(200);
    await door.ask('DELETE', { headers: { 'acp-connection-id': second } });
    const socket = await door.socket();
    await expect(door.socket()).rejects.toMatchObject({ status: 429 });
    await door.socket('acme');
    socket.drop();
    await expect
      .poll(() =>
        door.socket().then(
          () => 'in',
          () => 'out',
        ),
      )
      .toBe('in');
  });
});

describe('messages and streams', () => {
  const call = (id: number, method: string, params: object) => ({ jsonrpc: '2.0', id, method, params });

  test('what is wrong with a request is said with its status', async () => {
    const door = await openRemoteDoor(demo());
    const id = await connect(door);
    const mine = { 'acp-connection-id': id };
    const prompt = call(2, 'session/prompt', { sessionId: 's', prompt: [] });
    const statuses = await Promise.all([
      door.ask('POST', { body: prompt }),
      door.ask('POST', { body: prompt, headers: mine }),
      door.ask('POST', { body: prompt, headers: { ...mine, 'acp-session-id': 'other' } }),
      door.ask('POST', { body: initialize, headers: { 'acp-connection-id': 'conn_nobodys' } }),
      door.ask('POST', { body: 'nonsense', headers: mine }),
      door.ask('POST', { body: '[]', headers: mine }),
      door.ask('POST', { body: 'x', headers: { ...mine, 'content-type': 'text/plain' } }),
      door.ask('GET', { headers: { ...mine, accept: 'application/json' } }),
      door.ask('GET', { headers: { accept: 'text/event-stream' } }),
      door.ask('PUT', { body: {}, headers: mine }),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual([400, 400, 400, 404, 400, 400, 415, 406, 400, 405]);
  });

  test('a body too long is cut off', async () => {
    const door = await openRemoteDoor(demo(), { line_limit: 4096 });
    const long = { ...initialize, params: { protocolVersion: 1, more: 'x'.repeat(8192) } };
    expect((await door.ask('POST', { body: long })).status).toBe(413);
  });

  test('a stream has one reader, and a reader that comes back goes on where it was', async () => {
    const door = await openRemoteDoor(demo());
    const id = await connect(door);
    const base = { 'acp-connection-id': id, accept: 'text/event-stream' };
    await door.ask('POST', { headers: base, body: call(1, 'session/new', { cwd: '/notes', mcpServers: [] }) });
    const made = await readUntil(await door.ask('GET', { headers: base }), ({ id: answered }) => answered === 1);
    const { sessionId } = made.at(-1)!.frame.result;
    const headers = { ...base, 'acp-session-id': sessionId };
    await door.ask('POST', {
      headers,
      body: call(2, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'hello' }] }),
    });
    const reading = await door.ask('GET', { headers });
    expect((await door.ask('GET', { headers })).status).toBe(409);
    const first = await readUntil(reading, ({ params }) => params?.update?.content?.text === 'the demo agent: ');
    // What was sent after that frame may be lost with the connection; it is said again.
    const after = { ...headers, 'last-event-id': first.at(-1)!.id };
    let again = await door.ask('GET', { headers: after });
    while (again.status === 409) again = await door.ask('GET', { headers: after });
    const rest = await readUntil(again, ({ id: answered }) => answered === 2);
    const text = [...first, ...rest].map(({ frame }) => frame.params?.update?.content?.text ?? '').join('');
    expect(text).toBe(HELLO);
    expect(rest.at(-1)!.frame.result.stopReason).toBe('end_turn');
    let expired = await door.ask('GET', { headers: { ...headers, 'last-event-id': '999' } });
    while (expired.status === 409) expired = await door.ask('GET', { headers: { ...headers, 'last-event-id': '999' } });
    expect(expired.status).toBe(410);
  });
});

describe('editors that go away and come back', () => {
  test('work goes on without its editor; one that comes back receives the rest from the log', async () => {
    const go = latch();
    const agent = scriptedAgent(async (sink) => {
      const say = (text: string) =>
        sink.emit({ event: 'vendor.tollbridge.message_delta', payload: { message_id: 'm1', role: 'assistant', text } });
      await say('one ');
      await go.promise;
      await say('two');
      const message = { id: 'm1', role: 'assistant', parts: [{ type: 'text', text: 'one two', visibility: 'public' }] };
      await sink.emit({ event: 'agent.message', payload: { message } });
      return undefined;
    });
    const door = await openRemoteDoor({ agents: [agent] });
    const first = await door.socket('ana', { _meta: { tollbridge: {} } });
    const sessionId = await first.session();
    first.prompt(sessionId, 'go').catch(() => {});
    const last = await first.next(({ params }) => params?.update?.content?.text === 'one ');
    first.drop();
    go.open();
    const [task] = await door.at.runtime.store.list({ object: 'task' });
    expect((await door.at.until(task!.id)).status).toBe('COMPLETED');

    const whole = await door.socket();
    await whole.call('session/load', { sessionId, cwd: '/notes', mcpServers: [] });
    expect(whole.updates().map(({ sessionUpdate, content }) => [sessionUpdate, content.text])).toEqual([
      ['user_message_chunk', 'go'],
      ['agent_message_chunk', 'one two'],
    ]);

    const rest = await door.socket('ana', { _meta: { tollbridge: {} } });
    const after = last.params._meta.tollbridge.eventId;
    await rest.call('session/resume', { sessionId, cwd: '/notes', _meta: { tollbridge: { after } } });
    expect(rest.updates().map(({ content }) => content.text)).toEqual(['two']);
    const nowhere = { sessionId, cwd: '/notes', _meta: { tollbridge: { after: 'evt_made_up' } } };
    expect(await rest.refused('session/resume', nowhere)).toMatchObject({ data: { code: 'cursor_expired' } });
  });

  test('where the configuration says so, work stops with its editor', async () => {
    const begun = latch();
    const agent = scriptedAgent(async (_sink, _work, signal) => {
      begun.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return { state: 'CANCELED' };
    });
    const door = await openRemoteDoor({ agents: [agent] }, { on_disconnect: 'cancel' });
    const editor = await door.socket();
    const sessionId = await editor.session();
    editor.prompt(sessionId, 'go').catch(() => {});
    await begun.promise;
    editor.drop();
    const [task] = await door.at.runtime.store.list({ object: 'task' });
    expect((await door.at.until(task!.id)).status).toBe('CANCELED');
  });

  test('a socket receives the name of its connection, and a client of the Harn profile where each frame stands', async () => {
    const door = await openRemoteDoor(demo());
    const editor = await door.socket('ana', { _meta: { harn: {} } });
    expect(editor.connectionId).toMatch(/^conn_/);
    const sessionId = await editor.session();
    await editor.prompt(sessionId, 'hello');
    const { _harn } = editor.frames.find(({ method }) => method === 'session/update');
    expect(_harn).toEqual({ eventId: expect.stringMatching(/^evt_\d{16}$/), sessionId, replayed: false });
  });
});
