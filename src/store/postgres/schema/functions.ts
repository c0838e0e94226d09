/**
 * What would otherwise be many round trips, as functions of the database: one call takes the lock, one loads all that a batch asks for,
 * one writes a whole write set. A function that has shipped is never changed: a change is a new function, because replicas of both
 * versions run side by side during an upgrade. Plans are fixed to indexes: a plan made while a table was small would read it whole later.
 */
const PLANS =
  'SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan';

export const FUNCTIONS = `
  -- The lock of the one writer, for the rest of the transaction, and the state as of then, with the last event.
  CREATE FUNCTION $S.lock_1(p_lock_ms BIGINT) RETURNS TABLE (
    generation BIGINT, writer TEXT, "position" BIGINT, resource BIGINT, location BIGINT, word BIGINT, floor BIGINT, floor_at TEXT, body TEXT
  ) LANGUAGE plpgsql ${PLANS} AS $body$
  BEGIN
    PERFORM set_config('lock_timeout', p_lock_ms::text, true);
    PERFORM pg_advisory_xact_lock($L);
    RETURN QUERY SELECT s.generation, s.writer, s.position, s.resource, s.location, s.word, s.floor, s.floor_at,
      CASE WHEN s.position > s.floor THEN (SELECT e.body FROM $S.events e WHERE e.position = s.position) END FROM $S.state s;
  END $body$;

  -- A commit must be on disk, and on the standby where that is asked for, whatever the server's own setting is.
  CREATE FUNCTION $S.durable_1(p_standby BOOLEAN) RETURNS VOID LANGUAGE plpgsql AS $body$
  BEGIN
    IF current_setting('fsync') <> 'on' THEN
      RAISE EXCEPTION 'fsync is off: a commit would not be durable' USING ERRCODE = 'TB001';
    END IF;
    IF p_standby AND current_setting('synchronous_standby_names') = '' THEN
      RAISE EXCEPTION 'synchronous_standby_names is empty: no standby would have the commit' USING ERRCODE = 'TB001';
    END IF;
    PERFORM set_config('synchronous_commit', CASE WHEN p_standby THEN 'remote_apply' ELSE 'on' END, true);
  END $body$;

  -- Counts a transaction that others must notice. The lock is held.
  CREATE FUNCTION $S.count_1(p_writer TEXT, p_write BIGINT) RETURNS BIGINT LANGUAGE plpgsql ${PLANS} AS $body$
  DECLARE v_generation BIGINT;
  BEGIN
    INSERT INTO $S.writers AS w (writer, write, at) VALUES (p_writer, p_write, now())
      ON CONFLICT (writer) DO UPDATE SET write = excluded.write, at = excluded.at;
    UPDATE $S.state s SET generation = s.generation + 1, writer = p_writer RETURNING s.generation INTO v_generation;
    RETURN v_generation;
  END $body$;

  -- Whether a write was written whose connection broke. Counts a transaction in any case: one that is still on its way then comes too late.
  CREATE FUNCTION $S.resolve_1(p_writer TEXT, p_write BIGINT, p_lock_ms BIGINT, p_standby BOOLEAN) RETURNS BOOLEAN
  LANGUAGE plpgsql ${PLANS} AS $body$
  DECLARE v_write BIGINT;
  BEGIN
    PERFORM $S.durable_1(p_standby);
    PERFORM set_config('lock_timeout', p_lock_ms::text, true);
    PERFORM pg_advisory_xact_lock($L);
    SELECT w.write INTO v_write FROM $S.writers w WHERE w.writer = p_writer;
    PERFORM $S.count_1(p_writer, coalesce(v_write, 0));
    RETURN coalesce(v_write, 0) >= p_write;
  END $body$;

  -- Counts up how often a lease was taken, which voids whatever was decided before. Its advisory lock is held by the caller's connection.
  CREATE FUNCTION $S.lease_1(p_name BYTEA, p_writer TEXT, p_lock_ms BIGINT, p_standby BOOLEAN)
  RETURNS TABLE (epoch BIGINT, generation BIGINT) LANGUAGE plpgsql ${PLANS} AS $body$
  BEGIN
    PERFORM $S.durable_1(p_standby);
    PERFORM set_config('lock_timeout', p_lock_ms::text, true);
    PERFORM pg_advisory_xact_lock($L);
    INSERT INTO $S.leases AS l (name, epoch) VALUES (p_name, 1)
      ON CONFLICT (name) DO UPDATE SET epoch = l.epoch + 1 RETURNING l.epoch INTO lease_1.epoch;
    UPDATE $S.state s SET generation = s.generation + 1, writer = p_writer RETURNING s.generation INTO lease_1.generation;
    RETURN NEXT;
  END $body$;

  -- A partition for the positions from p_from to below p_to. Attached instead of created in place, which would keep all readers out.
  CREATE FUNCTION $S.partition_1(p_from BIGINT, p_to BIGINT) RETURNS VOID LANGUAGE plpgsql AS $body$
  DECLARE v_name TEXT := 'events_' || p_from;
  BEGIN
    EXECUTE format('CREATE TABLE $S.%I (LIKE $S.events INCLUDING DEFAULTS INCLUDING INDEXES,
      CONSTRAINT within CHECK (position >= %s AND position < %s))', v_name, p_from, p_to);
    EXECUTE format('ALTER TABLE $S.events ATTACH PARTITION $S.%I FOR VALUES FROM (%s) TO (%s)', v_name, p_from, p_to);
    EXECUTE format('ALTER TABLE $S.%I DROP CONSTRAINT within', v_name);
  END $body$;

  -- All that a batch asks for, in one answer: what, number of the request, and its values.
  CREATE FUNCTION $S.load_1(
    p_row_objects TEXT[], p_row_ids TEXT[], p_head_objects TEXT[], p_head_ids TEXT[], p_scopes TEXT[], p_chains TEXT[], p_leases BYTEA[]
  ) RETURNS TABLE (kind INT, n BIGINT, a BIGINT, b BIGINT, c BIGINT, t TEXT, u TEXT, v TEXT) LANGUAGE plpgsql ${PLANS} AS $body$
  BEGIN
    IF cardinality(p_row_ids) > 0 THEN
      RETURN QUERY SELECT 1, q.n, NULL::bigint, NULL::bigint, NULL::bigint, r.body, NULL::text, NULL::text
        FROM unnest(p_row_objects, p_row_ids) WITH ORDINALITY AS q (object, id, n)
        JOIN $S.rows r ON r.object = q.object AND r.id = q.id;
    END IF;
    IF cardinality(p_head_ids) > 0 THEN
      RETURN QUERY SELECT 2, q.n, r.id, coalesce((
          SELECT max(last.sequence) FROM $S.places p CROSS JOIN LATERAL (
            SELECT e.sequence FROM $S.events e WHERE e.place = p.id
              AND e.position >= found.stretch * 4096 AND e.position < found.stretch * 4096 + 4096
            ORDER BY e.position DESC LIMIT 1) last
          WHERE p.resource = r.id), r.base), coalesce(found.stretch, -1), NULL::text, NULL::text, NULL::text
        FROM unnest(p_head_objects, p_head_ids) WITH ORDINALITY AS q (object, id, n)
        JOIN $S.resources r ON r.object = q.object AND r.name = q.id
        CROSS JOIN LATERAL (SELECT (
          SELECT s.stretch FROM $S.stretches s WHERE s.resource = r.id ORDER BY s.stretch DESC LIMIT 1) AS stretch) found;
      RETURN QUERY SELECT 3, q.n, p.id, NULL::bigint, NULL::bigint, p.task, p.session, p.workspace
        FROM unnest(p_head_objects, p_head_ids) WITH ORDINALITY AS q (object, id, n)
        JOIN $S.resources r ON r.object = q.object AND r.name = q.id
        JOIN $S.places p ON p.resource = r.id;
    END IF;
    IF cardinality(p_scopes) > 0 THEN
      RETURN QUERY SELECT 4, q.n, NULL::bigint, NULL::bigint, NULL::bigint, i.digest, i.result, NULL::text
        FROM unnest(p_scopes) WITH ORDINALITY AS q (scope, n) JOIN $S.idempotency i ON i.scope = q.scope;
    END IF;
    IF cardinality(p_chains) > 0 THEN
      RETURN QUERY SELECT 5, q.n, last.number, NULL::bigint, NULL::bigint, last.hash, NULL::text, NULL::text
        FROM unnest(p_chains) WITH ORDINALITY AS q (chain, n) CROSS JOIN LATERAL (
          SELECT r.number, r.hash FROM $S.receipts r WHERE r.chain = q.chain ORDER BY r.number DESC LIMIT 1) last;
      RETURN QUERY SELECT 6, 1::bigint, s.size, NULL::bigint, NULL::bigint, s.frontier, NULL::text, NULL::text FROM $S.tree s;
    END IF;
    IF cardinality(p_leases) > 0 THEN
      RETURN QUERY SELECT 7, q.n, l.epoch, NULL::bigint, NULL::bigint, NULL::text, NULL::text, NULL::text
        FROM unnest(p_leases) WITH ORDINALITY AS q (name, n) JOIN $S.leases l ON l.name = q.name;
    END IF;
  END $body$;

  -- Writes a write set. NULL, with nothing written: another transaction came after the generation p_after. Positions and numbers of new
  -- resources, locations and words follow each other, so their first one is enough.
  CREATE FUNCTION $S.write_1(
    p_writer TEXT, p_write BIGINT, p_after BIGINT, p_lock_ms BIGINT, p_standby BOOLEAN,
    p_resources BIGINT[], p_resource_objects TEXT[], p_resource_names TEXT[],
    p_places BIGINT[], p_place_resources BIGINT[], p_place_tasks TEXT[], p_place_sessions TEXT[], p_place_workspaces TEXT[],
    p_words BIGINT[], p_word_positions BIGINT[], p_word_texts TEXT[],
    p_positions BIGINT[], p_event_resources BIGINT[], p_sequences BIGINT[], p_event_places BIGINT[], p_bodies TEXT[],
    p_stretch_resources BIGINT[], p_stretches BIGINT[], p_stretch_firsts BIGINT[],
    p_span_workspaces TEXT[], p_spans BIGINT[],
    p_row_objects TEXT[], p_row_ids TEXT[], p_row_born TEXT[], p_row_workspaces TEXT[], p_row_sessions TEXT[], p_row_tasks TEXT[],
    p_row_parents TEXT[], p_row_states TEXT[], p_row_owners TEXT[], p_row_bodies TEXT[],
    p_receipts BIGINT[], p_receipt_chains TEXT[], p_receipt_numbers BIGINT[], p_receipt_ids TEXT[], p_receipt_hashes TEXT[],
    p_receipt_tasks TEXT[], p_receipt_bodies TEXT[],
    p_nodes BIGINT[], p_node_hashes TEXT[], p_tree_size BIGINT, p_tree_frontier TEXT,
    p_scopes TEXT[], p_digests TEXT[], p_results TEXT[], p_times TEXT[]
  ) RETURNS BIGINT LANGUAGE plpgsql ${PLANS} AS $body$
  DECLARE
    v_generation BIGINT;
    v_partitioned BIGINT;
    v_last BIGINT := p_positions[cardinality(p_positions)];
  BEGIN
    PERFORM $S.durable_1(p_standby);
    PERFORM set_config('lock_timeout', p_lock_ms::text, true);
    PERFORM pg_advisory_xact_lock($L);
    SELECT s.generation, s.partitioned INTO v_generation, v_partitioned FROM $S.state s;
    IF v_generation <> p_after THEN RETURN NULL; END IF;
    WHILE v_last >= v_partitioned LOOP
      PERFORM $S.partition_1(v_partitioned, v_partitioned + $P);
      v_partitioned := v_partitioned + $P;
    END LOOP;
    IF cardinality(p_resources) > 0 THEN
      INSERT INTO $S.resources (id, object, name) SELECT * FROM unnest(p_resources, p_resource_objects, p_resource_names);
    END IF;
    IF cardinality(p_places) > 0 THEN
      INSERT INTO $S.places (id, resource, task, session, workspace)
        SELECT * FROM unnest(p_places, p_place_resources, p_place_tasks, p_place_sessions, p_place_workspaces);
    END IF;
    IF cardinality(p_words) > 0 THEN
      INSERT INTO $S.words (id, position, text) SELECT * FROM unnest(p_words, p_word_positions, p_word_texts);
    END IF;
    IF cardinality(p_positions) > 0 THEN
      INSERT INTO $S.events (position, resource, sequence, place, body)
        SELECT * FROM unnest(p_positions, p_event_resources, p_sequences, p_event_places, p_bodies);
    END IF;
    IF cardinality(p_stretches) > 0 THEN
      INSERT INTO $S.stretches (resource, stretch, first) SELECT * FROM unnest(p_stretch_resources, p_stretches, p_stretch_firsts);
    END IF;
    IF cardinality(p_spans) > 0 THEN
      INSERT INTO $S.spans (workspace, span) SELECT * FROM unnest(p_span_workspaces, p_spans) ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(p_row_ids) > 0 THEN
      -- A row keeps its first sort key.
      INSERT INTO $S.rows AS r (object, id, created_at, workspace_id, session_id, task_id, parent_task_id, state, owner_id, body)
        SELECT * FROM unnest(p_row_objects, p_row_ids, p_row_born, p_row_workspaces, p_row_sessions, p_row_tasks, p_row_parents,
          p_row_states, p_row_owners, p_row_bodies)
        ON CONFLICT (object, id) DO UPDATE SET workspace_id = excluded.workspace_id, session_id = excluded.session_id,
          task_id = excluded.task_id, parent_task_id = excluded.parent_task_id, state = excluded.state, owner_id = excluded.owner_id,
          body = excluded.body;
    END IF;
    IF cardinality(p_receipts) > 0 THEN
      INSERT INTO $S.receipts (position, chain, number, id, hash, task_id, body)
        SELECT * FROM unnest(p_receipts, p_receipt_chains, p_receipt_numbers, p_receipt_ids, p_receipt_hashes, p_receipt_tasks,
          p_receipt_bodies);
      INSERT INTO $S.tree_nodes (place, hash) SELECT * FROM unnest(p_nodes, p_node_hashes);
      INSERT INTO $S.tree AS t (size, frontier) VALUES (p_tree_size, p_tree_frontier)
        ON CONFLICT (one) DO UPDATE SET size = excluded.size, frontier = excluded.frontier;
    END IF;
    IF cardinality(p_scopes) > 0 THEN
      INSERT INTO $S.idempotency (scope, digest, result, at) SELECT * FROM unnest(p_scopes, p_digests, p_results, p_times);
    END IF;
    INSERT INTO $S.writers AS w (writer, write, at) VALUES (p_writer, p_write, now())
      ON CONFLICT (writer) DO UPDATE SET write = excluded.write, at = excluded.at;
    UPDATE $S.state SET generation = generation + 1, writer = p_writer, partitioned = v_partitioned,
      position = coalesce(v_last, position),
      resource = coalesce(p_resources[cardinality(p_resources)], resource),
      location = coalesce(p_places[cardinality(p_places)], location),
      word = coalesce(p_words[cardinality(p_words)], word)
      RETURNING generation INTO v_generation;
    RETURN v_generation;
  END $body$;
`;
