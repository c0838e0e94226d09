/** The log: append-only, in order for everything it tells about, the same from wherever it is read, and never lost. */
import type { CoreEvent } from '../../../../src/model/events.ts';
import { equal, list, rising, text, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

/** Every name the protocol has; anything else must say whose it is. */
const NAMES = `
user.message user.input_submitted user.tool_confirmation user.cancel_requested
agent.message agent.reasoning_summary agent.tool_use agent.tool_result agent.mcp_tool_use agent.handoff
agent.memory_read agent.memory_write
task.submitted task.started task.input_required task.auth_required task.completed task.failed task.canceled
task.status_changed
session.created session.closed session.message_appended session.compacted session.truncated session.thread_forked
session.thread_merged session.replayed
branch.created branch.updated branch.merged branch.abandoned
artifact.created artifact.updated artifact.linked artifact.redacted
span.started span.updated span.completed span.failed
tool.requested tool.approval_required tool.approved tool.denied tool.completed tool.failed
connector.delivery_received connector.delivery_deduped connector.normalized connector.task_submitted connector.failed
receipt.issued receipt.verified receipt.verification_failed
replay.started replay.event_replayed replay.completed replay.failed`
  .split(/\s+/)
  .filter((name) => name !== '');

/** A session in which much has happened. */
const lived = new WeakMap<Target, ReturnType<typeof live>>();
async function life(at: Target) {
  const known = lived.get(at) ?? live(at);
  lived.set(at, known);
  return await known;
}

async function live(at: Target): Promise<{ session: string; tasks: readonly string[] }> {
  const session = await at.session({ initial_messages: [said('first')] });
  const tasks: string[] = [];
  for (const words of ['hello', 'read plan', 'artifact', 'fail now', 'hello then read todo']) {
    tasks.push((await at.done(words, session.id)).id);
  }
  await at.ok('POST', `/v1/sessions/${session.id}/branches`, { body: { kind: 'session', base_ref: 'main' } });
  return { session: session.id, tasks };
}

export const events = category('events', {
  async 'ids rise in every list'(at) {
    const { session, tasks } = await life(at);
    for (const path of [
      `/v1/sessions/${session}/events`,
      `/v1/tasks/${tasks[0]}/events`,
      `/v1/events?session_id=${session}`,
    ]) {
      rising(
        (await at.events(path)).map(({ id }) => id),
        path,
      );
    }
  },
  async 'sequences count per resource, without gaps'(at) {
    const { session } = await life(at);
    const last = new Map<string, number>();
    for (const { resource, sequence, id } of await at.events(`/v1/sessions/${session}/events`)) {
      const of = `${text(resource.object, 'resource.object')} ${text(resource.id, 'resource.id')}`;
      const before = last.get(of);
      if (before !== undefined) equal(sequence, before + 1, `sequence of ${of} at ${id}`);
      last.set(of, sequence);
    }
    truth(last.size > 3, 'events tell of too few resources');
  },
  async 'every event has the whole envelope'(at) {
    const { session } = await life(at);
    for (const event of await at.events(`/v1/sessions/${session}/events`)) {
      for (const member of ['id', 'object', 'created_at', 'updated_at', 'event'] as const) text(event[member], member);
      equal(typeof event.metadata, 'object', 'metadata');
      equal(typeof event.payload, 'object', 'payload');
      equal([event.object, event.session_id], ['event', session], 'object and session_id');
    }
  },
  async 'names are the protocol’s, or say whose they are'(at) {
    const { session } = await life(at);
    for (const { event } of await at.events(`/v1/sessions/${session}/events`)) {
      truth(
        NAMES.includes(event) || /^(vendor\.|[a-z]{2,}\.[a-z0-9-]+\.)[a-z0-9_.-]+$/.test(event),
        `${event} is nobody’s`,
      );
    }
  },
  async 'an event is the same by its id as in a list'(at) {
    const { session } = await life(at);
    const all = await at.events(`/v1/sessions/${session}/events`);
    for (const event of [all[0], all[Math.floor(all.length / 2)], all.at(-1)]) {
      equal(await at.ok('GET', `/v1/events/${event?.id}`), event, `event ${event?.id}`);
    }
  },
  async 'a task’s events are those of its session that name it'(at) {
    const { session, tasks } = await life(at);
    const all = await at.events(`/v1/sessions/${session}/events`);
    for (const task of tasks) {
      equal(
        await at.events(`/v1/tasks/${task}/events`),
        all.filter(({ task_id }) => task_id === task),
        `events of ${task}`,
      );
    }
  },
  ...each(
    ['workspace_id', 'session_id', 'task_id'] as const,
    (filter) => `GET /v1/events?${filter} finds exactly what names it`,
    async (filter, at) => {
      const { tasks } = await life(at);
      const [task] = [await at.task(tasks[0]!)];
      const id = filter === 'task_id' ? task.id : task[filter];
      const found = await at.events(`/v1/events?${filter}=${id}`);
      truth(found.length > 0, 'nothing was found');
      truth(
        found.every((event) => event[filter] === id),
        'something else was found',
      );
    },
  ),
  async 'after_event_id leaves out what came before, and itself'(at) {
    const { tasks } = await life(at);
    const all = await at.events(`/v1/tasks/${tasks[0]}/events`);
    for (const index of [0, 2, all.length - 1]) {
      const { data } = await at.ok<List<CoreEvent>>(
        'GET',
        `/v1/tasks/${tasks[0]}/events?limit=200&after_event_id=${all[index]?.id}`,
      );
      equal(data, all.slice(index + 1), `events after number ${index}`);
    }
  },
  async 'a range can be read in pieces of any size'(at) {
    const { session } = await life(at);
    const whole = await at.events(`/v1/sessions/${session}/events`);
    const pieces: CoreEvent[] = [];
    for (;;) {
      const after = pieces.at(-1)?.id;
      const query = `limit=7${after ? `&after_event_id=${after}` : ''}`;
      const { data, page } = await at.ok<List<CoreEvent>>('GET', `/v1/sessions/${session}/events?${query}`);
      pieces.push(...data);
      equal(page.has_more, pieces.length < whole.length, 'has_more');
      if (!page.has_more) break;
    }
    equal(pieces, whole, 'the pieces');
  },
  ...each(
    ['evt_9999999999999999', 'nonsense', 'evt_x', ''],
    (cursor) => `after_event_id=${cursor || '(empty)'} is refused or ignored, never answered with guesses`,
    async (cursor, at) => {
      const { tasks } = await life(at);
      const path = `/v1/tasks/${tasks[0]}/events?after_event_id=${cursor}`;
      if (cursor === '') equal((await at.ask('GET', path)).status, 200, 'status');
      else await at.refused('cursor_expired', 'GET', path);
    },
  ),
  async 'lifecycle events carry the task as it then was'(at) {
    const { tasks } = await life(at);
    for (const { event, payload } of await at.events(`/v1/tasks/${tasks[0]}/events`)) {
      if (!/^task\.(submitted|started|completed)$/.test(event)) continue;
      const task = payload.task as { id?: string; status?: string } | undefined;
      equal([task?.id, task?.status], [tasks[0], payload.to], `the task in ${event}`);
    }
  },
  async 'messages and tool calls are told with their content'(at) {
    const { tasks } = await life(at);
    const [, read] = tasks;
    const reported = await at.events(`/v1/tasks/${read}/events`);
    const one = (kind: string) => reported.find(({ event }) => event === kind)?.payload as Record<string, unknown>;
    truth((one('user.message')?.message as { parts?: unknown[] })?.parts, 'user.message has no message');
    truth((one('agent.message')?.message as { parts?: unknown[] })?.parts, 'agent.message has no message');
    equal(one('tool.requested')?.tool_call_id, one('tool.completed')?.tool_call_id, 'the call ids');
    text(one('tool.requested')?.name, 'name of the tool');
    equal(one('tool.completed')?.status, 'ok', 'status of the call');
  },
  async 'the cause of an event comes before it'(at) {
    const { tasks } = await life(at);
    const kinds = (await at.events(`/v1/tasks/${tasks[1]}/events`)).map(({ event }) => event);
    const order = [
      'task.submitted',
      'task.started',
      'tool.requested',
      'tool.completed',
      'receipt.issued',
      'task.completed',
    ];
    rising(
      order.map((kind) => (kinds as readonly string[]).indexOf(kind)),
      'places of the events',
    );
  },
  async 'an event once read never changes'(at) {
    const { session, tasks } = await life(at);
    const before = await at.ask('GET', `/v1/tasks/${tasks[0]}/events`);
    await at.done('hello', session);
    equal((await at.ask('GET', `/v1/tasks/${tasks[0]}/events`)).text, before.text, 'the second reading');
  },
  async 'events survive the end of the process, byte for byte'(at) {
    const { session } = await life(at);
    const before = await at.ask('GET', `/v1/sessions/${session}/events?limit=200`);
    await at.mine().crash();
    equal((await at.ask('GET', `/v1/sessions/${session}/events?limit=200`)).text, before.text, 'after the restart');
  },
  async 'events cannot be written from outside'(at) {
    for (const [method, path] of [
      ['POST', '/v1/events'],
      ['PATCH', '/v1/events/evt_0000000000000001'],
      ['DELETE', '/v1/events/evt_0000000000000001'],
    ] as const) {
      const { status } = await at.ask(method, path, { body: {} });
      truth(status === 404 || status === 405, `${method} ${path} is ${status}`);
    }
    list((await at.ok<List<unknown>>('GET', '/v1/events')).data, 'data');
  },
});
