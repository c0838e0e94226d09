/** Leases over a network: lost with the connection, and fenced. */
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { startProxy } from '../../../support/postgres/proxy.ts';
import { all, append, note, postgresHome } from './home.ts';

const home = postgresHome();
const lost = expect.objectContaining({ kind: 'conflict', details: { lease: 'session:1' } });

test('a holder that was cut off cannot write once another has taken its lease', async () => {
  const proxy = await startProxy(home.database.port);
  onTestFinished(() => proxy.close());
  const location = home.database.location();
  const other = await home.open({ ...location, leaseTimeoutMs: 500 });
  // Its leases go through the proxy, its writes do not: as if it was paused between the two.
  const directUrl = location.url.replace(`:${home.database.port}/`, `:${proxy.port}/`);
  const store = await home.open({ ...location, directUrl, leaseTimeoutMs: 500 });
  const first = await store.lease('session:1');
  expect(await other.lease('session:1')).toBeUndefined();
  await store.commit({ lease: first!, decide: () => ({ events: [note('task_a', { by: 'first' })] }) });
  proxy.hold();
  const second = await eventually(() => other.lease('session:1'), 'the lease of a silent holder');
  expect(second.epoch).toBeGreaterThan(first!.epoch);
  await eventually(() => first!.lost.aborted, 'the notice');
  await expect(
    store.commit({ lease: first!, decide: () => ({ events: [note('task_a', { by: 'late' })] }) }),
  ).rejects.toEqual(lost);
  // A holder that has not noticed yet, as one that was stopped and wakes up, is refused by the epoch.
  const unaware = { ...first!, lost: new AbortController().signal };
  await expect(
    store.commit({ lease: unaware, decide: () => ({ events: [note('task_a', { by: 'unaware' })] }) }),
  ).rejects.toEqual(lost);
  await other.commit({ lease: second, decide: () => ({ events: [note('task_a', { by: 'second' })] }) });
  expect((await all(other)).map(({ payload }) => payload.by)).toEqual(['first', 'second']);
});

test('a batch that was decided before the lease was taken is void', async () => {
  const location = home.database.location();
  const [store, other] = [await home.open(location), await home.open(location)];
  const first = await store.lease('session:1');
  const under = (n: number) => ({
    lease: { ...first!, lost: new AbortController().signal },
    decide: () => ({ events: [note('task_a', { n })] }),
  });
  await store.commit(under(0));
  await home.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tollbridge leases' AND datname = current_database()`,
  );
  const outcomes: string[] = [];
  let taken = false;
  const writing = (async () => {
    for (let n = 1; !outcomes.includes('refused'); n++) {
      const before = taken;
      const outcome = await store.commit(under(n)).then(
        () => 'written',
        (thrown) => {
          expect(thrown).toEqual(lost);
          return 'refused';
        },
      );
      // What was begun after the lease was another's is never written.
      if (before) expect(outcome).toBe('refused');
      outcomes.push(outcome);
    }
  })();
  const second = await eventually(() => other.lease('session:1'), 'the lease');
  taken = true;
  await writing;
  expect(outcomes.at(-1)).toBe('refused');
  await other.commit({ lease: second, decide: () => ({ events: [note('task_a', { n: -1 })] }) });
  expect((await all(other)).at(-1)?.payload.n).toBe(-1);
});

test('all leases of a store are lost with their connection, and can be taken again', async () => {
  const store = await home.open(home.database.location());
  const leases = await Promise.all(['a', 'b', 'c'].map((name) => store.lease(name)));
  await home.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tollbridge leases' AND datname = current_database()`,
  );
  await eventually(() => leases.every((lease) => lease!.lost.aborted), 'the notice');
  const again = await eventually(() => store.lease('a'), 'the lease');
  expect(again.epoch).toBeGreaterThan(leases[0]!.epoch);
  expect((await append(store, note('task_a'))).events).toHaveLength(1);
});

test('a session that ends late takes nothing from the one that came after it', async () => {
  const proxy = await startProxy(home.database.port);
  onTestFinished(() => proxy.close());
  const location = home.database.location();
  const directUrl = location.url.replace(`:${home.database.port}/`, `:${proxy.port}/`);
  const store = await home.open({ ...location, directUrl, leaseTimeoutMs: 500 });
  const first = await store.lease('a');
  proxy.hold();
  await eventually(() => first!.lost.aborted, 'the notice');
  // The old connection hears of its end when the new one is there already.
  proxy.resume();
  const second = await store.lease('b');
  const third = await store.lease('c');
  const connections = async () => {
    const [[count]] = (await home.database.query(
      `SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'tollbridge leases' AND datname = current_database()`,
    )) as [[number]];
    return count;
  };
  await eventually(async () => (await connections()) === 1, 'one session for both');
  expect([second!.lost.aborted, third!.lost.aborted]).toEqual([false, false]);
});
