/** A run's events by polling and by stream: the same ones, from any number on, for as long as the client may read them. */
import { describe, expect, test } from 'vitest';
import { createRunRenderer } from '../../../adapters/runs/server/render/events.ts';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { readCore, storyNames } from '../../stories/story.ts';
import { latch, scriptedAgent } from '../../support/gateway/agents.ts';
import { type Body, openRuns, pair } from '../../support/runs/gateway.ts';

const demo = () => createDemoAgent({ pause: async () => {} });

async function reported() {
  const runs = await openRuns({ agents: [demo()] });
  const { body } = await runs.create('hello');
  await runs.until(body.id, 'succeeded');
  return { runs, id: body.id as string, events: await runs.events(body.id) };
}

describe('polling', () => {
  test('goes on from the cursor, page by page, and echoes it when there is nothing more', async () => {
    const { runs, id, events } = await reported();
    const page = async (query: string) => (await runs.call('GET', `/v1/runs/${id}/events${query}`)).body;
    expect(await page('')).toEqual({ events, next_cursor: events.length, request_id: expect.any(String) });
    expect(await page('?limit=3')).toMatchObject({ events: events.slice(0, 3), next_cursor: 3 });
    expect(await page('?cursor=3&limit=2')).toMatchObject({ events: events.slice(3, 5), next_cursor: 5 });
    expect(await page(`?cursor=${events.length}`)).toMatchObject({ events: [], next_cursor: events.length });
    expect(await page('?cursor=9000')).toMatchObject({ events: [], next_cursor: 9000 });
  });

  test.each(['limit=0', 'limit=201', 'limit=x', 'limit=', 'cursor=-1', 'cursor=1.5', 'cursor=x', 'cursor=1&cursor=2'])(
    '%s is refused',
    async (query) => {
      const { runs, id } = await reported();
      const refused = { status: 400, body: { error: 'bad_request', reason_code: 'EVENTS_QUERY_PARAMS_INVALID' } };
      expect(await runs.call('GET', `/v1/runs/${id}/events?${query}`)).toMatchObject(refused);
      if (query.startsWith('cursor')) {
        expect(await runs.call('GET', `/v1/runs/${id}/events/stream?${query}`)).toMatchObject(refused);
      }
    },
  );
});

describe('a stream', () => {
  test('is framed as the API has it, and says the same as polling', async () => {
    const { runs, id, events } = await reported();
    const response = await fetch(`${runs.url}/v1/runs/${id}/events/stream`, {
      headers: { authorization: pair('ana') },
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(response.headers.get('cache-control')).toContain('no-store');
    const text = await response.text();
    expect(text.startsWith(`id: 1\nevent: run_event\ndata: {"seq":1,"type":"run.created","timestamp":"`)).toBe(true);
    const frames = await runs.stream(id);
    expect(frames.map(({ data }) => data)).toEqual(events);
    expect(frames.every(({ id: seq, event, data }) => seq === String(data.seq) && event === 'run_event')).toBe(true);
  });

  test('goes on from a cursor or from the last id seen; the query wins', async () => {
    const { runs, id, events } = await reported();
    const seqs = (frames: Body[]) => frames.map(({ data }) => data.seq);
    const past = (cursor: number) => events.slice(cursor).map(({ seq }) => seq);
    expect(seqs(await runs.stream(id, '?cursor=4'))).toEqual(past(4));
    expect(seqs(await runs.stream(id, '', { 'last-event-id': '7' }))).toEqual(past(7));
    expect(seqs(await runs.stream(id, '?cursor=4', { 'last-event-id': '7' }))).toEqual(past(4));
    expect(await runs.stream(id, `?cursor=${events.length}`)).toEqual([]);
  });

  test('tells what happens while it is open, a second attempt included', async () => {
    const go = latch();
    let tries = 0;
    const agent = scriptedAgent(async () => {
      tries += 1;
      if (tries > 1) return undefined;
      await go.promise;
      return { state: 'FAILED', failure: { code: 'broken', message: 'no' } };
    });
    const runs = await openRuns({ agents: [agent], config: { stream: { linger_ms: 60_000 } } });
    const { body } = await runs.create('go');
    const stop = new AbortController();
    const response = await fetch(`${runs.url}/v1/runs/${body.id}/events/stream`, {
      headers: { authorization: pair('ana') },
      signal: stop.signal,
    });
    const seen: string[] = [];
    let rest = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      rest += chunk;
      const frames = rest.split('\n\n');
      rest = frames.pop() ?? '';
      for (const frame of frames) seen.push(JSON.parse(frame.split('data: ')[1]!).type);
      if (seen.at(-1) === 'run.worker.started' && seen.length === 2) go.open();
      if (seen.at(-1) === 'run.worker.failed') await runs.call('POST', `/v1/runs/${body.id}/retry`);
      if (seen.at(-1) === 'run.worker.succeeded') break;
    }
    stop.abort();
    expect(seen).toEqual([
      'run.created',
      'run.worker.started',
      'step.done',
      'run.worker.failed',
      'run.worker.retry_scheduled',
      'run.worker.started',
      'run.worker.succeeded',
    ]);
  });

  test('ends when the key no longer holds, and when the door closes', async () => {
    const never = scriptedAgent(() => new Promise(() => {}));
    const runs = await openRuns({ agents: [never], config: { stream: { recheck_ms: 20 } }, settings: { graceMs: 10 } });
    const mine = await runs.create('go');
    const theirs = await runs.create('go', {}, { authorization: pair('acme') });
    const hers = runs.stream(theirs.body.id, '', { authorization: pair('acme') });
    const ours = runs.stream(mine.body.id);
    await runs.seen(mine.body.id, 'run.worker.started');
    runs.revoke('acme');
    expect((await hers).map(({ data }) => data.type)).toEqual(['run.created', 'run.worker.started']);
    const closing = runs.close();
    expect((await ours).map(({ data }) => data.type)).toEqual(['run.created', 'run.worker.started']);
    await closing;
  });
});

describe('a rendition', () => {
  test.each(storyNames())('of %s is numbered without gaps, and the same however it is cut', (name) => {
    const log = readCore(name).filter(({ task_id }) => task_id === 'task_1');
    const whole = createRunRenderer();
    const once = log.flatMap((event) => whole.render(event));
    expect(once.map(({ seq }) => seq)).toEqual(once.map((_, at) => at + 1));
    const again = createRunRenderer();
    expect(log.flatMap((event) => again.render(event))).toEqual(once);
    expect(once[0]?.type).toBe('run.created');
    expect(['run.worker.succeeded', 'run.worker.failed', 'run.cancelled']).toContain(once.at(-1)?.type);
    // A run that has ended receives nothing more.
    expect(log.flatMap((event) => (event.event === 'task.submitted' ? [] : whole.render(event)))).toEqual([]);
  });
});
