import { expect, test } from 'vitest';
import { latch, scriptedAgent, untilAborted } from '../../../support/gateway/agents.ts';
import { type Door, openDoor, text, VERSION } from '../../../support/harn/gateway.ts';
import { openSocket, type WireFrame } from '../../../support/wire/socket-client.ts';

const quick = () =>
  scriptedAgent(async (sink) => {
    await sink.emit({ event: 'vendor.tollbridge.note', payload: { at: 1 } });
    return undefined;
  });
const asker = () =>
  scriptedAgent(async (sink) => {
    const answer = await sink.ask({
      kind: 'approval',
      action: { kind: 'tool', tool: 'send', tool_call_id: 'c1', effect: 'send' },
    });
    const named = await sink.ask({ kind: 'input', key: 'name', question: 'Your name?' });
    return { state: 'COMPLETED', summary: `${answer.kind} ${named.kind === 'value' ? named.value : named.kind}` };
  });
const patient = () =>
  scriptedAgent(async (_sink, _work, signal) => {
    await untilAborted(signal);
    return { state: 'CANCELED' };
  });

const onSession = (door: Door, session: string, more: Record<string, string> = {}) =>
  openSocket(`${door.url}/v1/sessions/${session}/events/stream`, { headers: door.headers(more) });
const onTask = (door: Door, task: string, more: Record<string, string> = {}) =>
  openSocket(`${door.url}/v1/tasks/${task}/stream`, { headers: door.headers(more) });
const isEvent = (name: string) => (frame: WireFrame) => frame.type === 'event' && frame.event.event === name;
const caughtUp = ({ type }: WireFrame) => type === 'caught_up';
const eventsOf = (frames: readonly WireFrame[]) => frames.filter(({ type }) => type === 'event');

test('a whole story over one connection: opened, given work, answered, ended', async () => {
  const door = await openDoor({ agents: [asker()] });
  const { session } = await door.room();
  const socket = await onSession(door, session);
  expect(await socket.next(() => true)).toEqual({
    type: 'ready',
    session_id: session,
    cursor: null,
    protocol_version: VERSION,
  });
  await socket.next(caughtUp);

  const said = await socket.command({ type: 'message.append', session_id: session, message: text('for the record') });
  expect([said.status, said.body.object]).toEqual([201, 'message']);
  const submitted = await socket.command({ type: 'task.submit', session_id: session, input: text('go') });
  expect([submitted.status, submitted.body.object, submitted.body.status]).toEqual([202, 'task', 'WORKING']);

  const approval = await socket.next(({ type }) => type === 'request');
  expect(approval).toMatchObject({
    kind: 'approval',
    task_id: submitted.body.id,
    replayed: false,
    payload: { object: 'permission_request', status: 'pending' },
  });
  const yes = await socket.command({
    type: 'response',
    request_id: approval.request_id,
    approved: true,
    reason: 'fine',
  });
  expect([yes.status, yes.body.status]).toEqual([200, 'approved']);
  const input = await socket.next(({ type }) => type === 'request');
  expect(input).toMatchObject({ kind: 'input', payload: { request: { question: 'Your name?' } } });
  await socket.command({ type: 'response', request_id: input.request_id, answer: 'Wile' });

  const end = await socket.next(isEvent('task.completed'));
  expect(end).toMatchObject({
    replayed: false,
    cursor: end.event.id,
    event: { payload: { outcome: { summary: 'approved Wile' } } },
  });
  const rest = (await door.call('GET', `/v1/sessions/${session}/events?limit=200`)).body.data;
  expect(eventsOf(socket.frames).map(({ event }) => event)).toEqual(rest);
});

test('a task can be steered, answered, canceled and its session cut back from its own stream', async () => {
  const door = await openDoor({ agents: [patient()] });
  const { task, session } = await door.task();
  const socket = await onTask(door, task);
  expect(await socket.next(() => true)).toMatchObject({ type: 'ready', task_id: task, session_id: session });
  const steered = await socket.command({ type: 'task.message', kind: 'interrupt', message: text('faster') });
  expect([steered.status, steered.body.object]).toEqual([201, 'message']);
  const canceled = await socket.command({ type: 'task.cancel', task_id: task, reason: 'enough' });
  expect([canceled.status, canceled.body.status]).toEqual([200, 'CANCELED']);
  await socket.next(isEvent('task.canceled'));
  const cut = await socket.command({ type: 'session.truncate', keep_first: 1 });
  expect(cut.body).toMatchObject({ object: 'session.truncate_result', kept_turn_count: 1, removed_turn_count: 1 });
  const twice = await socket.command({ type: 'task.message', kind: 'interrupt', message: text('late') });
  expect(twice).toMatchObject({ type: 'error', status: 409, error: { code: 'conflict', type: 'conflict_error' } });
});

test('commands share their keys with REST', async () => {
  const door = await openDoor({ agents: [patient()] });
  const { session } = await door.room();
  const socket = await onSession(door, session);
  const frame = { type: 'task.submit', session_id: session, input: text('once'), idempotency_key: 'k' };
  const first = await socket.command(frame);
  const again = await socket.command(frame);
  expect(again.body.id).toBe(first.body.id);
  const rest = await door.call(
    'POST',
    `/v1/sessions/${session}/tasks`,
    { input: text('once') },
    { 'idempotency-key': 'k' },
  );
  expect(rest.body.id).toBe(first.body.id);
  const other = await socket.command({ ...frame, input: text('twice') });
  expect(other).toMatchObject({ type: 'error', status: 409, error: { code: 'idempotency_key_reused' } });
  const many = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      socket.command({ ...frame, id: `x${n}`, idempotency_key: 'k2', input: text('many') }),
    ),
  );
  expect(new Set(many.map(({ body }) => body.id)).size).toBe(1);
});

test('a reader that comes back gets what it missed, marked as such, then what happens', async () => {
  const go = latch();
  const door = await openDoor({
    agents: [
      scriptedAgent(async (sink) => {
        await sink.emit({ event: 'vendor.tollbridge.note', payload: { at: 1 } });
        await go.promise;
        await sink.emit({ event: 'vendor.tollbridge.note', payload: { at: 2 } });
        return undefined;
      }),
    ],
  });
  const { task } = await door.task();
  await door.at.seen(task, 'vendor.tollbridge.note');
  const before: string[] = (await door.call('GET', `/v1/tasks/${task}/events`)).body.data.map(
    ({ id }: { id: string }) => id,
  );
  const cursor = before[2]!;

  const byHeader = await onTask(door, task, { 'last-event-id': cursor });
  const byQuery = await openSocket(`${door.url}/v1/tasks/${task}/stream?last_event_id=${cursor}`, {
    headers: door.headers(),
  });
  const byFrame = await onTask(door, task);
  byFrame.send({ type: 'resume', last_event_id: cursor });
  const sockets = [byHeader, byQuery, byFrame];
  for (const socket of sockets) await socket.next(caughtUp);
  go.open();
  for (const socket of sockets) {
    await socket.next(isEvent('task.completed'));
    const events = eventsOf(socket.frames);
    expect(events.filter(({ replayed }) => replayed).map(({ event }) => event.id)).toEqual(before.slice(3));
    const live = events.filter(({ replayed }) => !replayed);
    expect(live[0].event.payload.at).toBe(2);
    const ids = events.map((frame) => frame.cursor);
    const all = (await door.call('GET', `/v1/tasks/${task}/events?after_event_id=${cursor}`)).body.data;
    expect(ids).toEqual(all.map(({ id }: { id: string }) => id));
  }
});

test('questions still open are put again to a caller that comes back', async () => {
  const door = await openDoor({ agents: [asker()] });
  const { task } = await door.task();
  const [ask] = await door.at.asks(task);
  const socket = await onTask(door, task);
  await socket.next(caughtUp);
  expect(await socket.next(({ type }) => type === 'request')).toMatchObject({
    request_id: ask!.id,
    replayed: true,
    expires_at: ask!.expires_at,
  });
  await door.call('POST', `/v1/permission-requests/${ask!.id}/respond`, { approved: false });
  const closed = await socket.next(isEvent('vendor.tollbridge.ask_closed'));
  expect(closed.event.payload.ask_id).toBe(ask!.id);
  const late = await socket.command({ type: 'response', request_id: ask!.id, approved: true });
  expect(late).toMatchObject({ status: 409, error: { code: 'conflict' } });
});

test('a client without headers names version and token as subprotocols; the token is never said back', async () => {
  const door = await openDoor({ agents: [quick()] });
  const { task } = await door.task();
  const url = `${door.url}/v1/tasks/${task}/stream`;
  const bearer = `harn.bearer.${Buffer.from('ana').toString('base64url')}`;
  const socket = await openSocket(url, { protocols: [`harn.${VERSION}`, bearer] });
  expect(socket.protocol).toBe(`harn.${VERSION}`);
  await socket.next(isEvent('task.completed'));

  const refused = async (options: Parameters<typeof openSocket>[1]) => {
    const thrown = await openSocket(url, options).catch((cause) => cause);
    return [thrown.status, JSON.parse(thrown.body).error.code];
  };
  expect(await refused({ protocols: [bearer] })).toEqual([426, 'unsupported_protocol_version']);
  expect(await refused({ protocols: ['harn.agents-protocol-1900-01-01', bearer] })).toEqual([
    426,
    'unsupported_protocol_version',
  ]);
  expect(await refused({ protocols: [`harn.${VERSION}`] })).toEqual([401, 'unauthenticated']);
  expect(await refused({ protocols: [`harn.${VERSION}`, 'harn.bearer.bm9ib2R5'] })).toEqual([401, 'unauthenticated']);
  expect(await refused({ protocols: [`harn.${VERSION}`, bearer], headers: { authorization: 'Bearer ana' } })).toEqual([
    401,
    'unauthenticated',
  ]);
  expect(await refused({ headers: door.headers({ authorization: 'Bearer nothing' }) })).toEqual([
    403,
    'permission_denied',
  ]);
  expect(await refused({ headers: door.headers({ authorization: 'Bearer acme' }) })).toEqual([
    404,
    'resource_not_found',
  ]);
  expect(await refused({ headers: door.headers({ origin: 'https://evil.example' }) })).toEqual([
    403,
    'permission_denied',
  ]);
});

test('the second mount has sockets, too', async () => {
  const door = await openDoor({ agents: [quick()] });
  const { task } = await door.task();
  const socket = await openSocket(`${door.url}/harn-suite/v1/tasks/${task}/stream`, { headers: door.headers() });
  await socket.next(isEvent('task.completed'));
});

test('a cursor that is no place in the log ends the connection with 4410', async () => {
  const door = await openDoor({ agents: [quick()] });
  const { task } = await door.task();
  const socket = await onTask(door, task, { 'last-event-id': 'evt_9999999999999999' });
  expect(await socket.next(({ type }) => type === 'error')).toMatchObject({
    status: 410,
    error: { code: 'cursor_expired' },
  });
  expect(await socket.closed).toEqual([4410, 'the cursor has expired']);
});

test('frames that mean nothing are answered, and the connection lives on', async () => {
  const door = await openDoor({ agents: [quick()] });
  const { session } = await door.room();
  const socket = await onSession(door, session);
  await socket.next(caughtUp);
  for (const [frame, param] of [
    ['not json', null],
    ['[1,2]', null],
    ['"text"', null],
    [{ type: 'dance', id: '1' }, 'type'],
    [{ type: '__proto__', id: '1' }, 'type'],
    [{ type: 'task.cancel' }, 'id'],
    [{ type: 'task.cancel', id: '1' }, 'task_id'],
    [{ type: 'task.submit', id: '1', session_id: session }, 'input'],
    [{ type: 'response', id: '1', approved: true }, 'request_id'],
    [{ type: 'resume' }, 'last_event_id'],
    [{ type: 'task.submit', id: '1', input: text('x'), idempotency_key: 'k'.repeat(300) }, 'idempotency-key'],
  ] as const) {
    socket.send(frame);
    const answer = await socket.next(({ type }) => type === 'error');
    expect(answer, JSON.stringify(frame)).toMatchObject({ status: 400, error: { code: 'invalid_request', param } });
  }
  socket.send({ type: 'ping', t: 42 });
  expect(await socket.next(({ type }) => type === 'pong')).toEqual({ type: 'pong', t: 42 });
  socket.send({ type: 'ack', cursor: 'evt_1' });
  expect((await socket.command({ type: 'task.submit', input: text('x') })).status).toBe(202);
  expect((await door.call('GET', `/v1/sessions/${session}/tasks`)).body.data).toHaveLength(1);
});

test('what a scope does not allow is an error frame, not a lost connection', async () => {
  const door = await openDoor({ agents: [patient()] });
  const { task, session } = await door.task();
  const socket = await onTask(door, task, { authorization: 'Bearer reader' });
  await socket.next(caughtUp);
  for (const frame of [
    { type: 'task.cancel' },
    { type: 'task.submit', session_id: session, input: text('x') },
    { type: 'session.truncate', session_id: session, keep_first: 0 },
    { type: 'message.append', session_id: session, message: text('x') },
  ]) {
    expect(await socket.command(frame)).toMatchObject({
      type: 'error',
      status: 403,
      error: { code: 'permission_denied' },
    });
  }
  const elsewhere = await socket.command({ type: 'task.cancel', task_id: 'task_zz' });
  expect(elsewhere.status).toBe(403);
  expect((await door.call('GET', `/v1/tasks/${task}`)).body.status).toBe('WORKING');
});

test('a token that no longer holds, a frame too large and a closing door have their own codes', async () => {
  const door = await openDoor({
    agents: [patient()],
    people: { guest: { id: 'guest', kind: 'person', scopes: ['*'] } },
    config: { json_limit: 5000, stream: { recheck_ms: 30 } },
  });
  const { session } = await door.room();
  const guest = await onSession(door, session, { authorization: 'Bearer guest' });
  await guest.next(caughtUp);
  door.revoke('guest');
  expect(await guest.closed).toEqual([4401, 'the token no longer holds']);

  const large = await onSession(door, session);
  large.send({ type: 'task.submit', id: '1', input: text('x'.repeat(6000)) });
  expect((await large.closed)[0]).toBe(1009);

  const last = await onSession(door, session);
  await last.next(caughtUp);
  await door.close();
  expect(await last.closed).toEqual([1012, 'the gateway is shutting down']);
});

test('many commands at once are answered in order, and too many are refused with that reason', async () => {
  const door = await openDoor({ agents: [patient()] });
  const { session } = await door.room();
  const socket = await onSession(door, session);
  await socket.next(caughtUp);
  const count = 200;
  for (let n = 0; n < count; n += 1) {
    socket.send({ type: 'message.append', id: `m${n}`, message: text(`${n}`) });
  }
  const answers: WireFrame[] = [];
  while (answers.length < count) {
    answers.push(await socket.next(({ type }) => type === 'result' || type === 'error'));
  }
  const kept = answers.filter(({ type }) => type === 'result').map(({ body }) => Number(body.parts[0].text));
  expect(kept).toEqual(kept.toSorted((a, b) => a - b));
  for (const refused of answers.filter(({ type }) => type === 'error')) {
    expect(refused).toMatchObject({ status: 429, error: { code: 'rate_limited' } });
  }
  const listed = (await door.call('GET', `/v1/sessions/${session}/messages?limit=200`)).body.data;
  expect(listed.map(({ parts }: WireFrame) => Number(parts[0].text))).toEqual(kept);
});
