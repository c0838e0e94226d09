/** Event streams: exactly framed, resumable without gap or repetition, and honest when they cannot go on. */
import type { CoreEvent } from '../../../../src/model/events.ts';
import { equal, rising, truth } from '../harness/expect.ts';
import { eventOf, type Frame, openStream } from '../harness/stream.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target } from '../harness/target.ts';
import type { Asking } from '../harness/wire.ts';

const ends = ({ event }: Frame) => /^task\.(completed|failed|canceled)$/.test(event);
const after = (id: string | undefined): Asking => ({ headers: { 'last-event-id': String(id) } });

async function all(at: Target, path: string, asking?: Asking): Promise<CoreEvent[]> {
  const stream = await openStream(at, path, asking);
  try {
    equal(stream.status, 200, 'status');
    return (await stream.rest()).map(eventOf);
  } finally {
    stream.close();
  }
}

export const streams = category('streams', {
  async 'a task stream is its event list, then its end'(at) {
    const { id } = await at.done('hello then read plan');
    equal(await all(at, `/v1/tasks/${id}/stream`), await at.events(`/v1/tasks/${id}/events`), 'the stream');
  },
  async 'a stream opened before the end sees the same as one opened after'(at) {
    const { id } = await at.submit('wait 5');
    const live = await all(at, `/v1/tasks/${id}/stream`);
    equal(live, await at.events(`/v1/tasks/${id}/events`), 'the live stream');
  },
  async 'frames: id, event and one line of data, ended by LF LF'(at) {
    const { id } = await at.done('hello');
    const stream = await openStream(at, `/v1/tasks/${id}/stream`);
    try {
      for (const frame of await stream.rest()) {
        truth(!frame.raw.includes('\r'), 'there is a CR');
        equal(
          frame.raw.split('\n').map((line) => line.split(':', 1)[0]),
          ['id', 'event', 'data'],
          'the lines',
        );
        const event = eventOf(frame);
        equal([frame.id, frame.event], [event.id, event.event], 'id and event');
      }
    } finally {
      stream.close();
    }
  },
  async 'the headers keep proxies from holding it back'(at) {
    const { id } = await at.done('hello');
    const stream = await openStream(at, `/v1/tasks/${id}/stream`);
    stream.close();
    truth(stream.headers.get('content-type')?.startsWith('text/event-stream'), 'content-type');
    truth(/no-store|no-cache/.test(stream.headers.get('cache-control') ?? ''), 'cache-control');
  },
  ...each(
    [0, 1, 5],
    (index) => `resuming after event ${index} goes on with the next, to the end`,
    async (index, at) => {
      const { id } = await at.done('hello');
      const events = await at.events(`/v1/tasks/${id}/events`);
      equal(await all(at, `/v1/tasks/${id}/stream`, after(events[index]?.id)), events.slice(index + 1), 'the rest');
    },
  ),
  async 'a reader cut off twice misses nothing and sees nothing twice'(at) {
    const { id } = await at.submit('wait 20');
    const seen: CoreEvent[] = [];
    for (const most of [4, 9, Number.POSITIVE_INFINITY]) {
      const stream = await openStream(at, `/v1/tasks/${id}/stream`, seen.length > 0 ? after(seen.at(-1)?.id) : {});
      let count = 0;
      for (const frame of await stream.until((f) => ends(f) || ++count >= most)) seen.push(eventOf(frame));
      stream.close();
    }
    equal(seen, await at.events(`/v1/tasks/${id}/events`), 'what was seen');
  },
  async 'at the end of an ended task there is nothing to wait for: 204'(at) {
    const { id } = await at.done('hello');
    const events = await at.events(`/v1/tasks/${id}/events`);
    const answer = await at.ask('GET', `/v1/tasks/${id}/stream`, after(events.at(-1)?.id));
    equal(answer.status, 204, 'status');
  },
  ...each(
    ['evt_9999999999999999', 'nonsense'],
    (cursor) => `an unknown cursor (${cursor}) is told in the stream, which then ends`,
    async (cursor, at) => {
      const { id } = await at.done('hello');
      const stream = await openStream(at, `/v1/tasks/${id}/stream`, after(cursor));
      const frames = await stream.rest();
      stream.close();
      equal([stream.status, frames.length], [200, 1], 'status and number of frames');
      const { error } = JSON.parse(frames[0]!.data) as { error: { code: string } };
      equal([frames[0]?.event, error.code], ['error', 'cursor_expired'], 'event and code');
      equal(frames[0]?.id, cursor, 'the id, so that a retry does not move on');
    },
  ),
  async 'the cursor may come in the query, where headers cannot be set'(at) {
    const { id } = await at.done('hello');
    const events = await at.events(`/v1/tasks/${id}/events`);
    equal(await all(at, `/v1/tasks/${id}/stream?last_event_id=${events[2]?.id}`), events.slice(3), 'the rest');
  },
  async 'a session stream goes on over tasks and messages'(at) {
    const session = await at.session();
    const stream = await openStream(at, `/v1/sessions/${session.id}/events/stream`);
    try {
      await at.ok('POST', `/v1/sessions/${session.id}/messages`, { body: { message: said('one') } });
      await at.done('hello', session.id);
      await at.ok('POST', `/v1/sessions/${session.id}/close`);
      const frames = await stream.until(({ event }) => event === 'session.closed');
      const reported = frames.map(eventOf);
      rising(
        reported.map(({ id }) => id),
        'ids',
      );
      equal(reported, (await at.events(`/v1/sessions/${session.id}/events`)).slice(0, reported.length), 'the stream');
      for (const kind of ['session.created', 'user.message', 'task.completed']) {
        truth(
          reported.some(({ event }) => event === kind),
          `there is no ${kind}`,
        );
      }
    } finally {
      stream.close();
    }
  },
  async 'the stream of everything begins now'(at) {
    const before = await at.done('hello');
    const stream = await openStream(at, '/v1/events/stream');
    try {
      const { id } = await at.done('hello');
      const frames = await stream.until((frame) => ends(frame) && frame.data.includes(id));
      truth(!frames.some(({ data }) => data.includes(`"task_id":"${before.id}"`)), 'the past is in it');
      rising(
        frames.map((frame) => frame.id),
        'ids',
      );
    } finally {
      stream.close();
    }
  },
  async 'the stream of everything can be resumed, too'(at) {
    const first = await at.done('hello');
    const cursor = (await at.events(`/v1/tasks/${first.id}/events`)).at(-1)?.id;
    const { id } = await at.done('read plan');
    const stream = await openStream(at, '/v1/events/stream', after(cursor));
    try {
      const frames = await stream.until((frame) => ends(frame) && frame.data.includes(id));
      const mine = frames.map(eventOf).filter(({ task_id }) => task_id === id);
      equal(mine, await at.events(`/v1/tasks/${id}/events`), 'events of the second task');
    } finally {
      stream.close();
    }
  },
  async 'the stream of everything can be narrowed'(at) {
    const [one, other] = [await at.session(), await at.session()];
    const stream = await openStream(at, `/v1/events/stream?session_id=${one.id}`);
    try {
      await at.done('hello', other.id);
      const { id } = await at.done('hello', one.id);
      const frames = await stream.until((frame) => ends(frame) && frame.data.includes(id));
      truth(
        frames.map(eventOf).every(({ session_id }) => session_id === one.id),
        'another session is in it',
      );
    } finally {
      stream.close();
    }
  },
  async 'many readers of one task all get all of it'(at) {
    const { id } = await at.submit('wait 8');
    const readers = await Promise.all(Array.from({ length: 25 }, () => all(at, `/v1/tasks/${id}/stream`)));
    const events = await at.events(`/v1/tasks/${id}/events`);
    for (const seen of readers) equal(seen.length, events.length, 'events one reader saw');
  },
  async 'polling, streaming and ranges agree'(at) {
    const { id } = await at.submit('wait 3 then hello');
    const streamed = await all(at, `/v1/tasks/${id}/stream`);
    const task = await at.task(id);
    equal(streamed.at(-1)?.payload.to, task.status, 'the last state');
    equal(streamed, await at.events(`/v1/events?task_id=${id}`), 'the range');
  },
  async 'a stream survives the end of the process by its cursor'(at) {
    const own = at.mine();
    const session = await at.session({ initial_messages: [said('a'), said('b')] });
    const stream = await openStream(at, `/v1/sessions/${session.id}/events/stream`);
    const seen = [eventOf(await stream.next())];
    await own.crash();
    stream.close();
    const { id } = await at.done('hello', session.id);
    const rest = await openStream(at, `/v1/sessions/${session.id}/events/stream`, after(seen.at(-1)?.id));
    seen.push(...(await rest.until((frame) => ends(frame) && frame.data.includes(id))).map(eventOf));
    rest.close();
    equal(seen, (await at.events(`/v1/sessions/${session.id}/events`)).slice(0, seen.length), 'what was seen');
  },
});
