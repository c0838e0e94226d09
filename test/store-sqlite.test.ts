import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { EventDraft } from '../src/model/events.ts';
import type { Projector } from '../src/ports.ts';
import { createSqliteStore, type SqliteStore } from '../src/store/sqlite.ts';

let dir = '';
let open: SqliteStore[] = [];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'store-'));
});
afterEach(async () => {
  await Promise.all(open.map((store) => store.close()));
  open = [];
  await rm(dir, { recursive: true, force: true });
});

const nothing: Projector = { touches: () => [], apply: () => [] };
const clock = { now: () => '2026-11-16T00:00:00.000Z' };
async function start(): Promise<SqliteStore> {
  const store = await createSqliteStore({ path: join(dir, 'a', 'log.db'), clock, projector: nothing });
  open.push(store);
  return store;
}
const note = (task: string, n: number): EventDraft => ({
  event: 'vendor.tollbridge.note',
  resource: { object: 'task', id: task },
  payload: { n },
  task_id: task,
  session_id: 'session_1',
  workspace_id: 'workspace_1',
});

test('units that arrive together share one commit, and a follower sees them once and in order', async () => {
  const store = await start();
  const stop = new AbortController();
  const seen: string[] = [];
  const following = (async () => {
    for await (const event of store.follow({ stream: { of: 'session', id: 'session_1' } }, stop.signal)) {
      seen.push(`${event.id} ${event.resource.id}#${event.sequence}`);
      if (seen.length === 6) stop.abort();
    }
  })();
  await store.commit({ decide: () => ({ events: [note('task_a', 0)] }) });
  const before = store.commits();
  await Promise.all(
    ['task_a', 'task_b', 'task_a', 'task_b', 'task_a'].map((task, n) =>
      store.commit({ decide: () => ({ events: [note(task, n)] }) }),
    ),
  );
  expect(store.commits()).toBe(before + 1);
  await following;
  expect(seen).toEqual([
    'evt_0000000000000001 task_a#1',
    'evt_0000000000000002 task_a#2',
    'evt_0000000000000003 task_b#1',
    'evt_0000000000000004 task_a#3',
    'evt_0000000000000005 task_b#2',
    'evt_0000000000000006 task_a#4',
  ]);
});
