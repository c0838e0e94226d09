/** WebSocket: events, commands and questions over one connection, with the same rules as everywhere else. */
import type { Message, Task } from '../../../../src/model/resources.ts';
import { equal, rising, truth } from '../harness/expect.ts';
import { openSocket, refusedUpgrade, type SocketFrame } from '../harness/socket.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target, unique } from '../harness/target.ts';

const isEvent = (kind: string) => (frame: SocketFrame) => frame.type === 'event' && frame.event?.event === kind;
const caughtUp = ({ type }: SocketFrame) => type === 'caught_up';
const answerTo = (id: string) => (frame: SocketFrame) =>
  frame.id === id && (frame.type === 'result' || frame.type === 'error');

async function onSession<T>(
  at: Target,
  use: (socket: Awaited<ReturnType<typeof openSocket>>, session: string) => Promise<T>,
) {
  const { id } = await at.session({ initial_messages: [said('first')] });
  const socket = await openSocket(at, `/v1/sessions/${id}/events/stream`);
  try {
    return await use(socket, id);
  } finally {
    socket.close();
  }
}

export const sockets = category('websocket', {
  async 'the first frame is ready, and says where we are'(at) {
    await onSession(at, async (socket, session) => {
      const ready = await socket.next();
      equal(
        [ready.type, ready.session_id, ready.protocol_version],
        ['ready', session, at.revision.version],
        'the first frame',
      );
    });
  },
  async 'a task socket tells the task from its beginning to its end'(at) {
    const { id } = await at.submit('wait 3');
    const socket = await openSocket(at, `/v1/tasks/${id}/stream`);
    try {
      const frames = await socket.until(isEvent('task.completed'));
      const reported = frames.filter(({ type }) => type === 'event').map(({ event }) => event);
      equal(reported, await at.events(`/v1/tasks/${id}/events`), 'the events');
      truth(frames.some(caughtUp), 'there is no caught_up');
    } finally {
      socket.close();
    }
  },
  async 'event frames carry a cursor, and rise'(at) {
    const { id } = await at.done('hello');
    const socket = await openSocket(at, `/v1/tasks/${id}/stream`);
    const frames = await socket.until(isEvent('task.completed'));
    socket.close();
    const events = frames.filter(({ type }) => type === 'event');
    for (const { cursor, event, replayed } of events) {
      equal(cursor, event?.id, 'cursor');
      equal(typeof replayed, 'boolean', 'replayed');
    }
    rising(
      events.map(({ cursor }) => String(cursor)),
      'cursors',
    );
  },
  async 'what is caught up on is marked, what happens now is not'(at) {
    await onSession(at, async (socket, session) => {
      const past = await socket.until(caughtUp);
      for (const frame of past.filter(({ type }) => type === 'event')) equal(frame.replayed, true, 'the past');
      await at.ok('POST', `/v1/sessions/${session}/messages`, { body: { message: said('now') } });
      equal((await socket.until(isEvent('user.message'))).at(-1)?.replayed, false, 'the present');
    });
  },
  ...each(
    ['header', 'query', 'frame'] as const,
    (how) => `a cursor by ${how} resumes without gap or repetition`,
    async (how, at) => {
      const { id } = await at.done('hello');
      const events = await at.events(`/v1/tasks/${id}/events`);
      const cursor = events[3]?.id ?? '';
      const path = `/v1/tasks/${id}/stream${how === 'query' ? `?last_event_id=${cursor}` : ''}`;
      const socket = await openSocket(at, path, how === 'header' ? { headers: { 'last-event-id': cursor } } : {});
      try {
        if (how === 'frame') socket.send({ type: 'resume', last_event_id: cursor });
        const frames = await socket.until(isEvent('task.completed'));
        const reported = frames.filter(({ type }) => type === 'event');
        equal(
          reported.map(({ event }) => event?.id),
          events.slice(4).map((event) => event.id),
          'the events',
        );
        truth(
          reported.every(({ replayed }) => replayed === true),
          'what was caught up on is not marked',
        );
      } finally {
        socket.close();
      }
    },
  ),
  async 'an unknown cursor closes with 4410, after saying so'(at) {
    const { id } = await at.done('hello');
    const socket = await openSocket(at, `/v1/tasks/${id}/stream?last_event_id=evt_9999999999999999`);
    const frames = await socket.rest();
    equal(frames.find(({ type }) => type === 'error')?.error?.code, 'cursor_expired', 'the error');
    equal(await socket.closed, 4410, 'the close code');
  },
  async 'version and token may come as subprotocols, and only the version is echoed'(at) {
    const { id } = await at.done('hello');
    const bearer = `harn.bearer.${Buffer.from(at.key ?? '').toString('base64url')}`;
    const socket = await openSocket(at, `/v1/tasks/${id}/stream`, {
      as: null,
      version: null,
      protocols: [`harn.${at.revision.version}`, bearer],
    });
    equal(socket.protocol, `harn.${at.revision.version}`, 'the agreed protocol');
    await socket.until(isEvent('task.completed'));
    socket.close();
  },
  ...each(
    [
      ['without a token', { as: null }, 401, 'unauthenticated'],
      ['with a bad token', { as: 'nobody' }, 401, 'unauthenticated'],
      ['without a version', { version: null }, 426, 'unsupported_protocol_version'],
      ['with a wrong version', { version: 'other' }, 426, 'unsupported_protocol_version'],
      [
        'with a wrong version as subprotocol',
        { version: null, protocols: ['harn.agents-protocol-1900-01-01'] },
        426,
        'unsupported_protocol_version',
      ],
    ] as const,
    ([what]) => `${what} there is no upgrade, and the refusal is the usual one`,
    async ([, asking, status, code], at) => {
      const { id } = await at.done('hello');
      const answer = await refusedUpgrade(at, `/v1/tasks/${id}/stream`, asking);
      equal([answer.status, answer.body?.error?.code], [status, code], 'status and code');
    },
  ),
  async 'a task that is not there is 404 before the upgrade'(at) {
    const answer = await refusedUpgrade(at, '/v1/tasks/task_absent/stream');
    equal([answer.status, answer.body?.error?.code], [404, 'resource_not_found'], 'status and code');
  },
  async 'another tenant’s task is 404 before the upgrade'(at) {
    if (!at.outsider) at.lacking('no key of another tenant was given');
    const { id } = await at.done('hello');
    equal((await refusedUpgrade(at, `/v1/tasks/${id}/stream`, { as: at.outsider })).status, 404, 'status');
  },
  async 'a message can be appended'(at) {
    await onSession(at, async (socket, session) => {
      socket.send({ type: 'message.append', id: 'c1', session_id: session, message: said('by socket') });
      const answer = (await socket.until(answerTo('c1'))).at(-1);
      equal([answer?.type, answer?.status], ['result', 201], 'the answer');
      const made = answer?.body as Message;
      equal((await at.ok<Message>('GET', `/v1/messages/${made.id}`)).parts, made.parts, 'the message by REST');
    });
  },
  async 'a task can be given, followed and stopped'(at) {
    await onSession(at, async (socket, session) => {
      socket.send({ type: 'task.submit', id: 'c1', session_id: session, input: said('wait 500') });
      const task = (await socket.until(answerTo('c1'))).at(-1)!.body as Task;
      socket.send({ type: 'task.cancel', id: 'c2', task_id: task.id, reason: 'enough' });
      const answer = (await socket.until(answerTo('c2'))).at(-1)!;
      equal([answer.status, (answer.body as Task).status], [200, 'CANCELED'], 'the answer');
      equal((await at.task(task.id)).status, 'CANCELED', 'by REST');
    });
  },
  async 'a session can be cut back'(at) {
    await onSession(at, async (socket, session) => {
      socket.send({ type: 'session.truncate', id: 'c1', session_id: session, keep_first: 0 });
      const answer = (await socket.until(answerTo('c1'))).at(-1);
      equal([answer?.type, answer?.status], ['result', 200], 'the answer');
      equal(await at.messages(session), [], 'messages');
    });
  },
  async 'commands keep their idempotency keys, shared with REST'(at) {
    await onSession(at, async (socket, session) => {
      const key = unique('socket');
      const command = { type: 'task.submit', session_id: session, input: said('hello'), idempotency_key: key };
      socket.send({ ...command, id: 'c1' });
      const first = (await socket.until(answerTo('c1'))).at(-1)!.body as Task;
      socket.send({ ...command, id: 'c2' });
      equal(((await socket.until(answerTo('c2'))).at(-1)!.body as Task).id, first.id, 'the second by socket');
      equal((await at.submit('hello', session, { once: key })).id, first.id, 'the third by REST');
      socket.send({ ...command, id: 'c3', input: said('another') });
      const reused = (await socket.until(answerTo('c3'))).at(-1);
      equal([reused?.status, reused?.error?.code], [409, 'idempotency_key_reused'], 'another body');
    });
  },
  ...each(
    [
      ['an unknown command', { type: 'dance', id: 'c1' }, 'invalid_request'],
      ['a command without its body', { type: 'message.append', id: 'c1' }, 'invalid_request'],
      [
        'an absent session',
        { type: 'message.append', id: 'c1', session_id: 'session_absent', message: said('x') },
        'resource_not_found',
      ],
      ['an absent task', { type: 'task.cancel', id: 'c1', task_id: 'task_absent' }, 'resource_not_found'],
    ] as const,
    ([what]) => `${what} is an error frame with the REST error, and the socket stays open`,
    async ([, frame, code], at) => {
      await onSession(at, async (socket) => {
        socket.send(frame);
        const error = (await socket.until(({ type }) => type === 'error')).at(-1);
        equal([error?.id, error?.error?.code], ['c1', code], 'id and code');
        truth(error?.error?.message && error.error.type, 'the error is not whole');
        socket.send({ type: 'ping', t: 7 });
        equal((await socket.until(({ type }) => type === 'pong')).at(-1)?.t, 7, 'the pong');
      });
    },
  ),
  ...each(
    ['{', '7', '[]', '"x"', '{"id":"c1"}'],
    (text) => `the frame ${text} is an error frame`,
    async (text, at) => {
      await onSession(at, async (socket) => {
        socket.raw(text);
        equal((await socket.until(({ type }) => type === 'error')).at(-1)?.error?.code, 'invalid_request', 'code');
      });
    },
  ),
  async 'a binary frame closes the socket with 1003'(at) {
    await onSession(at, async (socket) => {
      socket.raw(Buffer.from('{}'));
      equal(await socket.closed, 1003, 'the close code');
    });
  },
  async 'a ping is answered'(at) {
    await onSession(at, async (socket) => {
      socket.send({ type: 'ping', t: 'now' });
      equal((await socket.until(({ type }) => type === 'pong')).at(-1)?.t, 'now', 'the pong');
    });
  },
  async 'a question is put to the client that listens, and can be answered there'(at) {
    await onSession(at, async (socket, session) => {
      const { id } = await at.submit('ask which colour?', session);
      const request = (await socket.until(({ type }) => type === 'request')).at(-1);
      equal([request?.kind, request?.task_id], ['input', id], 'kind and task');
      socket.send({ type: 'response', id: 'c1', request_id: request?.request_id, answer: 'blue' });
      equal((await socket.until(answerTo('c1'))).at(-1)?.status, 200, 'the answer');
      equal((await at.ended(id)).status, 'COMPLETED', 'the task');
    });
  },
  async 'an approval is put to the client that listens, and can be refused there'(at) {
    await onSession(at, async (socket, session) => {
      const { id } = await at.submit('send the plan to bo', session);
      const request = (await socket.until(({ type }) => type === 'request')).at(-1);
      truth(request?.kind === 'approval' || request?.kind === 'authorization', `kind is ${request?.kind}`);
      socket.send({ type: 'response', id: 'c1', request_id: request?.request_id, approved: false, reason: 'no' });
      equal((await socket.until(answerTo('c1'))).at(-1)?.status, 200, 'the answer');
      await at.ended(id);
      const kinds = (await at.events(`/v1/tasks/${id}/events`)).map(({ event }) => event);
      truth(!kinds.includes('tool.completed'), 'the tool ran');
    });
  },
  async 'an open question is put again to the client that comes back'(at) {
    const { id } = await at.submit('ask which colour?');
    await at.reaches(id, 'INPUT_REQUIRED');
    const socket = await openSocket(at, `/v1/tasks/${id}/stream`);
    const request = (await socket.until(({ type }) => type === 'request')).at(-1);
    equal(request?.replayed, true, 'replayed');
    socket.close();
    const again = await openSocket(at, `/v1/tasks/${id}/stream`);
    equal(
      (await again.until(({ type }) => type === 'request')).at(-1)?.request_id,
      request?.request_id,
      'the question',
    );
    again.send({ type: 'task.message', id: 'c1', task_id: id, kind: 'input', message: said('red') });
    equal((await again.until(answerTo('c1'))).at(-1)?.status, 201, 'the answer');
    again.close();
    equal((await at.ended(id)).status, 'COMPLETED', 'the task');
  },
  async 'scopes hold on a socket as they do elsewhere'(at) {
    const { id } = await at.session();
    const { key: as } = await at.mine().issue({ id: unique('reader'), scopes: ['events:read', 'others:read'] });
    const socket = await openSocket(at, `/v1/sessions/${id}/events/stream`, { as });
    socket.send({ type: 'message.append', id: 'c1', session_id: id, message: said('x') });
    const answer = (await socket.until(answerTo('c1'))).at(-1);
    socket.close();
    equal([answer?.status, answer?.error?.code], [403, 'permission_denied'], 'status and code');
  },
  async 'an upgrade nobody serves is refused'(at) {
    const answer = await refusedUpgrade(at, '/v1/tasks');
    equal(answer.status, 404, 'status');
  },
  async 'a page of another origin cannot open a socket'(at) {
    const { id } = await at.done('hello');
    const answer = await refusedUpgrade(at, `/v1/tasks/${id}/stream`, { headers: { origin: 'https://evil.example' } });
    equal(answer.status, 403, 'status');
  },
  async 'socket, stream and list tell the same'(at) {
    const { id } = await at.done('hello then read plan');
    const socket = await openSocket(at, `/v1/tasks/${id}/stream`);
    const reported = (await socket.until(isEvent('task.completed'))).filter(({ type }) => type === 'event');
    socket.close();
    equal(
      reported.map(({ event }) => event),
      await at.events(`/v1/tasks/${id}/events`),
      'the events',
    );
  },
});
