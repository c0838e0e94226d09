/** The SQLite store keeps every promise a store makes. */
import { createSqliteStore } from '../src/store/sqlite.ts';
import { contractOpener } from './contracts/store/sqlite-home.ts';
import { storeContract } from './contracts/store.ts';

storeContract('SQLite', contractOpener(createSqliteStore));
