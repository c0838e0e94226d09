/** Refusals: each with its code on each binding, nothing done behind it, and nothing given away. */
import { describe, expect, test } from 'vitest';
import { openPeer, type Peer, wire } from '../../support/a2a/gateway.ts';
import { latch, scriptedAgent } from '../../support/gateway/agents.ts';
import type { Body } from '../../support/harn/gateway.ts';

const idle = scriptedAgent(async () => undefined);
const REASONS = (answer: { body: { error: { data?: { reason: string }[]; details?: { reason: string }[] } } }) =>
  (answer.body.error.data ?? answer.body.error.details)?.[0]?.reason;

async function ended(peer: Peer): Promise<string> {
  return (await peer.rpc('SendMessage', wire('go'))).body.result.task.id;
}

describe('versions', () => {
  test.each([
    ['1.0', {}, 'TASK_STATE_COMPLETED'],
    ['1.0.1', {}, 'TASK_STATE_COMPLETED'],
    ['0.3', {}, -32601],
    ['', {}, -32601],
    ['99.0', {}, -32009],
    ['banana', {}, -32009],
  ])('A2A-Version %j', async (version, _, wanted) => {
    const peer = await openPeer({ agents: [idle] });
    const { body } = await peer.rpc('SendMessage', wire('go'), { 'a2a-version': version });
    expect(body.result?.task.status.state ?? body.error.code).toBe(wanted);
  });

  test('the version may stand in the query', async () => {
    const peer = await openPeer({ agents: [idle] });
    const path = `/a2a/agent/message:send?A2A-Version=1.0`;
    const { status, body } = await peer.call('POST', path, wire('go'), { 'a2a-version': '' });
    expect(status).toBe(200);
    expect(body.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  test.each([
    ['the kind of a part', { parts: [{ kind: { toString: 1 }, text: 'go' }] }],
    ['the role', { role: { toString: 1 } }],
    ['the kind of a message', { kind: [{ toString: null }] }],
    ['the id of a message', { messageId: { valueOf: 1 } }],
    ['the task', { taskId: { toString: {} } }],
  ])('0.3: %s that cannot become a text is a mistake of the caller', async (_, members) => {
    const peer = await openPeer({ agents: [idle] });
    const parts = [{ kind: 'text', text: 'go' }];
    const message = { kind: 'message', messageId: 'a', role: 'user', parts, ...members };
    const { body } = await peer.rpc('message/send', { message }, { 'a2a-version': '0.3' });
    expect(body.error).toMatchObject({ code: -32602 });
  });

  test('0.3 is refused where it is not served', async () => {
    const peer = await openPeer({ agents: [idle], config: { legacy: false } });
    const params = {
      message: { kind: 'message', messageId: 'a', role: 'user', parts: [{ kind: 'text', text: 'go' }] },
    };
    const rpc = await peer.rpc('message/send', params, { 'a2a-version': '' });
    expect(rpc.body.error.code).toBe(-32009);
    const rest = await peer.call('POST', '/a2a/agent/v1/message:send', {}, { 'a2a-version': '' });
    expect(rest.status).toBe(400);
    expect(REASONS(rest)).toBe('VERSION_NOT_SUPPORTED');
  });
});

describe('envelopes', () => {
  test.each([
    ['not JSON', '{"jsonrpc":', -32700],
    ['a batch', '[]', -32600],
    ['no version', '{"id":1,"method":"GetTask"}', -32600],
    ['no method', '{"jsonrpc":"2.0","id":1}', -32600],
    ['an id that is none', '{"jsonrpc":"2.0","id":{},"method":"GetTask","params":{}}', -32600],
    ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"Nope","params":{}}', -32601],
    ['params that are none', '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}', -32602],
  ])('%s', async (_, body, code) => {
    const peer = await openPeer({ agents: [idle] });
    const answer = await peer.call('POST', '/a2a/agent', body);
    expect([answer.status, answer.body.error.code]).toEqual([200, code]);
  });

  test('a body over the limit is refused', async () => {
    const peer = await openPeer({ agents: [idle], config: { json_limit: 2048 } });
    const rpc = await peer.rpc('SendMessage', wire('x'.repeat(4096)));
    expect([rpc.status, rpc.body.error.code, REASONS(rpc)]).toEqual([413, -32600, 'PAYLOAD_TOO_LARGE']);
    const rest = await peer.call('POST', '/a2a/agent/message:send', wire('x'.repeat(4096)));
    expect([rest.status, rest.body.error.status]).toEqual([413, 'RESOURCE_EXHAUSTED']);
  });

  test('a body of another type is not read', async () => {
    const peer = await openPeer({ agents: [idle] });
    const rest = await peer.call('POST', '/a2a/agent/message:send', 'hi', { 'content-type': 'text/plain' });
    expect([rest.status, REASONS(rest)]).toEqual([400, 'CONTENT_TYPE_NOT_SUPPORTED']);
    const rpc = await peer.call('POST', '/a2a/agent', 'hi', { 'content-type': 'text/plain' });
    expect(rpc.body.error.code).toBe(-32005);
  });
});

describe('calls without an id', () => {
  test.each([
    ['of an unknown method', 'SendMesage', 'message/ssend', {}, -32601],
    ['without what they need', 'SendMessage', 'message/send', { '': 'x' }, -32602],
    ['that would be whole', 'GetTask', 'tasks/get', { id: 'x' }, -32600],
  ])('%s are refused, in both revisions', async (_, method, older, params, code) => {
    const peer = await openPeer({ agents: [idle] });
    for (const [name, version] of [
      [method, '1.0'],
      [older, ''],
    ]) {
      const call = { jsonrpc: '2.0', method: name, params };
      const { status, body } = await peer.call('POST', '/a2a/agent', call, { 'a2a-version': version ?? '' });
      expect([status, body.error.code, body.id]).toEqual([200, code, null]);
    }
  });
});

describe('messages', () => {
  const good = { messageId: 'a', role: 'ROLE_USER', parts: [{ text: 'go' }] };
  test.each([
    ['no message', {}],
    ['no id', { message: { ...good, messageId: '' } }],
    ['no parts', { message: { ...good, parts: [] } }],
    ['a part of nothing', { message: { ...good, parts: [{}] } }],
    ['a part of the older kind', { message: { ...good, parts: [{ kind: 'file', file: {} }] } }],
    ['the wrong role', { message: { ...good, role: 'ROLE_AGENT' } }],
    ['a role nobody has', { message: { ...good, role: 'user' } }],
    ['a history of less than none', { message: good, configuration: { historyLength: -1 } }],
  ])('%s', async (_, params) => {
    const peer = await openPeer({ agents: [idle] });
    expect((await peer.rpc('SendMessage', params)).body.error.code).toBe(-32602);
    const rest = await peer.call('POST', '/a2a/agent/message:send', params);
    expect([rest.status, rest.body.error.status, REASONS(rest)]).toEqual([400, 'INVALID_ARGUMENT', 'INVALID_PARAMS']);
    expect((await peer.at.bridge.list({ id: 'x', kind: 'system', scopes: ['*'] }, { object: 'task' })).data).toEqual(
      [],
    );
  });

  test('types that are not taken', async () => {
    const peer = await openPeer({ agents: [idle], config: { input_modes: ['text/plain', 'image/*'] } });
    const of = (mediaType: string) => wire('', { parts: [{ url: 'https://files.example/x', mediaType }] });
    expect((await peer.rpc('SendMessage', of('image/png'))).body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect((await peer.rpc('SendMessage', of('audio/wav'))).body.error.code).toBe(-32005);
  });

  test('bytes become a file with a hash, and text, data and links stay what they are', async () => {
    const seen = latch<unknown>();
    const agent = scriptedAgent(async (_, { task }) => {
      seen.open(task);
      return undefined;
    });
    const peer = await openPeer({ agents: [agent] });
    const parts = [
      { text: 'look' },
      { data: { a: [1, null] } },
      { url: 'https://files.example/x', mediaType: 'text/csv' },
      { raw: Buffer.from('bytes').toString('base64'), mediaType: 'text/plain', filename: 'b.txt' },
    ];
    await peer.rpc('SendMessage', wire('', { parts, metadata: { mine: 1 } }));
    const { input, metadata } = (await seen.promise) as Body;
    expect(input.parts.map(({ type }: Body) => type)).toEqual(['text', 'json', 'file_ref', 'artifact_ref']);
    expect(metadata).toMatchObject({
      a2a: { message_metadata: { mine: 1 }, parts: [{}, {}, {}, { filename: 'b.txt' }] },
    });
    const file = await peer.call('GET', `/a2a/agent/artifacts/${input.parts[3]?.artifact_id}`);
    expect([file.status, file.body]).toEqual([200, 'bytes']);
    const theirs = await peer.call('GET', `/a2a/agent/artifacts/${input.parts[3]?.artifact_id}`, undefined, {
      authorization: 'Bearer bo',
    });
    expect(theirs.status).toBe(404);
  });
});

describe('what is not yours is not there', () => {
  const CALLS: readonly [string, (id: string) => object][] = [
    ['GetTask', (id) => ({ id })],
    ['CancelTask', (id) => ({ id })],
    ['SubscribeToTask', (id) => ({ id })],
    ['SendMessage', (taskId) => wire('x', { taskId })],
    ['SendStreamingMessage', (taskId) => wire('x', { taskId })],
    ['ListTaskPushNotificationConfigs', (taskId) => ({ taskId })],
    ['GetTaskPushNotificationConfig', (taskId) => ({ taskId, id: 'c' })],
    ['DeleteTaskPushNotificationConfig', (taskId) => ({ taskId, id: 'c' })],
    ['CreateTaskPushNotificationConfig', (taskId) => ({ taskId, url: 'https://hook.example/' })],
  ];

  test.each(CALLS)('%s', async (method, params) => {
    const peer = await openPeer({ agents: [idle, scriptedAgent(async () => undefined, { name: 'other' })] });
    const id = await ended(peer);
    const absent = (await peer.rpc(method, params('task_nobody'))).body.error;
    expect(absent).toEqual({
      code: -32001,
      message: 'task task_nobody was not found',
      data: [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' },
      ],
    });
    for (const token of ['bo', 'acme']) {
      const hidden = await peer.rpc(method, params(id), { authorization: `Bearer ${token}` });
      expect(hidden.body.error).toEqual({ ...absent, message: `task ${id} was not found` });
    }
    const elsewhere = await peer.call('POST', '/a2a/other', { jsonrpc: '2.0', id: 1, method, params: params(id) });
    expect(elsewhere.body.error.code).toBe(-32001);
  });

  test('a list holds only your own', async () => {
    const peer = await openPeer({ agents: [idle] });
    const id = await ended(peer);
    const list = async (token: string) =>
      (await peer.rpc('ListTasks', {}, { authorization: `Bearer ${token}` })).body.result;
    expect((await list('ana')).tasks.map((task: { id: string }) => task.id)).toEqual([id]);
    expect(await list('bo')).toEqual({ tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 });
  });

  test('a caller without a credential is refused, at every address but the card', async () => {
    const peer = await openPeer({ agents: [idle] });
    for (const authorization of ['', 'Bearer wrong', 'Basic YTpi']) {
      const rpc = await peer.rpc('GetTask', { id: 'x' }, { authorization });
      expect([rpc.status, REASONS(rpc), rpc.headers.get('www-authenticate')]).toEqual([
        401,
        'UNAUTHENTICATED',
        'Bearer',
      ]);
      const rest = await peer.call('GET', '/a2a/agent/tasks/x', undefined, { authorization });
      expect([rest.status, rest.body.error.status]).toEqual([401, 'UNAUTHENTICATED']);
      const old = await peer.call('GET', '/a2a/agent/v1/tasks/x', undefined, { authorization, 'a2a-version': '' });
      expect(old.status).toBe(401);
    }
    expect(
      (await peer.call('GET', '/a2a/agent/.well-known/agent-card.json', undefined, { authorization: '' })).status,
    ).toBe(200);
  });

  test('an agent that is not mounted', async () => {
    const peer = await openPeer({ agents: [idle], config: { agents: ['nobody'] } });
    expect((await peer.call('POST', '/a2a/agent', {})).status).toBe(404);
    expect((await peer.call('GET', '/.well-known/agent-card.json')).status).toBe(404);
  });
});

describe('states that allow no more', () => {
  test('an ended task takes no message, no subscriber and no cancel', async () => {
    const peer = await openPeer({ agents: [idle] });
    const id = await ended(peer);
    expect((await peer.rpc('SendMessage', wire('x', { taskId: id }))).body.error.code).toBe(-32004);
    expect((await peer.rpc('SubscribeToTask', { id })).body.error.code).toBe(-32004);
    expect((await peer.rpc('CancelTask', { id })).body.error.code).toBe(-32002);
    const rest = await peer.call('POST', `/a2a/agent/tasks/${id}:cancel`, {});
    expect([rest.status, rest.body.error.status, REASONS(rest)]).toEqual([
      400,
      'FAILED_PRECONDITION',
      'TASK_NOT_CANCELABLE',
    ]);
  });

  test('what the agent refuses is REJECTED, what it fails at is FAILED', async () => {
    const agent = scriptedAgent(async (_, { task }) => {
      const [part] = task.input.parts as { text: string }[];
      return { state: 'FAILED', failure: { code: part!.text, message: 'sorry' } };
    });
    const peer = await openPeer({ agents: [agent] });
    const state = async (text: string) => (await peer.rpc('SendMessage', wire(text))).body.result.task.status;
    expect((await state('rejected')).state).toBe('TASK_STATE_REJECTED');
    const failed = await state('out_of_paper');
    expect([failed.state, failed.message.parts[0].text]).toEqual(['TASK_STATE_FAILED', 'sorry']);
  });

  test('a mistake of ours is called internal and says nothing more', async () => {
    const agent = scriptedAgent(async () => undefined);
    const peer = await openPeer({
      agents: [agent],
      store: (store) => ({
        ...store,
        async *read() {
          yield* [];
          throw new Error('secret path /var/x');
        },
      }),
    });
    const sent = await peer.rpc('SendMessage', wire('go'));
    const { status, body } = await peer.rpc('GetTask', { id: sent.body.result.task.id });
    expect([status, body.error.code]).toEqual([500, -32603]);
    expect(JSON.stringify(body)).not.toContain('secret path');
    expect(peer.logged.join()).toContain('secret path');
  });
});

test('REST answers in the media type that the client accepts', async () => {
  const peer = await openPeer({ agents: [scriptedAgent(async () => undefined)] });
  const typeFor = async (accept: string) =>
    (await peer.call('GET', '/a2a/agent/tasks/absent', undefined, { accept })).headers.get('content-type');
  expect(await typeFor('application/json')).toBe('application/json');
  expect(await typeFor('application/json, application/a2a+json')).toBe('application/a2a+json');
  expect(await typeFor('*/*')).toBe('application/a2a+json');
});

const OLDER = { kind: 'message', messageId: 'a', role: 'user', parts: [{ kind: 'text', text: 'x' }] };
test.each([
  ['for an absent task', 'message/stream', { message: { ...OLDER, taskId: 'absent' } }, -32001],
  ['for an absent task to subscribe to', 'tasks/resubscribe', { id: 'absent' }, -32001],
  ['for want of a message', 'message/stream', {}, -32602],
  ['for an id that is none', 'message/stream', { message: { ...OLDER, messageId: 7 } }, -32602],
  ['for a message without parts', 'message/stream', { message: { ...OLDER, parts: [] } }, -32602],
  ['for parameters that are none', 'message/stream', 'x', -32602],
])('a stream of 0.3 that is refused %s is an event stream', async (_, method, params, code) => {
  const peer = await openPeer({ agents: [scriptedAgent(async () => undefined)] });
  const answer = await fetch(peer.base(), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ana' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  const data = (await answer.text()).split('\n').find((line) => line.startsWith('data: '));
  expect(JSON.parse(data!.slice(6))).toMatchObject({ id: 1, error: { code } });
});
