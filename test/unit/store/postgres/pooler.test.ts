/**
 * Behind a pooler in transaction mode, where each transaction may run on another connection than the one before it: one of this tree that
 * behaves as PgBouncer does, and PgBouncer itself where it is installed.
 */
import { expect, onTestFinished, test } from 'vitest';
import { eventId } from '../../../../src/model/events.ts';
import { pgbouncer, startPgBouncer } from '../../../support/postgres/pgbouncer.ts';
import { type Pooler, startPooler } from '../../../support/postgres/pooler.ts';
import { all, append, note, postgresHome } from './home.ts';

const home = postgresHome();

type Start = (to: number, database: string, size: number, ignored?: readonly string[]) => Promise<Pooler>;
const POOLERS: readonly (readonly [string, Start])[] = [
  [pgbouncer ? 'the pooler of this tree' : 'the pooler of this tree (PgBouncer is not installed here)', startPooler],
  ...(pgbouncer ? [['PgBouncer', startPgBouncer] as const] : []),
];

test.each(POOLERS)(
  'gateways that share a few connections commit, follow and keep leases as on their own: %s',
  {
    timeout: 60_000,
  },
  async (_, start) => {
    const { database } = home;
    const location = database.location();
    const pooler = await start(database.port, database.name, 3);
    onTestFinished(() => pooler.close());
    const url = location.url.replace(`:${database.port}/`, `:${pooler.port}/`);
    const through = { ...location, url, directUrl: location.url };
    const stores = await Promise.all([home.open(through), home.open(through)]);
    const stop = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const { id } of stores[0]!.follow({ stream: { of: 'all' } }, stop.signal))
        if (seen.push(id) === 80) stop.abort();
    })();
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        for (let n = 0; n < 10; n++) await append(stores[writer % 2]!, note(`task_${writer}`, { n }));
      }),
    );
    await following;
    expect(seen).toEqual(Array.from({ length: 80 }, (_, n) => eventId(n + 1)));
    expect(await pooler.moves()).toBeGreaterThan(20);

    const lease = await stores[0]!.lease('work');
    expect(await stores[1]!.lease('work')).toBeUndefined();
    await stores[0]!.commit({ lease: lease!, decide: () => ({ events: [note('task_0')] }) });
    await lease!.close();

    const bytes = new Uint8Array(600_000).fill(7);
    expect(await stores[1]!.blob(await stores[0]!.putBlob(bytes))).toEqual(bytes);
    await stores[1]!.rebuild();
    expect(await all(stores[1]!)).toHaveLength(81);
    const listening = await database.query(
      `SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'tollbridge %'
     GROUP BY application_name ORDER BY application_name`,
    );
    // On connections to the database itself: the pooler's own have no name.
    expect(listening.flat()).toEqual(expect.arrayContaining(['tollbridge leases', 'tollbridge notices']));
  },
);

test.each(POOLERS)('a pooler is not taken for the database: leases need the database itself: %s', async (_, start) => {
  const { database } = home;
  const location = database.location();
  // The second one takes what it does not know, and forgets it.
  for (const ignored of [[], ['statement_timeout']]) {
    const pooler = await start(database.port, database.name, 2, ignored);
    onTestFinished(() => pooler.close());
    const url = location.url.replace(`:${database.port}/`, `:${pooler.port}/`);
    await expect(home.open({ ...location, url })).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/is behind a pooler, .* name the database itself with store.direct_url$/),
    });
    await append(await home.open({ ...location, url, directUrl: location.url }), note('task_a'));
  }
});
