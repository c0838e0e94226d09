/** Events that are no longer kept: reading them and replaying them says so, and names the first event that is gone. */
import type { Task } from '../../../../src/model/resources.ts';
import { equal, text, truth } from '../harness/expect.ts';
import { category } from '../harness/suite.ts';
import { type Target, TERMINAL } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

interface Gone {
  readonly task: string;
  readonly session: string;
  readonly receipt: string;
  readonly firstOfTask: string;
  readonly lastOfTask: string;
  readonly firstOfSession: string;
}

/** A task whose events were read while they were kept, and are not kept any more. */
async function gone(at: Target): Promise<Gone> {
  const own = at.mine();
  const task = await at.done('hello');
  const events = await at.events(`/v1/tasks/${task.id}/events`);
  const whole = await at.events(`/v1/sessions/${task.session_id}/events`);
  await endEverything(at);
  await own.forget();
  return {
    task: task.id,
    session: task.session_id,
    receipt: String(task.receipt_id),
    firstOfTask: events[0]!.id,
    lastOfTask: events.at(-1)!.id,
    firstOfSession: whole[0]!.id,
  };
}

/** Nothing from the first event of open work on is ever dropped; other checks leave work behind. */
async function endEverything(at: Target): Promise<void> {
  let cursor = '';
  for (;;) {
    const { data, page } = await at.ok<List<Task>>('GET', `/v1/tasks?limit=200${cursor}`);
    for (const { id, status } of data) {
      if (TERMINAL.includes(status)) continue;
      await at.ask('POST', `/v1/tasks/${id}/cancel`, { body: {} });
      await at.ended(id);
    }
    if (!page.has_more) return;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

export const pruned = category('pruned', {
  async 'reading events that are no longer kept is 410, and names the first of them'(at) {
    const { task, session, firstOfTask, firstOfSession } = await gone(at);
    for (const [path, first] of [
      [`/v1/tasks/${task}/events`, firstOfTask],
      [`/v1/events?task_id=${task}`, firstOfTask],
      [`/v1/sessions/${session}/events`, firstOfSession],
    ] as const) {
      const { details } = await at.refused('cursor_expired', 'GET', path);
      equal((details as { first_unavailable?: string }).first_unavailable, first, `first_unavailable of ${path}`);
      text((details as { oldest?: string }).oldest, 'oldest');
    }
    await at.refused('cursor_expired', 'GET', `/v1/tasks/${task}/events?after_event_id=${firstOfTask}`);
  },
  async 'what is written afterwards is read as ever'(at) {
    const { lastOfTask } = await gone(at);
    const { id } = await at.done('hello');
    const events = await at.events(`/v1/tasks/${id}/events`);
    equal(events[0]?.sequence, 1, 'sequence of the first event of a later task');
    truth(
      events.every((event) => event.id > lastOfTask),
      'an id was used again',
    );
  },
  async 'a replay of it is 410, names the first missing event, and begins nothing'(at) {
    const { task, session, firstOfTask } = await gone(at);
    const { details } = await at.refused('cursor_expired', 'POST', `/v1/tasks/${task}/replay`, { body: {} });
    const { first_missing, dependency } = details as { first_missing?: { id: string }; dependency?: { id: string } };
    equal([first_missing?.id, dependency?.id], [firstOfTask, firstOfTask], 'the first missing event');
    const { data } = await at.ok<{ data: unknown[] }>('GET', `/v1/sessions/${session}/tasks`);
    equal(data.length, 1, 'tasks of the session');
  },
  async 'its receipt is kept'(at) {
    const { task, receipt } = await gone(at);
    const { data } = await at.ok<{ data: { id: string }[] }>('GET', `/v1/tasks/${task}/receipts`);
    equal(
      data.map(({ id }) => id),
      [receipt],
      'receipts',
    );
  },
});
