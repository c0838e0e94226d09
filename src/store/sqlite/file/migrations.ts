/**
 * The schema of the file, as an ordered list of steps. A step that has shipped is never edited: a change is a new step. Refuses a
 * file written by a newer version, and a file that is not ours.
 */
import { Fault } from '../../../model/faults.ts';
import { holdsLog, incompleteCopy } from '../../engine/copy/refused.ts';
import type { Connection } from './connection.ts';
import { damaged } from './errors.ts';

/** ASCII `toll`, so that another program's database is never taken for ours. */
export const APPLICATION_ID = 0x746f6c6c;
/** ASCII `tolc`, until all rows of a copied log are there: no version takes the file for a log before. */
export const INCOMPLETE_COPY = 0x746f6c63;

/** The step at index 0 makes version 1. */
export const MIGRATIONS: readonly string[] = [
  `
  -- Small facts about the file: floor (last position pruned), floor_at (its time).
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

  -- What events are about. base: the last sequence that was pruned, so that numbering goes on.
  CREATE TABLE resources (
    id INTEGER PRIMARY KEY, object TEXT NOT NULL, name TEXT NOT NULL, base INTEGER NOT NULL DEFAULT 0,
    UNIQUE (object, name)
  ) STRICT;

  -- Where events of a resource happen. Nearly always one per resource, so an event carries one number instead of three ids.
  CREATE TABLE places (
    id INTEGER PRIMARY KEY, resource INTEGER NOT NULL REFERENCES resources, task TEXT, session TEXT, workspace TEXT
  ) STRICT;
  CREATE INDEX places_by_resource ON places (resource);
  CREATE INDEX places_by_task ON places (task, id, resource) WHERE task IS NOT NULL;
  CREATE INDEX places_by_session ON places (session, id, resource) WHERE session IS NOT NULL;

  -- The log. position is the number in the event id; body is the event as it is read back.
  CREATE TABLE events (
    position INTEGER PRIMARY KEY, resource INTEGER NOT NULL, sequence INTEGER NOT NULL, place INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX events_by_resource ON events (resource, sequence);

  -- Which stretches of 256 positions hold events of a workspace.
  CREATE TABLE spans (workspace TEXT NOT NULL, span INTEGER NOT NULL, PRIMARY KEY (workspace, span)) STRICT, WITHOUT ROWID;

  -- Projections. A dropped row keeps its place in the order (body NULL), so that a page can go on after it.
  CREATE TABLE rows (
    object TEXT NOT NULL, id TEXT NOT NULL, created_at TEXT NOT NULL,
    workspace_id TEXT, session_id TEXT, task_id TEXT, parent_task_id TEXT, state TEXT, owner_id TEXT,
    body TEXT, PRIMARY KEY (object, id)
  ) STRICT;
  CREATE INDEX rows_by_age ON rows (object, created_at, id) WHERE body IS NOT NULL;
  CREATE INDEX rows_by_workspace ON rows (object, workspace_id, created_at, id) WHERE workspace_id IS NOT NULL;
  CREATE INDEX rows_by_session ON rows (object, session_id, created_at, id) WHERE session_id IS NOT NULL;
  CREATE INDEX rows_by_task ON rows (object, task_id, created_at, id) WHERE task_id IS NOT NULL;
  CREATE INDEX rows_by_parent ON rows (object, parent_task_id, created_at, id) WHERE parent_task_id IS NOT NULL;
  CREATE INDEX rows_by_state ON rows (object, state, created_at, id) WHERE state IS NOT NULL;
  CREATE INDEX rows_by_owner ON rows (object, owner_id, created_at, id) WHERE owner_id IS NOT NULL;

  -- Projections of the pruned part of the log: where a rebuild starts.
  CREATE TABLE baseline (
    object TEXT NOT NULL, id TEXT NOT NULL, created_at TEXT NOT NULL, body TEXT, PRIMARY KEY (object, id)
  ) STRICT;

  CREATE TABLE idempotency (scope TEXT PRIMARY KEY, digest TEXT NOT NULL, result TEXT, at TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_by_age ON idempotency (at);

  CREATE TABLE receipts (
    position INTEGER PRIMARY KEY, chain TEXT NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL, task_id TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (chain, number)
  ) STRICT;
  CREATE INDEX receipts_by_task ON receipts (task_id);
  CREATE TABLE tree (one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, frontier TEXT NOT NULL) STRICT;
  CREATE TABLE tree_nodes (
    level INTEGER NOT NULL, number INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (level, number)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE blob_parts (
    sha256 TEXT NOT NULL, part INTEGER NOT NULL, digest TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (sha256, part)
  ) STRICT;
  `,
  `
  -- By resource and sequence alone, every busy resource has its own page of the index and every commit writes them all.
  -- By stretch of 4096 positions first, what is appended together lies together.
  DROP INDEX events_by_resource;
  CREATE UNIQUE INDEX events_by_stretch ON events (position >> 12, resource, sequence);

  -- In which stretches a resource has events, and its first sequence there.
  CREATE TABLE stretches (
    resource INTEGER NOT NULL, stretch INTEGER NOT NULL, first INTEGER NOT NULL, PRIMARY KEY (resource, stretch)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO stretches SELECT resource, position >> 12, min(sequence) FROM events GROUP BY 1, 2;

  -- The index keeps sequences unique inside a stretch, this keeps them so from one stretch to the next.
  CREATE TRIGGER stretches_go_on BEFORE INSERT ON stretches
  WHEN EXISTS (
    SELECT 1 FROM events WHERE resource = NEW.resource AND sequence >= NEW.first AND position >> 12 =
      (SELECT max(stretch) FROM stretches WHERE resource = NEW.resource AND stretch < NEW.stretch)
  )
  BEGIN SELECT RAISE(ABORT, 'a sequence was given twice'); END;

  -- Whether events of a place were pruned: a task is known by its places.
  ALTER TABLE places ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0;
  UPDATE places SET pruned = 1 WHERE resource IN (SELECT id FROM resources WHERE base > 0);

  -- For a page of a long chain in the order of the tree.
  CREATE INDEX receipts_by_chain ON receipts (chain, position);
  `,
  `
  -- What every task leaves behind has a table of its own: an index then holds only columns that a query lists by, its keys need not say
  -- what kind of thing they are, and what changes with every step of a task does not share pages with what never changes.
  -- As in rows, a dropped one keeps its place in the order (body NULL). Of the same age they are sorted by id when they are read.
  CREATE TABLE sessions (
    id TEXT PRIMARY KEY, created_at TEXT NOT NULL, workspace_id TEXT, state TEXT, body TEXT
  ) STRICT;
  CREATE INDEX sessions_by_age ON sessions (created_at);
  CREATE INDEX sessions_by_workspace ON sessions (workspace_id, created_at);
  CREATE INDEX sessions_by_state ON sessions (state, created_at);

  CREATE TABLE tasks (
    id TEXT PRIMARY KEY, created_at TEXT NOT NULL, workspace_id TEXT, session_id TEXT, state TEXT, body TEXT
  ) STRICT;
  CREATE INDEX tasks_by_age ON tasks (created_at);
  CREATE INDEX tasks_by_workspace ON tasks (workspace_id, created_at);
  CREATE INDEX tasks_by_session ON tasks (session_id, created_at);
  CREATE INDEX tasks_by_state ON tasks (state, created_at);

  CREATE TABLE messages (id TEXT PRIMARY KEY, created_at TEXT NOT NULL, session_id TEXT, body TEXT) STRICT;
  CREATE INDEX messages_by_session ON messages (session_id, created_at);

  CREATE TABLE outcomes (id TEXT PRIMARY KEY, created_at TEXT NOT NULL, task_id TEXT, body TEXT) STRICT;
  CREATE INDEX outcomes_by_age ON outcomes (created_at);
  CREATE INDEX outcomes_by_task ON outcomes (task_id, created_at);

  -- Nearly all of them are over, so their index leaves those out.
  CREATE TABLE runs (id TEXT PRIMARY KEY, created_at TEXT NOT NULL, session_id TEXT, body TEXT) STRICT;
  CREATE INDEX runs_by_session ON runs (session_id, created_at) WHERE body IS NOT NULL;

  CREATE TABLE tallies (id TEXT PRIMARY KEY, created_at TEXT NOT NULL, body TEXT) STRICT;

  INSERT INTO sessions SELECT id, created_at, workspace_id, state, body FROM rows WHERE object = 'session' ORDER BY rowid;
  INSERT INTO tasks SELECT id, created_at, workspace_id, session_id, state, body FROM rows WHERE object = 'task' ORDER BY rowid;
  INSERT INTO messages SELECT id, created_at, session_id, body FROM rows WHERE object = 'message' ORDER BY rowid;
  INSERT INTO outcomes SELECT id, created_at, task_id, body FROM rows WHERE object = 'outcome' ORDER BY rowid;
  INSERT INTO runs SELECT id, created_at, session_id, body FROM rows WHERE object = 'run' ORDER BY rowid;
  INSERT INTO tallies SELECT id, created_at, body FROM rows WHERE object = 'tally' ORDER BY rowid;
  DELETE FROM rows WHERE object IN ('session', 'task', 'message', 'outcome', 'run', 'tally');
  -- No query lists by it.
  DROP INDEX rows_by_parent;

  -- All of them, for people who read the file with another program.
  CREATE VIEW projections AS
    SELECT object, id, created_at, body FROM rows
    UNION ALL SELECT 'session', id, created_at, body FROM sessions
    UNION ALL SELECT 'task', id, created_at, body FROM tasks
    UNION ALL SELECT 'message', id, created_at, body FROM messages
    UNION ALL SELECT 'outcome', id, created_at, body FROM outcomes
    UNION ALL SELECT 'run', id, created_at, body FROM runs
    UNION ALL SELECT 'tally', id, created_at, body FROM tallies;

  -- By level, every level of the tree has a page of its own that grows. In the order they are completed there is one: by the size of
  -- the tree that completes a node, then by its level.
  ALTER TABLE tree_nodes RENAME TO tree_nodes_by_level;
  CREATE TABLE tree_nodes (place INTEGER PRIMARY KEY, hash TEXT NOT NULL) STRICT;
  INSERT INTO tree_nodes SELECT ((number + 1) << level) * 64 + level, hash FROM tree_nodes_by_level ORDER BY 1;
  DROP TABLE tree_nodes_by_level;

  -- Numbers of a chain and positions grow together: the one index finds both.
  DROP INDEX receipts_by_chain;
  `,
  `
  -- The tree over the log, as far as it has been grown. first: position of the event that is leaf 0.
  CREATE TABLE log_tree (
    one INTEGER PRIMARY KEY CHECK (one = 1), first INTEGER NOT NULL, size INTEGER NOT NULL, frontier TEXT NOT NULL
  ) STRICT;
  -- Its nodes, in the order they are completed. They stay when their events are pruned.
  CREATE TABLE log_nodes (place INTEGER PRIMARY KEY, hash BLOB NOT NULL) STRICT;
  `,
  `
  -- Bodies of events and receipts may be packed from now on; one that begins with a brace is JSON, as before. What they refer to by
  -- number: strings and lists of names, as JSON. position: of the event that brought it, 0 for those of receipts, which are kept.
  CREATE TABLE words (id INTEGER PRIMARY KEY, position INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
  CREATE INDEX words_kept ON words (id) WHERE position = 0;
  `,
];

/** Brings the file to the newest schema, each step in its own transaction. Several processes may try at once. */
export function migrate(
  connection: Connection,
  migrations: readonly string[] = MIGRATIONS,
  application = APPLICATION_ID,
): void {
  // A file that is up to date is opened without taking the write lock, so a busy writer blocks no other process from opening it.
  while (look(connection, migrations.length, application) < migrations.length) {
    connection.begin();
    try {
      const version = versionOf(connection, migrations.length, application);
      const step = migrations[version];
      if (step !== undefined) {
        connection.exec(step);
        connection.exec(`PRAGMA application_id = ${application}; PRAGMA user_version = ${version + 1}`);
      }
      connection.commit();
    } catch (thrown) {
      connection.rollback();
      throw thrown;
    }
  }
}

/** In one transaction: another process may be creating the file at this moment. */
function look(connection: Connection, newest: number, wanted: number): number {
  connection.exec('BEGIN');
  try {
    return versionOf(connection, newest, wanted);
  } finally {
    connection.rollback();
  }
}

/** Returns the file's version after checking that the file is ours and not newer than this program. */
function versionOf(connection: Connection, newest: number, wanted: number): number {
  const version = connection.pragma('user_version') as number;
  if (version > newest) {
    throw new Fault(
      'unsupported_version',
      `${connection.path} was written by a newer version (schema ${version}, this one knows ${newest}): upgrade, or open another file`,
    );
  }
  const application = connection.pragma('application_id') as number;
  const tables = connection.prepare('SELECT count(*) FROM sqlite_schema').get() as [number];
  const blank = version === 0 && application === 0 && tables[0] === 0;
  if (!blank && application === INCOMPLETE_COPY && wanted !== INCOMPLETE_COPY) throw incompleteCopy(connection.path);
  if (!blank && application === APPLICATION_ID && wanted !== APPLICATION_ID) throw holdsLog(connection.path);
  if (!blank && application !== wanted) {
    throw damaged(connection.path, undefined, "is another program's database");
  }
  return version;
}
