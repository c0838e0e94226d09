/** A task from its first state to its last: legal steps, one event each, one end, and nothing after it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { Outcome, Session, Task } from '../../../../src/model/resources.ts';
import { among, equal, truth } from '../harness/expect.ts';
import type { Revision } from '../harness/revision.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target, TERMINAL } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

const NEXT: Readonly<Record<string, readonly string[]>> = {
  SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
  WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
  INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
  AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
};
const EVENT_OF: Readonly<Record<string, string>> = {
  SUBMITTED: 'task.submitted',
  WORKING: 'task.started',
  INPUT_REQUIRED: 'task.input_required',
  AUTH_REQUIRED: 'task.auth_required',
  COMPLETED: 'task.completed',
  FAILED: 'task.failed',
  CANCELED: 'task.canceled',
};

/** The states its events tell of, one after the other, each checked against the one before. */
async function reported(at: Target, task: string): Promise<string[]> {
  const states: string[] = [];
  for (const { event, payload } of await at.events(`/v1/tasks/${task}/events`)) {
    if (
      !/^task\.(submitted|started|input_required|auth_required|status_changed|completed|failed|canceled)$/.test(event)
    ) {
      continue;
    }
    const to = String(payload.to);
    const from = states.at(-1);
    if (from === undefined) equal(to, 'SUBMITTED', 'the first state');
    else truth(NEXT[from]?.includes(to), `${from} is followed by ${to}`);
    if (payload.from !== undefined) equal(payload.from ?? null, from ?? null, `from, on the way to ${to}`);
    const named = EVENT_OF[to];
    if (event !== 'task.status_changed') equal(event, named, `the event for ${to}`);
    states.push(to);
  }
  return states;
}

const ended = (events: readonly CoreEvent[]) =>
  events.filter(({ event }) => /^task\.(completed|failed|canceled)$/.test(event));

export const lifecycle = ({ taskMessages }: Revision) =>
  category('lifecycle-beyond', {
    async 'completed: states, times, outcome and receipt'(at) {
      const task = await at.done('hello');
      equal(task.status, 'COMPLETED', 'status');
      equal(await reported(at, task.id), ['SUBMITTED', 'WORKING', 'COMPLETED'], 'states');
      truth(task.started_at && task.completed_at, 'started_at and completed_at are set');
      equal([task.canceled_at ?? null, task.failure ?? null], [null, null], 'canceled_at, failure');
      truth(task.outcome_id && task.receipt_id, 'outcome_id and receipt_id are set');
    },
    async 'failed: the failure is there, and no completion time'(at) {
      const task = await at.done('fail out_of_paper');
      if (task.status !== 'FAILED') at.lacking(`the task ended as ${task.status}`);
      equal(await reported(at, task.id), ['SUBMITTED', 'WORKING', 'FAILED'], 'states');
      truth(task.failure?.code && task.failure.message, 'failure has a code and a message');
      equal([task.completed_at ?? null, task.canceled_at ?? null], [null, null], 'completed_at, canceled_at');
    },
    async 'canceled: the time is there, and no completion time'(at) {
      const { id } = await at.submit('wait 500');
      await at.reaches(id, 'WORKING');
      const answer = await at.ok<Task>('POST', `/v1/tasks/${id}/cancel`, { body: { reason: 'enough' } });
      equal(answer.status, 'CANCELED', 'the answer to the cancel');
      const task = await at.task(id);
      equal(await reported(at, id), ['SUBMITTED', 'WORKING', 'CANCELED'], 'states');
      truth(task.canceled_at, 'canceled_at is set');
      equal([task.completed_at ?? null, task.failure ?? null], [null, null], 'completed_at, failure');
    },
    ...each(
      [
        ['hello', 'SUCCEEDED'],
        ['fail now', 'FAILED'],
        ['wait 500', 'CANCELED'],
      ] as const,
      ([words, status]) => `"${words}" has exactly one outcome, ${status}`,
      async ([words, status], at) => {
        const { id } = await at.submit(words);
        if (status === 'CANCELED') await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
        const task = await at.ended(id);
        const { data } = await at.ok<List<Outcome>>('GET', `/v1/outcomes?task_id=${id}`);
        equal(data.length, 1, 'outcomes');
        const one = await at.ok<Outcome>('GET', `/v1/outcomes/${task.outcome_id}`);
        equal([one.status, one.task_id, one.receipt_id], [status, id, task.receipt_id], 'status, task and receipt');
        equal(typeof one.summary, 'string', 'summary');
      },
    ),
    async 'there is one end, and it is the last event'(at) {
      for (const words of ['hello', 'fail now', 'artifact']) {
        const { id } = await at.done(words);
        const events = await at.events(`/v1/tasks/${id}/events`);
        equal(ended(events).length, 1, `ends of "${words}"`);
        equal(ended(events)[0]?.id, events.at(-1)?.id, `the last event of "${words}"`);
      }
    },
    async 'nothing replaces a cancel'(at) {
      const { id } = await at.submit('wait 10');
      await at.reaches(id, 'WORKING');
      await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
      const before = await at.events(`/v1/tasks/${id}/events`);
      await sleep(1500);
      equal((await at.task(id)).status, 'CANCELED', 'status after the work would have been done');
      equal((await at.events(`/v1/tasks/${id}/events`)).length, before.length, 'events after the end');
    },
    async 'a cancel of what is canceled is 200 and changes nothing'(at) {
      const { id } = await at.submit('wait 500');
      const first = await at.ok<Task>('POST', `/v1/tasks/${id}/cancel`, { body: {} });
      const second = await at.ok<Task>('POST', `/v1/tasks/${id}/cancel`, { body: { reason: 'again' } });
      equal(second, first, 'the second answer');
    },
    ...each(
      ['hello', 'fail now'],
      (words) => `a cancel after "${words}" has ended is 409`,
      async (words, at) => {
        await at.refused('conflict', 'POST', `/v1/tasks/${(await at.done(words)).id}/cancel`, { body: {} });
      },
    ),
    ...each(
      taskMessages,
      (kind) => `a message of kind ${kind} to an ended task is 409`,
      async (kind, at) => {
        const { id } = await at.done('hello');
        await at.refused('conflict', 'POST', `/v1/tasks/${id}/messages`, { body: { kind, message: said('late') } });
      },
    ),
    async 'a message of an unknown kind is 400'(at) {
      const { id } = await at.done('hello');
      await at.refused('invalid_request', 'POST', `/v1/tasks/${id}/messages`, {
        body: { kind: 'shout', message: said('x') },
      });
    },
    async 'a message steers a running task'(at) {
      const { id } = await at.submit('wait 300');
      await at.reaches(id, 'WORKING');
      await at.ok('POST', `/v1/tasks/${id}/messages`, { body: { kind: at.revision.steering, message: said('stop') } });
      const task = await at.ended(id);
      if (task.status !== 'COMPLETED') at.lacking(`the task ended as ${task.status}`);
      const events = await at.events(`/v1/tasks/${id}/events`);
      truth(
        events.some(({ event }) => event === 'user.message'),
        'the message is not in the log',
      );
    },
    async 'a busy session queues, in the order things were asked for'(at) {
      const session = await at.session();
      const tasks: Task[] = [];
      for (const words of ['wait 3', 'hello', 'read plan']) tasks.push(await at.submit(words, session.id));
      for (const task of tasks) await at.ended(task.id);
      const starts = (await at.events(`/v1/sessions/${session.id}/events`))
        .filter(({ event }) => event === 'task.started')
        .map(({ task_id }) => task_id);
      equal(
        starts,
        tasks.map(({ id }) => id),
        'the order of starts',
      );
      for (const task of tasks) await reported(at, task.id);
    },
    async 'a quick task behind another is never seen to skip WORKING'(at) {
      const session = await at.session();
      await at.submit('wait 2', session.id);
      const seen = [(await at.submit('hello', session.id)).status];
      const [{ id }] = (await at.ok<List<Task>>('GET', `/v1/sessions/${session.id}/tasks`)).data.slice(-1) as [Task];
      while (!TERMINAL.includes(seen.at(-1)!)) {
        await sleep(250);
        const { status } = await at.task(id);
        if (status !== seen.at(-1))
          truth(NEXT[seen.at(-1)!]?.includes(status), `${seen.at(-1)} was followed by ${status}`);
        seen.push(status);
      }
    },
    async 'a queued task can be canceled before it starts'(at) {
      const session = await at.session();
      const busy = await at.submit('wait 500', session.id);
      const queued = await at.submit('hello', session.id);
      const answer = await at.ok<Task>('POST', `/v1/tasks/${queued.id}/cancel`, { body: {} });
      equal(answer.status, 'CANCELED', 'status');
      among((await reported(at, queued.id)).join(), ['SUBMITTED,CANCELED', 'SUBMITTED,WORKING,CANCELED'], 'states');
      truth((await at.task(queued.id)).receipt_id, 'it has a receipt all the same');
      await at.ok('POST', `/v1/tasks/${busy.id}/cancel`, { body: {} });
    },
    async 'a session is ACTIVE while it works and IDLE when it does not'(at) {
      const session = await at.session();
      const state = async () => (await at.ok<Session>('GET', `/v1/sessions/${session.id}`)).state;
      equal(await state(), 'IDLE', 'before');
      const { id } = await at.submit('wait 500', session.id);
      equal(await state(), 'ACTIVE', 'during');
      await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
      equal(await state(), 'IDLE', 'after');
    },
    async 'an input that is no message is kept as it is'(at) {
      const session = await at.session();
      const input = { text: 'hello', any: { thing: [1, 2] } };
      const task = await at.ok<Task>('POST', `/v1/sessions/${session.id}/tasks`, { body: { input } });
      equal(task.input, input, 'input');
      equal((await at.ended(task.id)).status, 'COMPLETED', 'status');
    },
    async 'a half message is 400'(at) {
      const { id } = await at.session();
      for (const input of [{ role: 'nobody', parts: [] }, { role: 'user', parts: [{ type: 'text' }] }, 'hello', 7]) {
        await at.refused('invalid_request', 'POST', `/v1/sessions/${id}/tasks`, { body: { input } });
      }
    },
    async 'the other path wants to know the session'(at) {
      await at.refused('invalid_request', 'POST', '/v1/tasks', { body: { input: said('hello') } });
      const session = await at.session();
      const task = await at.ok<Task>('POST', '/v1/tasks', { body: { session_id: session.id, input: said('hello') } });
      equal([task.session_id, task.workspace_id], [session.id, session.workspace_id], 'session and workspace');
    },
    async 'a parent task is remembered'(at) {
      const parent = await at.done('hello');
      const { id } = await at.submit('hello', parent.session_id, { with: { parent_task_id: parent.id } });
      equal((await at.task(id)).parent_task_id, parent.id, 'parent_task_id');
    },
    async 'metadata comes back as it went in'(at) {
      const metadata = { ticket: 'T-1', nested: { list: [1, 'two', null] } };
      const { id } = await at.submit('hello', undefined, { with: { metadata } });
      const task = await at.task(id);
      equal({ ticket: task.metadata.ticket, nested: task.metadata.nested }, metadata, 'metadata');
    },
  });
