/** Reading page by page, and asking for the same thing again. */
import { describe, expect, test } from 'vitest';
import { patient, quick } from '../../support/gateway/agents.ts';
import { type Answer, expectFault, openDoor, text } from '../../support/harn/gateway.ts';

describe('pages', () => {
  test('follow each other without gap or repeat, whatever is added meanwhile', async () => {
    const { call } = await openDoor();
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) {
      ids.push((await call('POST', '/v1/workspaces', { name: `w${n}`, root: 'harn://w' })).body.id);
    }
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const { body }: Answer = await call('GET', `/v1/workspaces?limit=3${cursor ? `&cursor=${cursor}` : ''}`);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      expect(body.page.has_more).toBe(body.page.next_cursor !== null);
      cursor = body.page.next_cursor;
      pages += 1;
    } while (cursor);
    expect([seen, pages]).toEqual([ids, 3]);
  });

  test('limits and cursors outside their bounds are refused by name', async () => {
    const { call, room } = await openDoor();
    const { workspace } = await room();
    for (const limit of ['0', '201', '-1', '1.5', 'x', '', '0x10', '1e2']) {
      const answer = await call('GET', `/v1/tasks?limit=${limit}`);
      expectFault(answer, 400, 'invalid_request', 'request_error');
      expect(answer.body.error.param).toBe('limit');
    }
    for (const limit of ['1', '200']) expect((await call('GET', `/v1/tasks?limit=${limit}`)).status).toBe(200);
    const forged = Buffer.from(`after ${workspace}`).toString('base64url');
    for (const cursor of ['nonsense', '!!', forged, Buffer.from('after task_x').toString('base64url')]) {
      const answer = await call('GET', `/v1/tasks?cursor=${cursor}`);
      expectFault(answer, 400, 'invalid_request', 'request_error');
      expect(answer.body.error.param).toBe('cursor');
    }
    const twice = await call('GET', '/v1/tasks?limit=1&limit=2');
    expectFault(twice, 400, 'invalid_request', 'request_error');
  });

  test('event ranges are the same each time, exclude their cursor, and lead on from their end', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task, session, workspace } = await submit();
    await at.until(task);
    const path = `/v1/tasks/${task}/events`;
    const { body: all } = await call('GET', path);
    expect((await call('GET', path)).body).toEqual(all);
    expect(all.data.at(-1).event).toBe('task.completed');
    expect(all.page).toEqual({ has_more: false, next_cursor: all.data.at(-1).id });
    const ids = all.data.map(({ id }: { id: string }) => id);
    expect(ids).toEqual([...ids].toSorted());

    const rest = await call('GET', `${path}?after_event_id=${ids[0]}`);
    expect(rest.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(1));
    const page = await call('GET', `${path}?limit=2`);
    expect(page.body.page).toEqual({ has_more: true, next_cursor: ids[1] });
    expect((await call('GET', `${path}?cursor=${ids[1]}&limit=1`)).body.data[0].id).toBe(ids[2]);
    expect((await call('GET', `/v1/events/${ids[3]}`)).body).toEqual(all.data[3]);

    const counts = async (query: string) => (await call('GET', `/v1/events?limit=200&${query}`)).body.data.length;
    expect(await counts(`task_id=${task}`)).toBe(ids.length);
    expect(await counts(`task_id=${task}&session_id=${session}&workspace_id=${workspace}`)).toBe(ids.length);
    expect(await counts(`task_id=${task}&session_id=other`)).toBe(0);
    expect(await counts('task_id=hidden')).toBe(0);
    expect(await counts(`workspace_id=${workspace}`)).toBeGreaterThan(ids.length);
    expectFault(await call('GET', '/v1/tasks/hidden/events'), 404, 'resource_not_found', 'not_found_error');
    expectFault(await call('GET', `${path}?after_event_id=garbage`), 410, 'cursor_expired', 'request_error');
  });
});

describe('the same request again', () => {
  test('finds what the first one made; another body under the same key is refused', async () => {
    const { call, room } = await openDoor({ agents: [patient()] });
    const { session, workspace } = await room();
    const key = { 'idempotency-key': 'k1' };
    for (const [path, body, other] of [
      ['/v1/workspaces', { name: 'a', root: 'r' }, { name: 'b', root: 'r' }],
      ['/v1/sessions', { workspace_id: workspace }, { workspace_id: workspace, metadata: { x: 1 } }],
      [`/v1/sessions/${session}/tasks`, { input: text('a') }, { input: text('b') }],
      [`/v1/sessions/${session}/messages`, { message: text('a') }, { message: text('b') }],
      [`/v1/sessions/${session}/branches`, { kind: 'session', base_ref: 'm' }, { kind: 'task', base_ref: 'm' }],
      [
        '/v1/artifacts',
        { kind: 'log', mime_type: 'a/b', visibility: 'public', workspace_id: workspace },
        { kind: 'file', mime_type: 'a/b', visibility: 'public', workspace_id: workspace },
      ],
      [`/v1/sessions/${session}/fork`, {}, { metadata: { x: 1 } }],
    ] as const) {
      const first = await call('POST', path, body, key);
      const reordered = JSON.stringify(Object.fromEntries(Object.entries(body).toReversed()), null, 2);
      const second = await call('POST', path, reordered, key);
      expect([second.status, second.body.id], path).toEqual([first.status, first.body.id]);
      expectFault(await call('POST', path, other, key), 409, 'idempotency_key_reused', 'conflict_error');
    }
  });

  test('a hundred at once make one', async () => {
    const { call, room } = await openDoor({ agents: [patient()] });
    const { session } = await room();
    const many = await Promise.all(
      Array.from({ length: 100 }, () =>
        call('POST', `/v1/sessions/${session}/tasks`, { input: text('once') }, { 'idempotency-key': 'same' }),
      ),
    );
    expect(new Set(many.map(({ body }) => body.id)).size).toBe(1);
    expect((await call('GET', `/v1/sessions/${session}/tasks`)).body.data).toHaveLength(1);
  });

  test('keys are their holder’s own, and have bounds', async () => {
    const { call, room } = await openDoor({
      agents: [patient()],
      people: { bo: { id: 'bo', kind: 'person', scopes: ['*'] } },
    });
    const { session } = await room();
    const path = `/v1/sessions/${session}/tasks`;
    const mine = await call('POST', path, { input: text('a') }, { 'idempotency-key': 'k' });
    const theirs = await call(
      'POST',
      path,
      { input: text('a') },
      { 'idempotency-key': 'k', authorization: 'Bearer bo' },
    );
    expect(theirs.body.id).not.toBe(mine.body.id);
    const long = await call('POST', path, { input: text('a') }, { 'idempotency-key': 'k'.repeat(256) });
    expectFault(long, 400, 'invalid_request', 'request_error');
  });
});
