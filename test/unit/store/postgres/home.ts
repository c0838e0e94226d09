/** A database for a test file, stores on it, and all of them closed afterwards. */
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { CoreEvent, EventDraft } from '../../../../src/model/events.ts';
import type { Store } from '../../../../src/ports/index.ts';
import { createPostgresStore, type PostgresOptions, type PostgresStore } from '../../../../src/store/postgres/index.ts';
import { contractProjector } from '../../../contract/store/projector.ts';
import { createDatabase, type TestDatabase } from '../../../support/postgres/server.ts';

export interface PostgresHome {
  readonly database: TestDatabase;
  open(options: Partial<PostgresOptions> & { readonly url: string }): Promise<PostgresStore>;
}

const clock = { now: () => new Date().toISOString() };

export function postgresHome(): PostgresHome {
  let database: TestDatabase;
  let stores: PostgresStore[] = [];
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()));
    stores = [];
  });
  afterAll(() => database.drop());
  return {
    get database() {
      return database;
    },
    async open(options) {
      const store = await createPostgresStore({ clock, projector: contractProjector, ...options });
      stores.push(store);
      return store;
    },
  };
}

export function note(task: string, payload: EventDraft['payload'] = {}): EventDraft {
  return {
    event: 'vendor.tollbridge.note',
    resource: { object: 'task', id: task },
    payload,
    task_id: task,
    session_id: 'session_1',
    workspace_id: 'workspace_1',
  };
}

export const append = (store: Store, ...events: EventDraft[]) => store.commit({ decide: () => ({ events }) });

export async function all(store: Store): Promise<CoreEvent[]> {
  const events: CoreEvent[] = [];
  for await (const one of store.read({ stream: { of: 'all' } })) events.push(one);
  return events;
}
