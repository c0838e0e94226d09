/** Two revisions at one door: how one is chosen, in what they differ, and that they speak of the same sessions. */
import { request as plainRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { expectFault, openDoor, text, VERSION } from '../../support/harn/gateway.ts';
import { openSocket } from '../../support/wire/socket-client.ts';

const V2 = 'agents-protocol-2026-10-11';
const NAME = 'harn-agents-protocol-version';
const newer = { [NAME]: V2 };

/** Headers as they are written, twice if need be: `fetch` would tidy them up. */
function raw(url: string, headers: string[]): Promise<{ status: number; version: unknown; body: string }> {
  return new Promise((resolve, reject) => {
    const at = new URL(url);
    const asking = plainRequest(
      at,
      { headers: ['host', at.host, 'authorization', 'Bearer ana', ...headers] },
      (answer) => {
        let body = '';
        answer.setEncoding('utf8').on('data', (chunk) => (body += chunk));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, version: answer.headers[NAME], body }));
      },
    );
    asking.on('error', reject).end();
  });
}

describe('which revision is spoken', () => {
  test('the one the request names, and every answer says so', async () => {
    const { call } = await openDoor();
    for (const version of [VERSION, V2]) {
      for (const path of ['/v1', '/v1/agent-card', '/version', '/v1/tasks', '/v1/runtime', '/v1/tasks/task_absent']) {
        const { headers, body } = await call('GET', path, undefined, { [NAME]: version });
        expect(headers.get(NAME), path).toBe(version);
        const said = body.current_version ?? body.protocol_version ?? version;
        expect(said, path).toBe(version);
      }
      const { body } = await call('GET', '/v1', undefined, { [NAME]: version });
      expect(body.supported_versions).toEqual([V2, VERSION]);
    }
  });

  test.each([
    ['spelled with spaces round it', [NAME, `  ${V2}\t`], 200],
    ['under a name in capitals', ['HARN-AGENTS-PROTOCOL-VERSION', V2], 200],
    ['in capitals', [NAME, V2.toUpperCase()], 426],
    ['twice', [NAME, V2, NAME, V2], 426],
    ['beside the other', [NAME, V2, NAME, VERSION], 426],
    ['in a list', [NAME, `${V2}, ${VERSION}`], 426],
    ['quoted', [NAME, `"${V2}"`], 426],
    ['as a date alone', [NAME, '2026-10-11'], 426],
    ['empty', [NAME, ''], 426],
    ['not at all', [], 426],
  ])('%s', async (_, headers, status) => {
    const { url } = await openDoor();
    const answer = await raw(`${url}/v1/tasks`, headers);
    expect(answer.status).toBe(status);
    if (status === 426) {
      expect(JSON.parse(answer.body).error.details).toEqual({ supported_versions: [V2, VERSION] });
      expect(answer.version).toBe(VERSION);
    } else expect(answer.version).toBe(V2);
  });

  test('public operations take any version or none, and then speak the older revision', async () => {
    const { call } = await openDoor();
    for (const version of ['', 'other']) {
      const { status, body } = await call('GET', '/v1', undefined, { [NAME]: version, authorization: '' });
      expect([status, body.current_version]).toEqual([200, VERSION]);
    }
  });

  test('what one revision has, the other does not know', async () => {
    const { call, room } = await openDoor();
    const { session } = await room();
    for (const [method, path] of [
      ['GET', '/v1/provider-catalog'],
      ['GET', '/v1/permissions/rules'],
      ['GET', `/v1/sessions/${session}/live-clients`],
    ] as const) {
      expectFault(await call(method, path), 404, 'resource_not_found', 'not_found_error');
      expect((await call(method, path, undefined, newer)).status, path).toBe(200);
    }
    expect((await call('GET', `/v1/sessions/${session}`)).body).not.toHaveProperty('live_clients');
    const { body } = await call('GET', `/v1/sessions/${session}`, undefined, newer);
    expect([body.live_clients, body.live_controller_id]).toEqual([[], null]);
  });

  test('one session, both revisions: each sees what the other did', async () => {
    const { call, room, at } = await openDoor({ agents: [scriptedAgent(async () => undefined)] });
    const { session } = await room();
    const first = await call('POST', `/v1/sessions/${session}/tasks`, { input: text('one') }, newer);
    const second = await call('POST', `/v1/sessions/${session}/tasks`, { input: text('two') });
    await at.until(first.body.id);
    await at.until(second.body.id);
    const { body: older } = await call('GET', `/v1/sessions/${session}/tasks`);
    const { body: now } = await call('GET', `/v1/sessions/${session}/tasks`, undefined, newer);
    expect(older).toEqual(now);
    expect(older.data).toHaveLength(2);
  });
});

describe('on a socket', () => {
  const bearer = `harn.bearer.${Buffer.from('ana').toString('base64url')}`;

  test.each([
    [[`harn.${V2}`, bearer], V2],
    [[`harn.${VERSION}`, bearer], VERSION],
    [[`harn.${VERSION}`, `harn.${V2}`, bearer], V2],
    [['harn.agents-protocol-2099-01-01', `harn.${VERSION}`, bearer], VERSION],
  ])('the newest subprotocol both know is agreed on: %s', async (protocols, version) => {
    const { url, room } = await openDoor();
    const { session } = await room();
    const socket = await openSocket(`${url}/v1/sessions/${session}/events/stream`, { protocols });
    expect(socket.protocol).toBe(`harn.${version}`);
    expect(await socket.next(({ type }) => type === 'ready')).toMatchObject({ protocol_version: version });
  });

  test.each([
    [{ [NAME]: V2 }, [`harn.${VERSION}`]],
    [{ [NAME]: 'other' }, [`harn.${V2}`]],
    [{}, ['harn.agents-protocol-2099-01-01']],
    [{}, []],
  ])('header %o and subprotocols %o do not agree on one: 426', async (headers, protocols) => {
    const { url, room } = await openDoor();
    const { session } = await room();
    const at = `${url}/v1/sessions/${session}/events/stream`;
    const opening = openSocket(at, { headers: { authorization: 'Bearer ana', ...headers } as never, protocols });
    await expect(opening).rejects.toMatchObject({ status: 426 });
  });

  test('everything the caller may see is followed at the address the card names, from now on', async () => {
    const { url, call, room, headers } = await openDoor({ agents: [scriptedAgent(async () => undefined)] });
    const { session } = await room();
    const { body: card } = await call('GET', '/v1/agent-card', undefined, newer);
    const at = card.harn_interfaces.find(({ transport }: { transport: string }) => transport === 'websocket').url;
    expect(at).toBe(`${url.replace('http', 'ws')}/v1/events/stream`);
    const socket = await openSocket(at, { headers: headers(newer) });
    await socket.next(({ type }) => type === 'caught_up');
    expect(socket.frames.filter(({ type }) => type === 'event')).toEqual([]);
    const made = await socket.command({ type: 'task.submit', session_id: session, input: text('go') });
    expect(made.status).toBe(202);
    const event = await socket.next((frame) => frame.type === 'event' && frame.event.event === 'task.completed');
    expect(event.event.task_id).toBe(made.body.id);
    const outsider = await openSocket(at, { headers: headers({ ...newer, authorization: 'Bearer acme' }) });
    await outsider.next(({ type }) => type === 'caught_up');
    await call('POST', `/v1/sessions/${session}/messages`, { message: text('secret') });
    await socket.next((frame) => frame.type === 'event' && frame.event.event === 'session.message_appended');
    expect(outsider.frames.filter(({ type }) => type === 'event')).toEqual([]);
  });

  test('a key on a frame whose operation takes none is refused in the newer revision', async () => {
    const { url, room, headers } = await openDoor();
    const { session } = await room();
    const at = `${url}/v1/sessions/${session}/events/stream`;
    const append = { type: 'message.append', message: text('x'), idempotency_key: 'k' };
    const older = await openSocket(at, { headers: headers() });
    expect((await older.command(append)).status).toBe(201);
    const socket = await openSocket(at, { headers: headers(newer) });
    expect((await socket.command({ ...append, idempotency_key: 'l' })).status).toBe(400);
  });
});

describe('keys and retries in the newer revision', () => {
  test('only a new task takes a key; anywhere else the request is refused before anything is done', async () => {
    const { call, room } = await openDoor();
    const { workspace, session } = await room();
    const key = { ...newer, 'idempotency-key': 'k1' };
    const before = (await call('GET', '/v1/sessions')).body.data.length;
    for (const [method, path, body] of [
      ['POST', '/v1/sessions', { workspace_id: workspace }],
      ['POST', '/v1/workspaces', { name: 'w', root: 'harn://w' }],
      ['POST', `/v1/sessions/${session}/messages`, { message: text('x') }],
      ['GET', '/v1/tasks', undefined],
    ] as const) {
      const answer = await call(method, path, body, key);
      expectFault(answer, 400, 'invalid_request', 'request_error');
      expect(answer.body.error.details).toEqual({ code: 'idempotency_not_supported' });
    }
    expect((await call('GET', '/v1/sessions')).body.data.length).toBe(before);
    // The same request in the older revision.
    const older = await call('POST', '/v1/sessions', { workspace_id: workspace }, { 'idempotency-key': 'k1' });
    expect(older.status).toBe(201);
  });

  test('a retried task is the same one with 200; another body under its key is a conflict', async () => {
    const { call, room } = await openDoor({ agents: [scriptedAgent(async () => undefined)] });
    const { session } = await room();
    const path = `/v1/sessions/${session}/tasks`;
    const key = { ...newer, 'idempotency-key': 'k' };
    const first = await call('POST', path, { input: text('one') }, key);
    const again = await call('POST', path, { input: text('one') }, key);
    expect([first.status, again.status]).toEqual([202, 200]);
    expect(again.body.id).toBe(first.body.id);
    // The key is the same key in the older revision.
    const older = await call('POST', path, { input: text('one') }, { 'idempotency-key': 'k' });
    expect([older.status, older.body.id]).toEqual([202, first.body.id]);
    expectFault(await call('POST', path, { input: text('two') }, key), 409, 'idempotency_key_reused', 'conflict_error');
  });
});

describe('what the newer revision asks of a session', () => {
  test('`input` steers a task that waits for none, and answers one that does', async () => {
    const steered: string[] = [];
    const agent = scriptedAgent(async (sink) => {
      const answer = await sink.ask({ kind: 'input', key: 'colour', question: 'which colour?' });
      steered.push(JSON.stringify(answer));
      return undefined;
    });
    const { call, room, at } = await openDoor({ agents: [agent] });
    const { session } = await room();
    const { body: task } = await call('POST', `/v1/sessions/${session}/tasks`, { input: text('go') }, newer);
    await at.asks(task.id);
    const path = `/v1/tasks/${task.id}/messages`;
    expectFault(
      await call('POST', path, { kind: 'interrupt', message: text('stop') }, newer),
      400,
      'invalid_request',
      'request_error',
    );
    expect((await call('POST', path, { kind: 'input', message: text('blue') }, newer)).status).toBe(201);
    await at.until(task.id);
    expect(steered.join()).toContain('blue');
  });
});
