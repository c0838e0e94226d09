/** What can be read: events by page and by stream, memory, usage, health, and the page for machines. */
import { equal, truth } from '../harn/harness/expect.ts';
import { checksOf, isUuid, type RunsCheck, refused, type Target } from './target.ts';

async function reported(at: Target) {
  const id = await at.run('hello');
  await at.reaches(id, 'succeeded');
  return { id, events: await at.events(id) };
}

const refusedQueries = (path: string, queries: readonly string[], code: string) =>
  Object.fromEntries(
    queries.map((query) => [
      `${query} is refused`,
      async (at: Target) => {
        const id = path.includes('{id}') ? (await reported(at)).id : '';
        refused(await at.call('GET', `${path.replace('{id}', id)}?${query}`), 400, 'bad_request', code);
      },
    ]),
  );

export const reading: readonly RunsCheck[] = [
  ...checksOf('events', {
    async 'come in pages, from a cursor on'(at) {
      const { id, events } = await reported(at);
      const page = async (query: string) => (await at.call('GET', `/v1/runs/${id}/events${query}`)).body;
      const first = await page('?limit=2');
      equal([first.events, first.next_cursor], [events.slice(0, 2), 2], 'the first page');
      truth(isUuid(first.request_id), 'request_id is a uuid');
      equal((await page('?cursor=2&limit=2')).events, events.slice(2, 4), 'the second page');
    },
    async 'are fifty unless more are asked for'(at) {
      const { id, events } = await reported(at);
      const { body } = await at.call('GET', `/v1/runs/${id}/events`);
      equal(body.events.length, Math.min(50, events.length), 'entries');
    },
    async 'that are over echo the cursor'(at) {
      const { id, events } = await reported(at);
      const { body } = await at.call('GET', `/v1/runs/${id}/events?cursor=${events.length}`);
      equal([body.events, body.next_cursor], [[], events.length], 'the last page');
    },
    ...refusedQueries(
      '/v1/runs/{id}/events',
      ['limit=0', 'limit=201', 'limit=x', 'cursor=-1', 'cursor=x'],
      'EVENTS_QUERY_PARAMS_INVALID',
    ),
  }),
  ...checksOf('a stream', {
    async 'is framed exactly, and says the same as the pages'(at) {
      const { id, events } = await reported(at);
      const { answer, frames } = await at.stream(id);
      equal(answer.status, 200, 'status');
      truth(answer.headers.get('content-type')?.startsWith('text/event-stream'), 'it is an event stream');
      for (const frame of frames)
        truth(/^(id: \d+\n)?event: run_event\ndata: \{.*\}$/.test(frame), `a frame: ${frame}`);
      equal(
        frames.map((frame) => JSON.parse(frame.split('data: ')[1] ?? '')),
        events,
        'events',
      );
    },
    async 'goes on from a cursor'(at) {
      const { id, events } = await reported(at);
      const { frames } = await at.stream(id, '?cursor=2');
      equal(
        frames.map((frame) => JSON.parse(frame.split('data: ')[1] ?? '').seq),
        events.slice(2).map(({ seq }) => seq),
        'numbers',
      );
    },
    async 'goes on from the last id seen'(at) {
      const { id, events } = await reported(at);
      const { frames } = await at.stream(id, '', { 'last-event-id': '3' });
      equal(frames.length, events.length - 3, 'frames');
    },
    async 'shows what happens while it is open'(at) {
      const id = await at.run('long');
      const reading = at.stream(id);
      await at.seen(id, 'run.worker.started');
      await at.call('POST', `/v1/runs/${id}/cancel`);
      const { frames } = await reading;
      truth(frames.at(-1)?.includes('"run.cancelled"'), 'the cancel is told');
    },
    ...refusedQueries('/v1/runs/{id}/events/stream', ['cursor=x'], 'EVENTS_QUERY_PARAMS_INVALID'),
  }),
  ...checksOf('memory', {
    async 'is exported as files'(at) {
      const { status, headers, body } = await at.call('GET', '/v1/memory/export');
      equal([status, headers.get('cache-control')], [200, 'no-store'], 'status and cache-control');
      truth(Array.isArray(body.files) && isUuid(body.request_id), 'files and request_id');
      for (const file of body.files) equal(Object.keys(file), ['path', 'content'], 'a file');
    },
    async 'is listed by the page'(at) {
      const { status, headers, body } = await at.call('GET', '/v1/memory/items');
      equal([status, headers.get('cache-control')], [200, 'no-store'], 'status and cache-control');
      equal([Array.isArray(body.items), body.limit, body.offset], [true, 50, 0], 'the page');
    },
    async 'takes every filter'(at) {
      const query = 'workspace_id=w&subject_id=s&status=active&include_harness=true&limit=1&offset=1';
      const { status, body } = await at.call('GET', `/v1/memory/items?${query}`);
      equal([status, body.limit, body.offset], [200, 1, 1], 'the page');
    },
    async 'has no item that is not there'(at) {
      const { status, headers, body } = await at.call('GET', '/v1/memory/items/memory_none?include_embedding=true');
      equal([status, body.error, headers.get('cache-control')], [404, 'not_found', 'no-store'], 'the refusal');
    },
    ...refusedQueries('/v1/memory/items', ['limit=x', 'include_harness=perhaps'], 'MEMORY_QUERY_PARAMS_INVALID'),
  }),
  ...checksOf('usage', {
    async 'is counted from the start of the month'(at) {
      const id = await at.run('hello');
      await at.reaches(id, 'succeeded');
      const { status, body } = await at.call('GET', '/v1/usage');
      equal([status, body.granularity], [200, 'day'], 'status and granularity');
      truth(/-01T00:00:00\.000Z$/.test(body.start), 'it starts with the month');
      const row = body.usage.find(({ event_type }: { event_type: string }) => event_type === 'run.created');
      truth(row && row.count > 0 && row.period_start < row.period_end, 'runs are counted');
    },
    async 'is counted for one subject, by the hour'(at) {
      const { status, body } = await at.call(
        'GET',
        '/v1/usage?subject_id=nobody&granularity=hour&event_type=tool.invoked',
      );
      equal([status, body.usage, body.granularity], [200, [], 'hour'], 'the answer');
    },
    ...refusedQueries(
      '/v1/usage',
      ['event_type=x', 'granularity=week', 'start=yesterday'],
      'USAGE_QUERY_PARAMS_INVALID',
    ),
  }),
  ...checksOf('without a key one may see', {
    async 'that it lives'(at) {
      const { status, body } = await at.call('GET', '/health/live', { as: null });
      equal([status, body.status], [200, 'ok'], 'the answer');
    },
    async 'that it is ready'(at) {
      const { status, body } = await at.call('GET', '/health/ready', { as: null });
      equal([status, body.status], [200, 'ok'], 'the answer');
    },
    async 'what it depends on'(at) {
      const { status, body } = await at.call('GET', '/health/deps', { as: null });
      equal([status, typeof body.dependencies], [200, 'object'], 'the answer');
    },
    async 'what it can do'(at) {
      const { status, body } = await at.call('GET', '/openapi.json', { as: null });
      equal(status, 200, 'status');
      for (const path of ['/v1/runs', '/v1/runs/{id}/signal', '/v1/memory/export'])
        truth(body.paths?.[path], `it has ${path}`);
    },
  }),
];
