/** `store copy`, as it is typed, killed in the middle: the copy says that it is incomplete, the source is whole, and the next try succeeds. */
import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { projector } from '../../src/core/events/projector.ts';
import { openStore } from '../../src/store/index.ts';
import { createDatabase, PASSWORD } from '../support/postgres/server.ts';
import { aLog, program, ran } from '../support/process/cli.ts';

test('a copy that is killed', { timeout: 120_000 }, async () => {
  const database = await createDatabase();
  const location = { ...database.location(), schema: 'killed' };
  const { dir } = await aLog(['hello', 'read plan']);
  const options = { env: { TOLLBRIDGE_SECRET_password: PASSWORD } };
  const target = [database.url, '--to-secret', 'password', '--to-schema', 'killed'];
  const copy = ['--data', dir, 'store', 'copy', dir, ...target];
  const open = () => openStore(location, { clock: systemClock, projector });
  try {
    // The tables are there, without a log, and writing receipts takes for ever.
    await (await open()).close();
    await database.query(`CREATE FUNCTION killed.wait() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$`);
    await database.query('CREATE TRIGGER waits BEFORE INSERT ON killed.receipts EXECUTE FUNCTION killed.wait()');
    const { child, says, ended } = program(copy, options);
    await says(/^copied \d+ rows? of idempotency$/m);
    child.kill('SIGKILL');
    await ended;

    await expect(open()).rejects.toThrow(/is an incomplete copy of a log/);
    expect(await ran(['--data', dir, 'verify', 'all'])).toMatchObject({ code: 0 });
    // The database ends what the dead process left behind.
    await database.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    await database.query('DROP TRIGGER waits ON killed.receipts');
    expect(await ran(copy, '', options)).toMatchObject({ code: 0, out: expect.stringContaining('2 receipts') });
    const checked = await ran(
      ['--data', dir, 'store', 'check', database.url, '--secret', 'password', '--schema', 'killed'],
      '',
      options,
    );
    expect(checked).toMatchObject({ code: 0 });
    const store = await open();
    expect((await store.tree()).size).toBe(2);
    await store.close();
  } finally {
    await database.drop();
  }
});
