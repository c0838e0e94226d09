/**
 * What only `agents-protocol-2026-04-25` has: a message to a task may confirm or refuse an act, `input` answers and does nothing
 * else, and messages take idempotency keys, by REST and by socket alike.
 */
import type { Message } from '../../../src/model/resources.ts';
import { among, equal, truth } from './harness/expect.ts';
import { openSocket } from './harness/socket.ts';
import { category } from './harness/suite.ts';
import { said, unique } from './harness/target.ts';
import { approval, kinds } from './tasks/asks.ts';

const confirmation = (value: object) => ({
  kind: 'tool_confirmation',
  message: { role: 'user', parts: [{ type: 'json', value, visibility: 'public' }] },
});

export const firstRevision = category('first-revision', {
  async 'approval: asked, confirmed by a task message, done'(at) {
    const { task, request } = await approval(at);
    const body = confirmation({ request_id: request.id, approved: true });
    await at.ok('POST', `/v1/tasks/${task.id}/messages`, { body });
    equal((await at.ended(task.id)).status, 'COMPLETED', 'status');
    const reported = await kinds(at, task.id);
    for (const kind of ['tool.approval_required', 'task.auth_required', 'user.tool_confirmation', 'tool.approved']) {
      truth(reported.includes(kind), `there is no ${kind}`);
    }
    truth(reported.indexOf('tool.approved') < reported.indexOf('tool.completed'), 'it ran before it was approved');
  },
  async 'approval: refused by a task message, not done, and the work goes on'(at) {
    const { task, request } = await approval(at);
    const body = confirmation({ request_id: request.id, approved: false, reason: 'not finished' });
    await at.ok('POST', `/v1/tasks/${task.id}/messages`, { body });
    equal((await at.ended(task.id)).status, 'COMPLETED', 'status');
    const reported = await kinds(at, task.id);
    truth(reported.includes('tool.denied'), 'there is no tool.denied');
    truth(!reported.includes('tool.completed'), 'the tool ran');
  },
  async 'an answer nobody asked for is refused'(at) {
    const { id } = await at.submit('wait 30');
    const asked = await at.ask<{ error: { code: string } }>('POST', `/v1/tasks/${id}/messages`, {
      body: { kind: 'input', message: said('blue') },
    });
    among(asked.body.error?.code, ['conflict', 'invalid_state_transition'], 'error.code');
    await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
  },
  async 'a repeated message is in the transcript once'(at) {
    const { id } = await at.session();
    const key = unique('once');
    for (let count = 0; count < 3; count += 1) {
      await at.ok('POST', `/v1/sessions/${id}/messages`, { body: { message: said('once') }, once: key });
    }
    equal((await at.messages(id)).length, 1, 'messages');
  },
  async 'a message with a key by socket and by REST is one'(at) {
    const { id } = await at.session();
    const socket = await openSocket(at, `/v1/sessions/${id}/events/stream`);
    try {
      const key = unique('socket');
      socket.send({ type: 'message.append', id: 'c1', session_id: id, message: said('once'), idempotency_key: key });
      const first = (await socket.until((frame) => frame.id === 'c1')).at(-1)?.body as Message;
      const asking = { body: { message: said('once') }, once: key };
      equal((await at.ok<Message>('POST', `/v1/sessions/${id}/messages`, asking)).id, first.id, 'by REST');
    } finally {
      socket.close();
    }
  },
  async 'a key is still known for a message after the process was killed'(at) {
    const { id } = await at.session();
    const asking = { body: { message: said('once') }, once: unique('once') };
    const first = await at.ok<Message>('POST', `/v1/sessions/${id}/messages`, asking);
    await at.mine().crash();
    equal((await at.ok<Message>('POST', `/v1/sessions/${id}/messages`, asking)).id, first.id, 'the message');
  },
});
