/** Connections that break: no answered event is lost, none is written twice, and the outcome of a commit is found out. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { lookAtDatabase } from '../../../../src/cli/doctor/database.ts';
import { createClock } from '../../../../src/core/clock.ts';
import { eventually } from '../../../support/eventually.ts';
import { startProxy } from '../../../support/postgres/proxy.ts';
import { all, append, note, postgresHome } from './home.ts';

const home = postgresHome();

async function throughProxy() {
  const proxy = await startProxy(home.database.port);
  onTestFinished(() => proxy.close());
  const location = home.database.location();
  const through = { ...location, url: location.url.replace(`:${home.database.port}/`, `:${proxy.port}/`) };
  return { proxy, location, through };
}

const payloads = async (store: Parameters<typeof all>[0]) => (await all(store)).map(({ payload }) => payload.n);
const holds = (text: string) => (bytes: Buffer) => bytes.includes(text);

test('a commit whose answer is lost is written once, and answered as written', async () => {
  const { proxy, location, through } = await throughProxy();
  const store = await home.open(through);
  await append(store, note('task_a', { n: 1 }));
  // The tag of the one statement that writes: by then it is committed.
  const cut = proxy.cutBefore(holds('write_1'));
  const written = append(store, note('task_a', { n: 2 }));
  await cut;
  expect((await written).events[0]).toMatchObject({ id: 'evt_0000000000000002', sequence: 2 });
  await append(store, note('task_a', { n: 3 }));
  expect(await payloads(await home.open(location))).toEqual([1, 2, 3]);
});

test('a commit with the lock held whose answer is lost is written once, and answered as written', async () => {
  const { proxy, location, through } = await throughProxy();
  const store = await home.open(through);
  const other = await home.open(location);
  await append(store, note('task_a', { n: 1 }));
  // Overtaken: what the store decided without the lock is void, so it decides again with the lock held.
  await Promise.all([append(other, note('task_a', { n: 2 })), append(store, note('task_a', { n: 3 }))]);
  const cut = proxy.cutBefore(holds('COMMIT\0'));
  const written = Promise.all(
    [4, 5].map(async (n) => {
      await append(other, note('task_b', { n: 0 }));
      await append(store, note('task_a', { n }));
    }),
  );
  await Promise.race([cut, written]);
  proxy.reset();
  await written;
  expect((await payloads(other)).filter((n) => n !== 0).toSorted()).toEqual([1, 2, 3, 4, 5]);
});

test('a write that reaches the database after its store gave up on it changes nothing', async () => {
  const { proxy, location, through } = await throughProxy();
  const store = await home.open(through);
  await append(store, note('task_a', { n: 1 }));
  const late = proxy.delay(holds('write_1'));
  const written = append(store, note('task_a', { n: 2 }));
  await late.cut;
  expect((await written).events[0]).toMatchObject({ id: 'evt_0000000000000002' });
  late.release();
  await append(store, note('task_a', { n: 3 }));
  const reader = await home.open(location);
  await eventually(async () => (await payloads(reader)).length >= 3, 'the three events');
  expect(await payloads(reader)).toEqual([1, 2, 3]);
});

test('backends that are ended under load lose no answered event and write none twice', async () => {
  const location = home.database.location();
  const store = await home.open({ ...location, lockTimeoutMs: 20_000 });
  const answered: number[] = [];
  let stop = false;
  let ended = 0;
  const killing = (async () => {
    while (!stop) {
      const rows = await home.database.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tollbridge%'
           AND datname = current_database() AND state <> 'idle' ORDER BY random() LIMIT 1`,
      );
      ended += rows.length;
    }
  })();
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      for (let n = 0; n < 25 || ended < 3; n++) {
        const id = writer * 100_000 + n;
        const idempotency = { scope: `write ${id}`, body: String(id) };
        const unit = { idempotency, decide: () => ({ events: [note(`task_${writer}`, { n: id })] }) };
        await eventually(
          () =>
            store.commit(unit).then(
              () => true,
              (thrown) => {
                expect(thrown).toMatchObject({ kind: 'unavailable' });
                return false;
              },
            ),
          `write ${id}`,
        );
        answered.push(id);
      }
    }),
  );
  stop = true;
  await killing;
  expect(ended).toBeGreaterThan(2);
  const found = (await payloads(store)) as number[];
  expect(found.toSorted((a, b) => a - b)).toEqual(answered.toSorted((a, b) => a - b));
});

test('followers go on where they were when the connections come back, and miss nothing', async () => {
  const { proxy, location, through } = await throughProxy();
  const store = await home.open(through);
  const other = await home.open(location);
  const stop = new AbortController();
  const seen: unknown[] = [];
  const following = (async () => {
    for await (const { payload } of store.follow({ stream: { of: 'all' } }, stop.signal)) seen.push(payload.n);
  })();
  await append(other, note('task_a', { n: 1 }));
  await eventually(() => seen.length === 1, 'the first event');
  proxy.reset();
  await append(other, note('task_a', { n: 2 }));
  await eventually(() => seen.length === 2, 'the event written after the reset');
  await append(other, note('task_a', { n: 3 }));
  await eventually(() => seen.length === 3, 'the event after that');
  stop.abort();
  await following;
  expect(seen).toEqual([1, 2, 3]);
});

test.each([undefined, 'now'] as const)(
  'a stream begins although connections cannot be made for a moment, after %s',
  async (after) => {
    const location = home.database.location();
    let refused = 0;
    let most = 0;
    // As while a database restarts.
    const proxy = await startProxy(() => {
      if (refused >= most) return home.database.port;
      refused += 1;
      return 1;
    });
    onTestFinished(() => proxy.close());
    const store = await home.open({
      ...location,
      url: location.url.replace(`:${home.database.port}/`, `:${proxy.port}/`),
    });
    await append(store, note('task_a', { n: 1 }));
    most = 12;
    proxy.reset();
    const stop = new AbortController();
    const events = store.follow({ stream: { of: 'all' }, ...(after && { after }) }, stop.signal);
    let found: unknown;
    const first = events[Symbol.asyncIterator]()
      .next()
      .then(({ value }) => {
        found = value?.payload.n;
      });
    await eventually(() => refused === most, 'connections to be refused');
    // Nobody can say where `now` is while the database cannot be asked.
    await eventually(async () => {
      if (found === undefined) await append(store, note('task_a', { n: 2 }));
      return found;
    }, 'an event');
    await first;
    expect(found).toBe(after ? 2 : 1);
    stop.abort();
  },
);

test('a notice that nobody heard is made up for within a second', async () => {
  const location = home.database.location();
  const [store, other] = [await home.open(location), await home.open(location)];
  const stop = new AbortController();
  const seen: unknown[] = [];
  const following = (async () => {
    for await (const { payload } of store.follow({ stream: { of: 'all' } }, stop.signal)) seen.push(payload.n);
  })();
  await append(other, note('task_a', { n: 1 }));
  await eventually(() => seen.length === 1, 'the first event');
  await home.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tollbridge notices' AND datname = current_database()`,
  );
  await append(other, note('task_a', { n: 2 }));
  await eventually(() => seen.length === 2, 'the event that was not announced', { timeoutMs: 5_000 });
  stop.abort();
  await following;
});

test('a database that cannot be written refuses with the reason, and is written again without a restart', {
  timeout: 60_000,
}, async () => {
  const location = home.database.location();
  const store = await home.open(location);
  await append(store, note('task_a', { n: 1 }));
  const name = `${location.url} (schema ${location.schema})`;
  await home.database.query(`ALTER DATABASE ${home.database.name} SET default_transaction_read_only = on`);
  await home.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tollbridge%' AND datname = current_database()`,
  );
  const message = `${name} is read-only: it is a standby, or was demoted. Point the store at the primary`;
  await eventually(
    () => append(store, note('task_a', { n: 2 })).catch((thrown) => thrown.message === message),
    'the refusal',
    // A write whose connection was just ended is asked after, for fifteen seconds: a database that is read-only does not say.
    { timeoutMs: 30_000 },
  );
  expect(store.trouble()).toBe(message);
  await home.database.query(`ALTER DATABASE ${home.database.name} SET default_transaction_read_only = off`);
  await home.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tollbridge%' AND datname = current_database()`,
  );
  await eventually(
    () =>
      append(store, note('task_a', { n: 3 })).then(
        () => true,
        () => false,
      ),
    'the next write',
  );
  expect(store.trouble()).toBeUndefined();
  expect(await payloads(store)).toEqual([1, 3]);
});

test('a database without room refuses with the reason, keeps what it has, and is written again when there is room', async () => {
  const location = home.database.location();
  const store = await home.open(location);
  await append(store, note('task_a', { n: 1 }));
  const { schema } = location;
  // As the server reports a full disk, at the moment when it finds out: in the middle of a write.
  await home.database.query(`CREATE FUNCTION ${schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`);
  await home.database.query(
    `CREATE TRIGGER full_disk AFTER INSERT ON ${schema}.rows EXECUTE FUNCTION ${schema}.full()`,
  );
  const message = `no room left to write ${location.url} (schema ${schema}): free some disk space of the database`;
  for (const n of [2, 3])
    await expect(append(store, note('task_a', { n }))).rejects.toMatchObject({ kind: 'unavailable', message });
  expect(store.trouble()).toBe(message);
  expect(await payloads(store)).toEqual([1]);
  await home.database.query(`DROP TRIGGER full_disk ON ${schema}.rows`);
  await append(store, note('task_a', { n: 4 }));
  expect(store.trouble()).toBeUndefined();
  expect(await payloads(store)).toEqual([1, 4]);
  expect((await all(store)).map(({ sequence }) => sequence)).toEqual([1, 2]);
});

test('times are those of the database, whatever the clock of the machine says, also while it changes', async () => {
  const location = home.database.location();
  const now = Date.now.bind(Date);
  let ahead = 3_600_000;
  const spied = vi.spyOn(Date, 'now').mockImplementation(() => now() + ahead);
  onTestFinished(() => spied.mockRestore());
  const clock = createClock();
  const store = await home.open({ ...location, clock });
  const away = () => Math.abs(Date.parse(clock.now()) - now());
  expect(away()).toBeLessThan(1_000);
  const { events } = await append(store, note('task_a', { n: 1 }));
  expect(Math.abs(Date.parse(events[0]!.created_at) - now())).toBeLessThan(1_000);
  const clockAt = async () => (await lookAtDatabase(location)).filter(({ check }) => check === 'clock');
  expect(await clockAt()).toMatchObject([
    { state: 'warn', says: expect.stringMatching(/is 3600\.\d s ahead of that of/) },
  ]);
  ahead = -600_000;
  await eventually(() => away() < 1_000, 'the clock to be corrected');
  ahead = 0;
  await eventually(() => away() < 1_000, 'the clock to be corrected');
  expect(await clockAt()).toEqual([]);
  await store.close();
  expect(Math.abs(Date.parse(clock.now()) - Date.now())).toBeLessThan(1_000);
});
