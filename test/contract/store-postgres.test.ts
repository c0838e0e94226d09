/** The store in PostgreSQL keeps every promise a store makes, whether batches are decided with the lock or without it. */
import { afterAll, beforeAll } from 'vitest';
import { createPostgresStore } from '../../src/store/postgres/index.ts';
import { createDatabase, type TestDatabase } from '../support/postgres/server.ts';
import { type ContractDeps, openedOn } from './store/scenes/scene.ts';
import { storeContract } from './store.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

storeContract('PostgreSQL', (deps: ContractDeps) => {
  const location = database.location();
  return openedOn(() => createPostgresStore({ ...location, ...deps }));
});
