/** Tools that the other end of a socket runs for a task: asked for after they are decided on, and again after a hang-up. */
import type { Task } from '../../../../src/model/resources.ts';
import { equal, truth } from '../harness/expect.ts';
import { type OpenSocket, openSocket, type SocketFrame } from '../harness/socket.ts';
import { category } from '../harness/suite.ts';
import type { Target } from '../harness/target.ts';

const answerTo = (id: string) => (frame: SocketFrame) =>
  frame.id === id && (frame.type === 'result' || frame.type === 'error');

async function hosting(at: Target, session: string): Promise<OpenSocket> {
  const socket = await openSocket(at, `/v1/sessions/${session}/events/stream`);
  socket.send({ type: 'tools.offer', id: 'offer', tools: [{ name: 'clipboard', description: 'copies a text' }] });
  const said = (await socket.until(answerTo('offer'))).at(-1);
  if (said?.type === 'error') {
    socket.close();
    at.lacking('hosts cannot offer tools here');
  }
  return socket;
}

/** The request for the tool, after the approver has said yes where a yes is needed. */
async function asked(socket: OpenSocket): Promise<SocketFrame> {
  for (let count = 0; ; count += 1) {
    const request = (await socket.until(({ type }) => type === 'request')).at(-1)!;
    if (request.kind === 'tool') return request;
    socket.send({ type: 'response', id: `yes${count}`, request_id: request.request_id, approved: true });
  }
}

async function used(at: Target, session: string): Promise<Task> {
  const task = await at.submit('use clipboard some words', session);
  truth(task.id, 'there is no task');
  return task;
}

export const hosts = category('host-tools', {
  async 'a host is asked for the tool it offered, and its answer is the result'(at) {
    const session = (await at.session()).id;
    const socket = await hosting(at, session);
    try {
      const { id } = await used(at, session);
      const request = await asked(socket);
      equal([request.task_id, request.replayed], [id, false], 'task and replayed');
      socket.send({ type: 'response', id: 'c1', request_id: request.request_id, answer: 'copied' });
      equal((await socket.until(answerTo('c1'))).at(-1)?.status, 200, 'the answer');
      await at.ended(id);
      const events = await at.events(`/v1/tasks/${id}/events`);
      const kinds = events.map(({ event }) => event);
      truth(kinds.indexOf('tool.requested') >= 0, 'the request is not in the log');
      const done = events.find(({ event }) => event === 'tool.completed');
      equal(done?.payload.output, 'copied', 'the output');
    } finally {
      socket.close();
    }
  },
  async 'a second answer to the same request is a conflict'(at) {
    const session = (await at.session()).id;
    const socket = await hosting(at, session);
    try {
      const { id } = await used(at, session);
      const { request_id } = await asked(socket);
      socket.send({ type: 'response', id: 'c1', request_id, answer: 1 });
      socket.send({ type: 'response', id: 'c2', request_id, answer: 2 });
      equal((await socket.until(answerTo('c2'))).at(-1)?.error?.code, 'conflict', 'the second answer');
      await at.ended(id);
    } finally {
      socket.close();
    }
  },
  async 'a host that comes back is asked again under the same id'(at) {
    const session = (await at.session()).id;
    const first = await hosting(at, session);
    const { id } = await used(at, session);
    const { request_id } = await asked(first);
    first.close();
    await first.closed;
    const second = await hosting(at, session);
    try {
      const again = await asked(second);
      equal([again.request_id, again.replayed], [request_id, true], 'id and replayed');
      second.send({ type: 'response', id: 'c1', request_id, approved: false, reason: 'not any more' });
      await at.ended(id);
      const failed = (await at.events(`/v1/tasks/${id}/events`)).find(({ event }) => event === 'tool.failed');
      equal(failed?.payload.error, 'not any more', 'the reason');
    } finally {
      second.close();
    }
  },
  async 'a tool offered in one session is not there in another'(at) {
    const session = (await at.session()).id;
    const socket = await hosting(at, session);
    try {
      const { id } = await at.submit('use clipboard some words');
      await at.ended(id);
      const kinds = (await at.events(`/v1/tasks/${id}/events`)).map(({ event }) => event);
      truth(!kinds.includes('tool.completed'), 'the tool ran');
    } finally {
      socket.close();
    }
  },
});
