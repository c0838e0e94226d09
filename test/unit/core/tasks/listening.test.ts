/** Tasks that run here hear what is wanted of them, all with one look at the log, whatever happens to that look. */
import { expect, test, vi } from 'vitest';
import { createListening } from '../../../../src/core/tasks/task-requests.ts';
import type { CoreEvent } from '../../../../src/model/events.ts';
import { Fault } from '../../../../src/model/faults.ts';
import type { Store } from '../../../../src/ports/index.ts';

const QUIET = { info() {}, warn() {}, error() {} };
const event = (id: string, task_id: string | null) => ({ id, task_id, event: 'user.cancel_requested' }) as CoreEvent;

type Look = {
  after: unknown;
  of: string;
  signal: AbortSignal;
  say(event: CoreEvent): void;
  fail(cause: unknown): void;
};

/** A log that gives each follower the events a test tells it to. */
function fakeLog() {
  const looks: Look[] = [];
  const follow: Store['follow'] = ({ stream, after }, signal) => {
    const said: CoreEvent[] = [];
    let failed: unknown;
    let wake = () => {};
    const look: Look = {
      after,
      of: stream.of,
      signal,
      say: (one) => {
        said.push(one);
        wake();
      },
      fail: (cause) => {
        failed = cause;
        wake();
      },
    };
    looks.push(look);
    signal.addEventListener('abort', () => wake());
    return (async function* () {
      while (!signal.aborted) {
        for (const one of said.splice(0)) yield one;
        if (failed) throw failed;
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (said.length > 0 || failed || signal.aborted) resolve();
        });
      }
    })();
  };
  return { looks, follow };
}

test('many tasks share one look, each hears its own, and the last one to stop ends it', async () => {
  const log = fakeLog();
  const listening = createListening(log, QUIET, ['user.cancel_requested']);
  const received: string[] = [];
  const a = listening.to('task_a', 'evt_5', ({ id }) => received.push(`a ${id}`));
  const b = listening.to('task_b', 'evt_9', ({ id }) => received.push(`b ${id}`));
  expect(log.looks.map(({ of, after }) => [of, after])).toEqual([['all', 'evt_5']]);
  for (const one of [
    event('evt_6', 'task_b'),
    event('evt_7', null),
    event('evt_8', 'task_c'),
    event('evt_10', 'task_a'),
  ]) {
    log.looks[0]?.say(one);
  }
  await vi.waitFor(() => expect(received).toEqual(['b evt_6', 'a evt_10']));
  log.looks[0]?.say({ ...event('evt_11', 'task_a'), event: 'vendor.tollbridge.note' });
  a.close();
  expect(log.looks[0]?.signal.aborted).toBe(false);
  b.close();
  expect(log.looks[0]?.signal.aborted).toBe(true);
  listening.to('task_d', 'evt_20', () => {}).close();
  expect(log.looks.map(({ after }) => after)).toEqual(['evt_5', 'evt_20']);
});

test('what was said before a task began to listen is received all the same', async () => {
  const log = fakeLog();
  const listening = createListening(log, QUIET, ['user.cancel_requested']);
  const received: string[] = [];
  const first = listening.to('task_a', 'evt_005', ({ id }) => received.push(`a ${id}`));
  for (const one of [event('evt_006', 'task_b'), event('evt_007', 'task_b'), event('evt_008', 'task_a')]) {
    log.looks[0]?.say(one);
  }
  await vi.waitFor(() => expect(received).toEqual(['a evt_008']));
  const second = listening.to('task_b', 'evt_006', ({ id }) => received.push(`b ${id}`));
  expect(received).toEqual(['a evt_008', 'b evt_007']);
  expect(log.looks.length).toBe(1);
  first.close();
  second.close();
});

test('a task that may have missed something looks for itself', async () => {
  const log = fakeLog();
  const listening = createListening(log, QUIET, ['user.cancel_requested']);
  const first = listening.to('task_a', 'evt_00005', () => {});
  // From before the shared look began.
  const old = listening.to('task_b', 'evt_00003', () => {});
  expect(log.looks.map(({ of, after }) => [of, after])).toEqual([
    ['all', 'evt_00005'],
    ['task', undefined],
  ]);
  // So much was said meanwhile that not all of it is kept.
  const reported: string[] = [];
  for (let n = 6; n < 2060; n += 1) log.looks[0]?.say(event(`evt_${String(n).padStart(5, '0')}`, 'task_c'));
  log.looks[0]?.say(event('evt_99999', 'task_a'));
  const ear = listening.to('task_a', 'evt_00005', ({ id }) => reported.push(id));
  await vi.waitFor(() => expect(reported).toEqual(['evt_99999']));
  const late = listening.to('task_c', 'evt_00010', () => {});
  expect(log.looks.length).toBe(3);
  const recent: string[] = [];
  const timely = listening.to('task_c', 'evt_02057', ({ id }) => recent.push(id));
  expect(log.looks.length).toBe(3);
  expect(recent).toEqual(['evt_02058', 'evt_02059']);
  for (const one of [first, old, ear, late, timely]) one.close();
});

test('a look that fails goes on after what was received last', async () => {
  const log = fakeLog();
  const listening = createListening(log, QUIET, ['user.cancel_requested']);
  const received: string[] = [];
  const ear = listening.to('task_a', 'evt_1', ({ id }) => received.push(id));
  log.looks[0]?.say(event('evt_2', 'task_a'));
  await vi.waitFor(() => expect(received).toEqual(['evt_2']));
  log.looks[0]?.fail(new Fault('unavailable', 'gone'));
  await vi.waitFor(() => expect(log.looks.length).toBe(2), { timeout: 5_000 });
  expect(log.looks[1]?.after).toBe('evt_2');
  log.looks[1]?.fail(new Fault('cursor_expired', 'pruned'));
  await vi.waitFor(() => expect(log.looks.length).toBe(3), { timeout: 5_000 });
  expect(log.looks[2]?.after).toBe('now');
  log.looks[2]?.say(event('evt_9', 'task_a'));
  await vi.waitFor(() => expect(received).toEqual(['evt_2', 'evt_9']));
  ear.close();
});

test('a task that was running before is read from its beginning, with a look of its own', async () => {
  const log = fakeLog();
  const received: string[] = [];
  const ear = createListening(log, QUIET, ['user.cancel_requested']).to('task_a', undefined, ({ id }) =>
    received.push(id),
  );
  expect(log.looks.map(({ of, after }) => [of, after])).toEqual([['task', undefined]]);
  log.looks[0]?.say(event('evt_1', 'task_a'));
  await vi.waitFor(() => expect(received).toEqual(['evt_1']));
  ear.close();
  expect(log.looks[0]?.signal.aborted).toBe(true);
});
