/**
 * The first version of the schema. Text is compared by its bytes (`COLLATE "C"`), as in every other store. `$S` stands for the quoted
 * name of the schema, so that nothing rests on a search path, which would be state of a connection.
 */
export const TABLES = `
  -- One row, changed by every transaction that others must notice: what it was, who made it, and the end of the log.
  CREATE TABLE $S.state (
    one INT PRIMARY KEY DEFAULT 1 CHECK (one = 1), generation BIGINT NOT NULL, writer TEXT NOT NULL DEFAULT '',
    position BIGINT NOT NULL, resource BIGINT NOT NULL, location BIGINT NOT NULL, word BIGINT NOT NULL,
    floor BIGINT NOT NULL, floor_at TEXT NOT NULL, partitioned BIGINT NOT NULL
  ) WITH (fillfactor = 20);
  INSERT INTO $S.state (generation, position, resource, location, word, floor, floor_at, partitioned)
    VALUES (0, 0, 0, 0, 0, 0, '', 0);
  -- The last write of each store, so that one whose connection broke inside a commit can find out whether it was written.
  CREATE TABLE $S.writers (writer TEXT PRIMARY KEY, write BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL) WITH (fillfactor = 50);
  CREATE TABLE $S.leases (name BYTEA PRIMARY KEY, epoch BIGINT NOT NULL);
  CREATE TABLE $S.meta (name TEXT COLLATE "C" PRIMARY KEY, value TEXT NOT NULL);

  -- What events are about. base: the last sequence that was pruned, so that numbering goes on.
  CREATE TABLE $S.resources (
    id BIGINT PRIMARY KEY, object TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL, base BIGINT NOT NULL DEFAULT 0,
    UNIQUE (object, name)
  );
  -- Where events of a resource happen. pruned: position of the first event that was pruned there.
  CREATE TABLE $S.places (
    id BIGINT PRIMARY KEY, resource BIGINT NOT NULL, task TEXT COLLATE "C", session TEXT COLLATE "C", workspace TEXT COLLATE "C",
    pruned BIGINT NOT NULL DEFAULT 0
  );
  CREATE INDEX places_by_resource ON $S.places (resource, id);
  CREATE INDEX places_by_task ON $S.places (task, id) WHERE task IS NOT NULL;
  CREATE INDEX places_by_session ON $S.places (session, id) WHERE session IS NOT NULL;

  -- The log, in partitions of positions that are dropped whole once all their events are pruned.
  CREATE TABLE $S.events (
    position BIGINT NOT NULL, resource BIGINT NOT NULL, sequence BIGINT NOT NULL, place BIGINT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (position)
  ) PARTITION BY RANGE (position);
  CREATE INDEX events_by_place ON $S.events (place, position);
  -- In which stretches of 4096 positions a resource has events, and its first sequence there.
  CREATE TABLE $S.stretches (
    resource BIGINT NOT NULL, stretch BIGINT NOT NULL, first BIGINT NOT NULL, PRIMARY KEY (resource, stretch)
  );
  -- Which spans of 256 positions hold events of a workspace.
  CREATE TABLE $S.spans (workspace TEXT COLLATE "C" NOT NULL, span BIGINT NOT NULL, PRIMARY KEY (workspace, span));
  CREATE TABLE $S.words (id BIGINT PRIMARY KEY, position BIGINT NOT NULL, text TEXT NOT NULL);
  CREATE INDEX words_kept ON $S.words (id) WHERE position = 0;

  -- Projections. A dropped row keeps its place in the order (body NULL), so that a page can go on after it. The kinds that every task
  -- produces are in the indexes that they are listed by, and in no other.
  CREATE TABLE $S.rows (
    object TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, created_at TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C", session_id TEXT COLLATE "C", task_id TEXT COLLATE "C", parent_task_id TEXT COLLATE "C",
    state TEXT COLLATE "C", owner_id TEXT COLLATE "C", body TEXT, PRIMARY KEY (object, id)
  ) WITH (fillfactor = 80);
  CREATE INDEX rows_by_age ON $S.rows (object, created_at, id) WHERE object NOT IN ('message', 'run', 'tally');
  CREATE INDEX rows_by_workspace ON $S.rows (object, workspace_id, created_at, id)
    WHERE workspace_id IS NOT NULL AND object NOT IN ('message', 'outcome', 'run', 'tally');
  CREATE INDEX rows_by_session ON $S.rows (object, session_id, created_at, id)
    WHERE session_id IS NOT NULL AND object NOT IN ('session', 'outcome', 'tally');
  CREATE INDEX rows_by_task ON $S.rows (object, task_id, created_at, id)
    WHERE task_id IS NOT NULL AND object NOT IN ('session', 'task', 'message', 'run', 'tally');
  CREATE INDEX rows_by_state ON $S.rows (object, state, created_at, id)
    WHERE state IS NOT NULL AND object NOT IN ('message', 'outcome', 'run', 'tally');
  CREATE INDEX rows_by_owner ON $S.rows (object, owner_id, created_at, id)
    WHERE owner_id IS NOT NULL AND object NOT IN ('session', 'task', 'message', 'outcome', 'run', 'tally');
  -- Retention asks for tasks that are not over.
  CREATE INDEX tasks_without_state ON $S.rows (id) WHERE object = 'task' AND state IS NULL AND body IS NOT NULL;
  -- Projections of the pruned part of the log: where a rebuild starts.
  CREATE TABLE $S.baseline (LIKE $S.rows INCLUDING DEFAULTS, PRIMARY KEY (object, id));

  CREATE TABLE $S.idempotency (scope TEXT COLLATE "C" PRIMARY KEY, digest TEXT NOT NULL, result TEXT, at TEXT COLLATE "C" NOT NULL);
  CREATE INDEX idempotency_by_age ON $S.idempotency (at);

  CREATE TABLE $S.receipts (
    position BIGINT PRIMARY KEY, chain TEXT COLLATE "C" NOT NULL, number BIGINT NOT NULL, id TEXT COLLATE "C" NOT NULL UNIQUE,
    hash TEXT NOT NULL, task_id TEXT COLLATE "C" NOT NULL, body TEXT NOT NULL, UNIQUE (chain, number)
  );
  CREATE INDEX receipts_by_task ON $S.receipts (task_id, position);
  CREATE TABLE $S.tree (one INT PRIMARY KEY DEFAULT 1 CHECK (one = 1), size BIGINT NOT NULL, frontier TEXT NOT NULL);
  -- Nodes in the order they are completed.
  CREATE TABLE $S.tree_nodes (place BIGINT PRIMARY KEY, hash TEXT NOT NULL);
  CREATE TABLE $S.log_tree (
    one INT PRIMARY KEY DEFAULT 1 CHECK (one = 1), first BIGINT NOT NULL, size BIGINT NOT NULL, frontier TEXT NOT NULL
  );
  CREATE TABLE $S.log_nodes (place BIGINT PRIMARY KEY, hash BYTEA NOT NULL);

  CREATE TABLE $S.blobs (sha256 TEXT COLLATE "C" PRIMARY KEY, size BIGINT NOT NULL);
  CREATE TABLE $S.blob_parts (
    sha256 TEXT COLLATE "C" NOT NULL, part INT NOT NULL, digest TEXT NOT NULL, bytes BYTEA NOT NULL, PRIMARY KEY (sha256, part)
  );
  -- Bytes do not get shorter by trying.
  ALTER TABLE $S.blob_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
`;
