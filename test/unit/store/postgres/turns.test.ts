/** Gateways that write at the same time take turns; that saves work, and nothing rests on it. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { eventId } from '../../../../src/model/events.ts';
import { lockKey } from '../../../../src/store/postgres/location.ts';
import { eventually } from '../../../support/eventually.ts';
import { PASSWORD, USER } from '../../../support/postgres/server.ts';
import { all, append, note, postgresHome } from './home.ts';

const home = postgresHome();
const WRITERS = 6;
const EACH = 15;

async function writeAtOnce(location: ReturnType<typeof home.database.location>) {
  const stores = await Promise.all([home.open(location), home.open(location), home.open(location)]);
  await Promise.all(
    stores.flatMap((store, at) =>
      Array.from({ length: WRITERS }, async (_, writer) => {
        for (let n = 0; n < EACH; n++) await append(store, note(`task_${at}_${writer}`, { n }));
      }),
    ),
  );
  const ids = (await all(stores[0]!)).map(({ id }) => id);
  expect(ids).toEqual(Array.from({ length: 3 * WRITERS * EACH }, (_, n) => eventId(n + 1)));
}

/** How many connections have, or wait for, the turn of this log. */
async function turns(schema: string): Promise<unknown> {
  const key = BigInt.asUintN(64, BigInt(lockKey(schema, 'turn')));
  const rows = await home.database.query(
    `SELECT count(*) FILTER (WHERE granted)::int, count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND objid = $2`,
    [(key >> 32n).toString(), (key & 0xffff_ffffn).toString()],
  );
  return rows[0];
}

test('three gateways at once leave a log without gaps, and no turn is kept when nothing waits', async () => {
  const location = home.database.location();
  await writeAtOnce(location);
  await eventually(async () => String(await turns(location.schema)) === '0,0', 'the turns to end');
});

test('a gateway that keeps its turn for ever delays the others and stops none of them', async () => {
  const location = home.database.location();
  const { port, name: database } = home.database;
  const client = new pg.Client({ host: '127.0.0.1', port, user: USER, password: PASSWORD, database });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('SELECT pg_advisory_lock($1::bigint)', [lockKey(location.schema, 'turn')]);
  await writeAtOnce(location);
});

test.each(['repeatable read', 'serializable'])(
  'a database whose transactions are %s by default is used as any other',
  async (level) => {
    const { name } = home.database;
    onTestFinished(
      async () => void (await home.database.query(`ALTER DATABASE ${name} RESET default_transaction_isolation`)),
    );
    await home.database.query(`ALTER DATABASE ${name} SET default_transaction_isolation = '${level}'`);
    const location = home.database.location();
    await writeAtOnce(location);
    const [one, two] = [await home.open(location), await home.open(location)];
    for (let n = 0; n < 20; n++) {
      const leases = await Promise.all([one.lease(`lease ${n}`), two.lease(`lease ${n}`)]);
      expect(leases.filter(Boolean)).toHaveLength(1);
      await Promise.all(leases.map((lease) => lease?.close()));
    }
  },
);
