/** Checks the database of the log: whether it can be reached and written, how far away it is, and how safe a commit is there. */
import { systemClock } from '../../core/clock.ts';
import { projector } from '../../core/events/projector.ts';
import { hasPrivateFiles, openStore, type PostgresLocation, reportOn, storeName } from '../../store/index.ts';
import { errorMessageOf } from '../output/error-output.ts';
import { counted } from '../output/terminal-text.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

/** Beyond this, waiting for the database is most of what a call takes. */
const FAR_MS = 10;
const APART_MS = 2_000;

export async function lookAtDatabase(location: PostgresLocation): Promise<readonly Finding[]> {
  const name = storeName(location);
  try {
    const { server, schema, latencyMs, aheadMs, readOnly, fsync, encrypted, standbys, connectedStandbys } =
      await reportOn(location);
    const findings: Finding[] = [];
    const way = `${latencyMs.toFixed(1)} ms a query, ${encrypted ? 'encrypted' : 'not encrypted'}`;
    const kept = standbys === '' ? 'no synchronous standby' : `synchronous standbys: ${standbys}`;
    const about = `${name}: PostgreSQL ${server}, ${way}, ${kept}`;
    if (readOnly) return [bad('log', `${name} is read-only`, 'point store.url at the primary')];
    if (!fsync) findings.push(bad('log', `${name} has fsync off: a crash loses what was answered`, 'set fsync = on'));
    if (location.standby && !connectedStandbys) {
      const why = standbys === '' ? 'synchronous_standby_names is empty' : 'none is connected';
      findings.push(
        bad('log', `store.standby is on, and ${name} has no standby: ${why}`, 'connect one: no write succeeds before'),
      );
    }
    if (latencyMs > FAR_MS)
      findings.push(warn('log', `${name} is ${latencyMs.toFixed(0)} ms away`, 'run gateways near it'));
    if (Math.abs(aheadMs) > APART_MS) {
      const apart = `${(Math.abs(aheadMs) / 1000).toFixed(1)} s ${aheadMs > 0 ? 'behind' : 'ahead of'}`;
      const fix = 'set both by NTP: gateways go by the clock of the database';
      findings.push(warn('clock', `the clock of this machine is ${apart} that of ${name}`, fix));
    }
    if (!location.keys && (await hasPrivateFiles(location)))
      findings.push(
        bad('keys', `keys of the gateways lie in ${name}, sealed under a secret`, 'name it with store.keys'),
      );
    if (findings.some(({ state }) => state === 'bad')) return findings;
    if (schema === undefined) return [ok('log', `${about}; there is no log yet`), ...findings];
    const store = await openStore(location, { clock: systemClock, projector });
    try {
      const { size } = await store.tree();
      return [ok('log', `${about}, schema ${schema}; ${counted(size, 'receipt')}`), ...findings];
    } finally {
      await store.close();
    }
  } catch (thrown) {
    const { sentence, fix } = errorMessageOf(thrown);
    return [bad('log', sentence, fix ?? 'see docs/postgres.md')];
  }
}
