/** Questions: an agent that needs a word or a yes waits for it, visibly, and goes on with exactly what it was given. */
import type { Task } from '../../../../src/model/resources.ts';
import { equal, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

export interface PermissionRequest {
  readonly id: string;
  readonly object: string;
  readonly status: string;
  readonly source: string;
  readonly task_id: string;
  readonly session_id: string;
  readonly request: { readonly kind?: string; readonly question?: string };
  readonly response: { readonly answer?: unknown; readonly answered_by?: string } | null;
}

async function asks(at: Target, words: string, state: string): Promise<{ task: Task; request: PermissionRequest }> {
  const { id } = await at.submit(words);
  const task = await at.reaches(id, state);
  const { data } = await at.made<List<PermissionRequest>>('GET', `/v1/tasks/${id}/permission-requests`);
  equal(data.length, 1, 'permission requests');
  return { task, request: data[0]! };
}

const input = (at: Target) => asks(at, 'ask which colour?', 'INPUT_REQUIRED');
export const approval = (at: Target) => asks(at, 'send the plan to bo', 'AUTH_REQUIRED');

export const respond = (at: Target, { id }: PermissionRequest, body: object) =>
  at.ok<PermissionRequest>('POST', `/v1/permission-requests/${id}/respond`, { body });

export async function kinds(at: Target, task: string): Promise<string[]> {
  return (await at.events(`/v1/tasks/${task}/events`)).map(({ event }) => event);
}

async function answersWith(at: Target, task: string, words: string): Promise<void> {
  const { status, session_id } = await at.ended(task);
  equal(status, 'COMPLETED', 'status');
  const last = (await at.messages(session_id)).at(-1);
  truth(JSON.stringify(last).includes(words), `the last message is ${JSON.stringify(last?.parts)}`);
}

export const asking = category('asks', {
  async 'input: asked, answered by a task message, gone on with'(at) {
    const { task } = await input(at);
    await at.ok('POST', `/v1/tasks/${task.id}/messages`, { body: { kind: 'input', message: said('blue') } });
    await answersWith(at, task.id, 'blue');
    const reported = await kinds(at, task.id);
    for (const kind of ['task.input_required', 'user.input_submitted', 'task.completed']) {
      truth(reported.includes(kind), `there is no ${kind}`);
    }
  },
  async 'input: answered at the permission request'(at) {
    const { task, request } = await input(at);
    const answered = await respond(at, request, { answer: 'green' });
    equal(answered.status, 'approved', 'status of the request');
    await answersWith(at, task.id, 'green');
  },
  async 'input: canceled while it waits'(at) {
    const { task, request } = await input(at);
    equal((await at.ok<Task>('POST', `/v1/tasks/${task.id}/cancel`, { body: {} })).status, 'CANCELED', 'status');
    const after = await at.ok<PermissionRequest>('GET', `/v1/permission-requests/${request.id}`);
    equal(after.status, 'denied', 'the question after the cancel');
  },
  async 'approval: asked, approved, done, in this order'(at) {
    const { task, request } = await approval(at);
    await respond(at, request, { approved: true });
    equal((await at.ended(task.id)).status, 'COMPLETED', 'status');
    const reported = await kinds(at, task.id);
    for (const kind of ['tool.approval_required', 'task.auth_required', 'user.tool_confirmation', 'tool.approved']) {
      truth(reported.includes(kind), `there is no ${kind}`);
    }
    truth(reported.indexOf('tool.approved') < reported.indexOf('tool.completed'), 'it ran before it was approved');
  },
  ...each(
    [
      [{ approved: true }, 'approved'],
      [{ outcome: 'approved' }, 'approved'],
      [{ outcome: 'approve' }, 'approved'],
      [{ outcome: 'selected' }, 'approved'],
      [{ approved: false, reason: 'no' }, 'denied'],
      [{ outcome: 'denied' }, 'denied'],
      [{ outcome: 'deny' }, 'denied'],
      [{ outcome: 'rejected' }, 'denied'],
    ] as const,
    ([body]) => `approval: the response ${JSON.stringify(body)}`,
    async ([body, status], at) => {
      const { task, request } = await approval(at);
      equal((await respond(at, request, body)).status, status, 'status of the request');
      await at.ended(task.id);
      equal((await kinds(at, task.id)).includes('tool.completed'), status === 'approved', 'whether the tool ran');
    },
  ),
  ...each(
    [{}, { reason: 'because' }, { outcome: 'perhaps' }, { approved: 'yes' }, { approved: true, outcome: 'denied' }],
    (body) => `approval: the response ${JSON.stringify(body)} is 400 and answers nothing`,
    async (body, at) => {
      const { task, request } = await approval(at);
      await at.refused('invalid_request', 'POST', `/v1/permission-requests/${request.id}/respond`, { body });
      equal((await at.task(task.id)).status, 'AUTH_REQUIRED', 'the task');
      await at.ok('POST', `/v1/tasks/${task.id}/cancel`, { body: {} });
    },
  ),
  async 'the first answer wins'(at) {
    const { task, request } = await approval(at);
    await respond(at, request, { approved: false });
    await at.refused('conflict', 'POST', `/v1/permission-requests/${request.id}/respond`, { body: { approved: true } });
    await at.ended(task.id);
    truth(!(await kinds(at, task.id)).includes('tool.completed'), 'the second answer counted');
  },
  async 'two answers at once: one wins, one hears of it'(at) {
    const { task, request } = await approval(at);
    const path = `/v1/permission-requests/${request.id}/respond`;
    const both = await Promise.all([true, false].map((approved) => at.ask('POST', path, { body: { approved } })));
    equal(both.map(({ status }) => status).toSorted(), [200, 409], 'the two statuses');
    await at.ended(task.id);
  },
  async 'an approved act happens once'(at) {
    const before = (await at.mine().effects()).length;
    const { task, request } = await approval(at);
    equal((await at.mine().effects()).length, before, 'effects before the answer');
    await respond(at, request, { approved: true });
    await at.ended(task.id);
    equal((await at.mine().effects()).length, before + 1, 'effects after the answer');
  },
  async 'a refused act does not happen'(at) {
    const before = (await at.mine().effects()).length;
    const { task, request } = await approval(at);
    await respond(at, request, { approved: false });
    await at.ended(task.id);
    equal((await at.mine().effects()).length, before, 'effects');
  },
  async 'a permission request says what is asked and by whom'(at) {
    const { task, request } = await approval(at);
    equal(
      [request.object, request.status, request.task_id, request.session_id],
      ['permission_request', 'pending', task.id, task.session_id],
      'object, status, task and session',
    );
    truth(request.source === 'acp' || request.source === 'hitl', `source is ${request.source}`);
    truth(JSON.stringify(request).includes('send_mail'), 'the tool is not named');
    await respond(at, request, { approved: false });
    await at.ended(task.id);
  },
  async 'open questions are listed; answered ones say so'(at) {
    const { task, request } = await input(at);
    const find = async (query: string) => {
      const { data } = await at.ok<List<PermissionRequest>>('GET', `/v1/permission-requests?limit=200&${query}`);
      return data.find(({ id }) => id === request.id);
    };
    truth(await find(`task_id=${task.id}`), 'not in the list of its task');
    truth(await find(`session_id=${task.session_id}`), 'not in the list of its session');
    await respond(at, request, { answer: 'blue' });
    await at.ended(task.id);
    equal((await find(`task_id=${task.id}`))?.status, 'approved', 'status in the list');
  },
  async 'who answered is who authenticated, whatever the body says'(at) {
    const { task, request } = await approval(at);
    const answered = await respond(at, request, { approved: true, reviewer: 'the-queen' });
    truth(answered.response?.answered_by !== 'the-queen', 'a claimed reviewer was believed');
    await at.ended(task.id);
  },
  async 'a task that waits is shown waiting to everyone who looks'(at) {
    const { task, request } = await input(at);
    const listed = await at.ok<List<Task>>('GET', `/v1/tasks?session_id=${task.session_id}`);
    equal(listed.data[0]?.status, 'INPUT_REQUIRED', 'in the list');
    equal((await at.events(`/v1/tasks/${task.id}/events`)).at(-1)?.task_id, task.id, 'the last event');
    await respond(at, request, { answer: 'x' });
    await at.ended(task.id);
  },
});
