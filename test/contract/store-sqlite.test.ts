/** The SQLite store keeps every promise a store makes. */
import { createSqliteStore } from '../../src/store/sqlite/index.ts';
import { contractOpener } from './store/scenes/sqlite-home.ts';
import { storeContract } from './store.ts';

storeContract('SQLite', contractOpener(createSqliteStore));
