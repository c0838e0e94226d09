/** After the process was killed: what was accepted is there, in a state the protocol allows, and is brought to an end. */
import type { Session, Task } from '../../../../src/model/resources.ts';
import { among, equal, truth } from '../harness/expect.ts';
import { category } from '../harness/suite.ts';
import { said } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

export const recovery = category('recovery', {
  async 'a running task comes back and ends, exactly once'(at) {
    const own = at.mine();
    const { id } = await at.submit('wait 20');
    await at.reaches(id, 'WORKING');
    await own.crash();
    among(
      (await at.task(id)).status,
      ['SUBMITTED', 'WORKING', 'FAILED', 'CANCELED', 'COMPLETED'],
      'status after the restart',
    );
    const task = await at.ended(id);
    const ends = (await at.events(`/v1/tasks/${id}/events`)).filter(({ event }) =>
      /^task\.(completed|failed|canceled)$/.test(event),
    );
    equal(ends.length, 1, 'ends');
    truth(task.receipt_id && task.outcome_id, 'it has no receipt or no outcome');
  },
  async 'a question outlives the process, and its answer still counts'(at) {
    const own = at.mine();
    const { id } = await at.submit('ask which colour?');
    await at.reaches(id, 'INPUT_REQUIRED');
    const open = async () =>
      (await at.ok<List<{ id: string; status: string }>>('GET', `/v1/tasks/${id}/permission-requests`)).data;
    const [before] = await open();
    await own.crash();
    await at.reaches(id, 'INPUT_REQUIRED');
    const [after] = await open();
    equal([after?.id, after?.status], [before?.id, 'pending'], 'the question');
    await at.ok('POST', `/v1/permission-requests/${after?.id}/respond`, { body: { answer: 'blue' } });
    equal((await at.ended(id)).status, 'COMPLETED', 'status');
  },
  async 'an approval outlives the process, and the act happens once'(at) {
    const own = at.mine();
    const before = (await own.effects()).length;
    const { id } = await at.submit('send the plan to bo');
    await at.reaches(id, 'AUTH_REQUIRED');
    await own.crash();
    await at.reaches(id, 'AUTH_REQUIRED');
    const { data } = await at.ok<List<{ id: string }>>('GET', `/v1/tasks/${id}/permission-requests`);
    await at.ok('POST', `/v1/permission-requests/${data[0]?.id}/respond`, { body: { approved: true } });
    equal((await at.ended(id)).status, 'COMPLETED', 'status');
    equal((await own.effects()).length, before + 1, 'effects');
  },
  async 'queued tasks are not lost'(at) {
    const own = at.mine();
    const session = await at.session();
    const tasks: Task[] = [];
    for (const words of ['wait 5', 'hello', 'read plan']) tasks.push(await at.submit(words, session.id));
    await own.crash();
    for (const { id } of tasks) await at.ended(id);
    for (const { id } of tasks.slice(1)) equal((await at.task(id)).status, 'COMPLETED', `status of ${id}`);
  },
  async 'everything written is there: sessions, messages, workspaces'(at) {
    const own = at.mine();
    const session = await at.session({ initial_messages: [said('a'), said('b')] });
    const before = [await at.messages(session.id), await at.ok<Session>('GET', `/v1/sessions/${session.id}`)];
    await own.crash();
    equal(
      [await at.messages(session.id), await at.ok<Session>('GET', `/v1/sessions/${session.id}`)],
      before,
      'what is there',
    );
  },
  async 'ids are never given twice'(at) {
    const own = at.mine();
    const first = await at.done('hello');
    await own.crash();
    const second = await at.done('hello');
    truth(second.id !== first.id, 'an id came again');
    const last = (await at.events(`/v1/tasks/${first.id}/events`)).at(-1)?.id ?? '';
    const next = (await at.events(`/v1/tasks/${second.id}/events`))[0]?.id ?? '';
    truth(next > last, 'event ids went back');
  },
});
