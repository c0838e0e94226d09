/** The SQLite store keeps every promise a store makes. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore, type SqliteStore } from '../src/store/sqlite.ts';
import { storeContract } from './contracts/store.ts';

storeContract('SQLite', async (deps) => {
  const home = await mkdtemp(join(tmpdir(), 'store-'));
  const all: SqliteStore[] = [];
  const another = async () => {
    const store = await createSqliteStore({ path: join(home, 'log.db'), ...deps });
    all.push(store);
    return store;
  };
  let current = await another();
  return {
    store: current,
    async reopen() {
      await current.close();
      current = await another();
      return current;
    },
    second: another,
    async cleanup() {
      await Promise.all(all.map((store) => store.close()));
      await rm(home, { recursive: true, force: true });
    },
  };
});
