/**
 * Version 1.3: the epoch of a lease is a time, so that a standby that took over without the last takings of a lease does not give their
 * epochs a second time, to a holder beside the one that has it already.
 */
export const LEASE_EPOCHS = `
  CREATE FUNCTION $S.lease_2(p_name BYTEA, p_writer TEXT, p_lock_ms BIGINT, p_standby BOOLEAN)
  RETURNS TABLE (epoch BIGINT, generation BIGINT) LANGUAGE plpgsql AS $body$
  DECLARE v_now BIGINT := extract(epoch FROM clock_timestamp()) * 1000000;
  BEGIN
    PERFORM $S.durable_1(p_standby);
    PERFORM set_config('lock_timeout', p_lock_ms::text, true);
    PERFORM pg_advisory_xact_lock($L);
    INSERT INTO $S.leases AS l (name, epoch) VALUES (p_name, v_now)
      ON CONFLICT (name) DO UPDATE SET epoch = greatest(l.epoch + 1, v_now) RETURNING l.epoch INTO lease_2.epoch;
    UPDATE $S.state s SET generation = s.generation + 1, writer = p_writer RETURNING s.generation INTO lease_2.generation;
    RETURN NEXT;
  END $body$;
`;
