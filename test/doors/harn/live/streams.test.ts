import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { latch, scriptedAgent, untilAborted } from '../../../support/gateway/agents.ts';
import { type Door, openDoor, type PEOPLE, text, VERSION } from '../../../support/harn/gateway.ts';
import { type Frame, openSse } from '../../../support/wire/sse.ts';

const talk = (words: number) =>
  scriptedAgent(async (sink) => {
    for (let at = 1; at <= words; at += 1) {
      await sink.emit({ event: 'vendor.tollbridge.note', payload: { at } });
    }
    return undefined;
  });

const follow = (door: Door, path: string, more: Record<string, string> = {}) =>
  openSse(`${door.url}${path}`, door.headers({ accept: 'text/event-stream', ...more }));

const ids = (frames: readonly Frame[]) => frames.map(({ id }) => id);
const eventIds = async (door: Door, path: string) =>
  (await door.call('GET', `${path}?limit=200`)).body.data.map(({ id }: { id: string }) => id);

test('a task is followed from its beginning to its end, and the stream ends with it', async () => {
  const go = latch();
  const door = await openDoor({
    agents: [
      scriptedAgent(async (sink) => {
        await go.promise;
        await sink.emit({ event: 'vendor.tollbridge.note', payload: { at: 1 } });
        return undefined;
      }),
    ],
  });
  const { task } = await door.task();
  const stream = await follow(door, `/v1/tasks/${task}/stream`);
  expect(stream.status).toBe(200);
  expect(stream.headers.get('content-type')).toBe('text/event-stream');
  const before = await stream.until(({ event }) => event === 'task.started');
  go.open();
  const after = await stream.rest();
  const frames = [...before, ...after];
  expect(frames.at(-1)?.event).toBe('task.completed');
  expect(ids(frames)).toEqual(await eventIds(door, `/v1/tasks/${task}/events`));
  for (const { id, event, data } of frames) {
    expect(data).toMatchObject({ object: 'event', id, event, task_id: task });
    expect(Number.isInteger(data.sequence)).toBe(true);
  }
  expect(stream.raw().startsWith('id: evt_')).toBe(true);
  expect(stream.raw()).not.toContain('\r');

  const again = await follow(door, `/v1/tasks/${task}/stream`);
  expect(ids(await again.rest())).toEqual(ids(frames));
});

test('a reader goes on from its cursor without gap or repeat, by header or by query', async () => {
  const door = await openDoor({ agents: [talk(30)] });
  const { task } = await door.task();
  await door.at.until(task);
  const all: string[] = await eventIds(door, `/v1/tasks/${task}/events`);
  for (const at of [0, 7, all.length - 2]) {
    const byHeader = await follow(door, `/v1/tasks/${task}/stream`, { 'last-event-id': all[at]! });
    expect(ids(await byHeader.rest())).toEqual(all.slice(at + 1));
    const byQuery = await follow(door, `/v1/tasks/${task}/stream?last_event_id=${all[at]}`);
    expect(ids(await byQuery.rest())).toEqual(all.slice(at + 1));
  }
  const over = await follow(door, `/v1/tasks/${task}/stream`, { 'last-event-id': all.at(-1)! });
  expect(over.status).toBe(204);
});

test('a connection that breaks again and again loses nothing', async () => {
  const go = latch();
  const door = await openDoor({
    agents: [
      scriptedAgent(async (sink) => {
        for (let at = 1; at <= 60; at += 1) {
          await sink.emit({ event: 'vendor.tollbridge.note', payload: { at } });
          if (at === 20) await go.promise;
        }
        return undefined;
      }),
    ],
  });
  const { task } = await door.task();
  const seen: Frame[] = [];
  let turns = 0;
  while (seen.at(-1)?.event !== 'task.completed') {
    const cursor = seen.at(-1)?.id;
    const stream = await follow(door, `/v1/tasks/${task}/stream`, cursor ? { 'last-event-id': cursor } : {});
    let left = 5 + (turns % 3);
    seen.push(...(await stream.until(() => --left <= 0)));
    stream.stop();
    if (++turns === 3) go.open();
  }
  expect(ids(seen)).toEqual(await eventIds(door, `/v1/tasks/${task}/events`));
});

test('a session is followed past the end of one task into the next', async () => {
  const door = await openDoor({ agents: [talk(1)] });
  const { session } = await door.room();
  const stream = await follow(door, `/v1/sessions/${session}/events/stream`);
  const first = await stream.next();
  expect(first?.event).toBe('session.created');
  for (const said of ['one', 'two']) {
    await door.call('POST', `/v1/sessions/${session}/tasks`, { input: text(said) });
    const frames = await stream.until(({ event }) => event === 'task.completed');
    expect(frames.at(-1)?.data.session_id).toBe(session);
  }
  await door.call('POST', `/v1/sessions/${session}/messages`, { message: text('after') });
  const [said] = await stream.until(({ event }) => event === 'user.message');
  expect(said?.data.payload.message.parts[0].text).toBe('after');
  stream.stop();
});

test('everything is followed from now on, filtered, and only as far as one may see', async () => {
  const door = await openDoor({ agents: [talk(1)] });
  const early = await door.task();
  await door.at.until(early.task);
  const all = await follow(door, '/v1/events/stream');
  const theirs = await follow(door, '/v1/events/stream', { authorization: 'Bearer acme' });
  const late = await door.task();
  const one = await follow(door, `/v1/events/stream?task_id=${late.task}&last_event_id=evt_0000000000000000`);
  const frames = await all.until(({ event }) => event === 'task.completed');
  expect(frames[0]?.data.resource.object).toBe('workspace');
  expect(frames.some(({ data }) => data.task_id === early.task)).toBe(false);
  const filtered = await one.until(({ event }) => event === 'task.completed');
  expect(ids(filtered)).toEqual(await eventIds(door, `/v1/tasks/${late.task}/events`));

  const headers = { authorization: 'Bearer acme' };
  const own = await door.call('POST', '/v1/workspaces', { name: 'a', root: 'harn://a' }, headers);
  const mine = await theirs.next();
  expect(mine?.data).toMatchObject({ workspace_id: own.body.id });
  for (const stream of [all, theirs, one]) stream.stop();
});

test('a cursor that is no place in the log is reported in the stream, and the stream ends', async () => {
  const door = await openDoor({ agents: [talk(1)] });
  const { task, session } = await door.task();
  await door.at.until(task);
  for (const cursor of ['garbage', 'evt_9999999999999999', '-1', 'evt_1']) {
    for (const path of [`/v1/tasks/${task}/stream`, `/v1/sessions/${session}/events/stream`, '/v1/events/stream']) {
      const stream = await follow(door, path, { 'last-event-id': cursor });
      expect(stream.status).toBe(200);
      const frames = await stream.rest();
      expect(frames).toHaveLength(1);
      expect(frames[0]).toMatchObject({
        id: cursor,
        event: 'error',
        data: { error: { code: 'cursor_expired', type: 'request_error' } },
      });
    }
  }
});

test('events past their time: ranges say 410, streams say so and end', async () => {
  const door = await openDoor({ agents: [talk(3)] });
  const { task, session } = await door.task();
  await door.at.until(task);
  const [first] = await eventIds(door, `/v1/tasks/${task}/events`);
  const [opened] = await eventIds(door, `/v1/sessions/${session}/events`);
  door.at.clock.advance(1000 * 60 * 60);
  const before = door.at.clock.now();
  door.at.clock.advance(1000);
  await door.room();
  await door.at.runtime.store.retain(before);
  const range = await door.call('GET', `/v1/tasks/${task}/events?after_event_id=${first}`);
  expect([range.status, range.body.error.code]).toEqual([410, 'cursor_expired']);
  const stream = await follow(door, `/v1/sessions/${session}/events/stream`, { 'last-event-id': first });
  expect((await stream.rest()).map(({ event, data }) => [event, data.error.code])).toEqual([
    ['error', 'cursor_expired'],
  ]);
  // A client that names no cursor gets what is kept.
  const kept = await door.call('GET', '/v1/events?limit=1');
  expect([kept.status, kept.body.data.length]).toEqual([200, 1]);
  expect(kept.body.data[0].id > first).toBe(true);
  await door.call('POST', `/v1/sessions/${session}/messages`, { message: text('after') });
  // A task or a session has a first event, and a client that names no cursor asks for it.
  let oldest = '';
  for (const path of [
    `/v1/tasks/${task}/events`,
    `/v1/events?task_id=${task}`,
    `/v1/sessions/${session}/events`,
    `/v1/events?session_id=${session}`,
  ]) {
    const { status, body } = await door.call('GET', path);
    expect([status, body.error.code], path).toEqual([410, 'cursor_expired']);
    const wanted = path.includes('task') ? first : opened;
    expect(body.error.details.first_unavailable, path).toBe(wanted);
    oldest = body.error.details.oldest;
  }
  for (const path of [`/v1/tasks/${task}/stream`, `/v1/sessions/${session}/events/stream`]) {
    const frames = await (await follow(door, path)).rest();
    expect(frames.map(({ event, data }) => [event, data.error.code])).toEqual([['error', 'cursor_expired']]);
  }
  for (const path of [
    `/v1/sessions/${session}/events/stream?last_event_id=${oldest}`,
    '/v1/events/stream?last_event_id=',
  ]) {
    const open = await follow(door, path);
    if (path.endsWith('=')) await door.call('POST', `/v1/sessions/${session}/messages`, { message: text('x') });
    const [said] = await open.until(({ event }) => event === 'user.message');
    expect(said?.data.session_id).toBe(session);
    open.stop();
  }
});

test('hidden, forbidden and nameless readers are refused before the stream begins', async () => {
  const door = await openDoor({ agents: [talk(1)] });
  const { task } = await door.task();
  const path = `/v1/tasks/${task}/stream`;
  for (const [headers, status] of [
    [{ authorization: 'Bearer acme' }, 404],
    [{ authorization: 'Bearer nothing' }, 403],
    [{ authorization: '' }, 401],
    [{ 'harn-agents-protocol-version': '' }, 426],
  ] as const) {
    expect((await follow(door, path, headers)).status).toBe(status);
  }
});

test('a token that no longer holds ends its streams', async () => {
  const people: Record<string, (typeof PEOPLE)[string]> = { guest: { id: 'guest', kind: 'person', scopes: ['*'] } };
  const door = await openDoor({ agents: [talk(1)], people, config: { stream: { recheck_ms: 30 } } });
  const { session } = await door.room();
  const stream = await follow(door, `/v1/sessions/${session}/events/stream`, { authorization: 'Bearer guest' });
  await stream.next();
  door.revoke('guest');
  const frames = await stream.rest();
  expect(frames.at(-1)).toMatchObject({ event: 'error', data: { error: { code: 'unauthenticated' } } });
});

test('closing the door ends streams cleanly', async () => {
  const door = await openDoor({ agents: [talk(1)] });
  const { session } = await door.room();
  const stream = await follow(door, `/v1/sessions/${session}/events/stream`);
  await stream.next();
  const rest = stream.rest();
  await door.close();
  expect((await rest).some(({ event }) => event === 'error')).toBe(false);
});

test('a thousand follow one busy task and get all of it in order; one that does not read is cut off and slows nobody', async () => {
  const followers = 1000;
  const notes = 40;
  const go = latch();
  const door = await openDoor({
    agents: [
      scriptedAgent(async (sink) => {
        await go.promise;
        for (let at = 1; at <= notes; at += 1) {
          await sink.emit({ event: 'vendor.tollbridge.note', payload: { at, filler: 'x'.repeat(4_000) } });
        }
        return undefined;
      }),
    ],
    config: { stream: { stall_ms: 500, buffer_bytes: 64 * 1024 } },
  });
  const { task } = await door.task();
  const { hostname, port } = new URL(door.url);
  const request =
    `GET /v1/tasks/${task}/stream HTTP/1.1\r\nHost: ${hostname}:${port}\r\n` +
    `Authorization: Bearer ana\r\nHarn-Agents-Protocol-Version: ${VERSION}\r\n\r\n`;

  const stalled = connect(Number(port), hostname, () => stalled.write(request));
  stalled.pause();
  stalled.on('error', () => {});
  onTestFinished(() => void stalled.destroy());

  const readers = Array.from(
    { length: followers },
    () =>
      new Promise<string[]>((resolve, reject) => {
        const seen: string[] = [];
        let tail = '';
        const socket = connect(Number(port), hostname, () => socket.write(request));
        socket.on('data', (chunk) => {
          const lines = (tail + chunk).split('\n');
          tail = lines.pop() ?? '';
          for (const line of lines) {
            if (line.startsWith('id: ')) seen.push(line.slice(4));
            if (line === 'event: task.completed') {
              resolve(seen);
              socket.destroy();
            }
          }
        });
        socket.on('error', reject);
        socket.on('close', () => reject(new Error(`ended after ${seen.length}`)));
      }),
  );
  const open = async () => {
    const metrics = (await door.call('GET', '/metrics')).body as string;
    return Number(/tollbridge_streams_open\{kind="sse"\} (\d+)/.exec(metrics)?.[1]);
  };
  await eventually(async () => (await open()) > followers, 'all followers');
  go.open();
  const all: string[] = [];
  const seen = await Promise.all(readers);
  all.push(...(await eventIds(door, `/v1/tasks/${task}/events`)));
  expect(all.length).toBeGreaterThan(notes);
  for (const one of seen) expect(one).toEqual(all);
  // Its own bound decides when the one that does not read is let go; until then it only waits.
  await eventually(async () => (await open()) === 0, 'the end of every stream');
  const metrics = (await door.call('GET', '/metrics')).body as string;
  expect(metrics).toMatch(/tollbridge_streams_cut_off_total\{kind="sse"\} [01]\n/);
}, 120_000);

test('a reader that stops reading is cut off at the bound and finds in its stream where to go on', async () => {
  const go = latch();
  const door = await openDoor({
    agents: [
      scriptedAgent(async (sink, _work, signal) => {
        await go.promise;
        for (let at = 1; at <= 800 && !signal.aborted; at += 1) {
          await sink.emit({ event: 'vendor.tollbridge.note', payload: { at, filler: 'x'.repeat(30_000) } });
        }
        await untilAborted(signal);
        return { state: 'CANCELED' };
      }),
    ],
    config: { stream: { stall_ms: 300, buffer_bytes: 64 * 1024 } },
  });
  const { task } = await door.task();
  const { hostname, port } = new URL(door.url);
  let received = '';
  const socket = connect(Number(port), hostname, () =>
    socket.write(
      `GET /v1/tasks/${task}/stream HTTP/1.1\r\nHost: ${hostname}:${port}\r\n` +
        `Authorization: Bearer ana\r\nHarn-Agents-Protocol-Version: ${VERSION}\r\n\r\n`,
    ),
  );
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  socket.pause();
  go.open();
  const cut = async () => ((await door.call('GET', '/metrics')).body as string).includes('cut_off_total{kind="sse"} 1');
  await eventually(cut, 'the reader to be cut off');
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.resume();
  await new Promise((resolve) => socket.once('close', resolve));
  const at = received.lastIndexOf('event: error');
  const resume = /"resume_from":"(evt_\d{16})"/.exec(received.slice(at))?.[1];
  expect(resume).toMatch(/^evt_/);
  expect(received).toContain(`id: ${resume}\nevent: vendor.tollbridge.note\n`);
  const lastWhole = [...received.matchAll(/id: (evt_\d{16})\nevent: vendor/g)].at(-1)?.[1];
  const on = await follow(door, `/v1/tasks/${task}/stream`, { 'last-event-id': lastWhole! });
  const next = await on.next();
  expect(Number(next!.id!.slice(4))).toBe(Number(lastWhole!.slice(4)) + 1);
  on.stop();
}, 60_000);
