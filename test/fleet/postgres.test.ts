/** All stories at every door, with the log of the three gateways in PostgreSQL. */
import { afterAll, beforeAll } from 'vitest';
import { createDatabase, PASSWORD, type TestDatabase } from '../support/postgres/server.ts';
import { type FleetSetup, openFleetSetup } from './setup.ts';
import { fleetStories } from './stories.ts';

let database: TestDatabase;
let setup: FleetSetup;
beforeAll(async () => {
  database = await createDatabase();
  setup = await openFleetSetup(3, {
    config: { url: database.url, secret: 'store' },
    env: { TOLLBRIDGE_SECRET_store: PASSWORD },
    location: { url: database.url, password: PASSWORD },
  });
}, 120_000);
afterAll(async () => {
  await setup?.stop();
  await database?.drop();
}, 60_000);

fleetStories(() => setup, 1);
