/** Errors of PostgreSQL and of the way to it, as our faults. No message of the driver goes into ours: it may quote what was connected with. */
import { Fault } from '../../model/faults.ts';

interface Thrown {
  readonly code?: unknown;
  readonly severity?: unknown;
  readonly message?: unknown;
}

/** The connection was lost inside a commit, and nobody could say afterwards whether it was written. */
export class OutcomeUnknown extends Fault {}

const NETWORK = /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|EHOSTDOWN|ENETDOWN)/;
const TLS = /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|EPROTO)/;
/** Words of the driver for a connection that is gone. */
const GONE =
  /Connection terminated|connection is insecure|Query read timeout|not queryable|timeout exceeded when trying to connect|timeout expired|Client was closed/i;

const NO_TLS = /server does not support SSL/i;

/** The SQLSTATE of an error that the server reported. */
export function sqlState(thrown: unknown): string | undefined {
  const { code, severity } = (thrown ?? {}) as Thrown;
  return typeof severity === 'string' && typeof code === 'string' ? code : undefined;
}

const networkCode = (thrown: unknown): string | undefined => {
  const { code } = (thrown ?? {}) as Thrown;
  return typeof code === 'string' ? code : undefined;
};

/** The connection is gone, or the server is going: another connection may succeed. */
export function isConnectionLoss(thrown: unknown): boolean {
  const state = sqlState(thrown);
  // Shut down, crashed, starting up; ended for being idle; too many connections.
  if (state !== undefined) return /^(57P0|08|25P03|53300)/.test(state);
  const { message } = (thrown ?? {}) as Thrown;
  return NETWORK.test(networkCode(thrown) ?? '') || (typeof message === 'string' && GONE.test(message));
}

/** The server refused the statement: it wrote nothing, and said so. */
export function isRefusal(thrown: unknown): boolean {
  return (thrown as Thrown | undefined)?.severity === 'ERROR';
}

export function isLocked(thrown: unknown): boolean {
  return ['55P03', '40001', '40P01'].includes(sqlState(thrown) ?? '');
}

export const throughPooler = (name: string): string =>
  `${name} is behind a pooler, where leases would not last: name the database itself with store.direct_url`;
const POOLER = /unsupported startup parameter/i;

/** What to do about errors whose SQLSTATE begins so. */
const ENVIRONMENT: readonly (readonly [RegExp, (name: string) => string])[] = [
  [/^25006/, (name) => `${name} is read-only: it is a standby, or was demoted. Point the store at the primary`],
  [/^53100/, (name) => `no room left to write ${name}: free some disk space of the database`],
  [/^53300/, (name) => `${name} takes no more connections: raise max_connections, or lower store.connections`],
  [/^53/, (name) => `${name} has run out of resources: see the database's own log`],
  [/^28/, (name) => `${name} refuses the user or the password of the store`],
  [/^3D000/, (name) => `there is no such database: ${name}`],
  [/^42501/, (name) => `the user of the store lacks a privilege on ${name}: it has to own the schema`],
  [/^(42P01|42883|3F000)/, (name) => `the schema of ${name} is incomplete: restore a backup`],
  [/^55P03/, (name) => `another gateway keeps ${name} locked`],
  [/^57014/, (name) => `${name} took longer than store.statement_timeout`],
  [/^(57P0|25P03)/, (name) => `${name} is shutting down or starting up`],
  [/^TB001/, (name) => `${name} does not make commits durable as store.standby and its own fsync must have it`],
  [/^(58|XX|F0)/, (name) => `${name} failed or is damaged: see the database's own log`],
];

/** Returns a fault when the database or the way to it is the problem; undefined when it is the data or the code. */
export function environmentFault(thrown: unknown, name: string): Fault | undefined {
  if (thrown instanceof Fault) return thrown.kind === 'unavailable' ? thrown : undefined;
  const state = sqlState(thrown);
  const known = state === undefined ? undefined : ENVIRONMENT.find(([states]) => states.test(state));
  if (known) return new Fault('unavailable', known[1](name), { cause: causeOf(thrown) });
  const code = networkCode(thrown);
  if (code !== undefined && TLS.test(code)) {
    return new Fault(
      'unavailable',
      `the certificate of ${name} was not accepted (${code}): see sslmode and sslrootcert`,
      {
        cause: causeOf(thrown),
      },
    );
  }
  const { message } = (thrown ?? {}) as Thrown;
  if (typeof message === 'string' && POOLER.test(message)) {
    return new Fault('unavailable', throughPooler(name), { cause: causeOf(thrown) });
  }
  if (state === undefined && typeof message === 'string' && NO_TLS.test(message)) {
    return new Fault('unavailable', `${name} speaks no TLS, and its sslmode asks for it: see ssl in postgresql.conf`, {
      cause: causeOf(thrown),
    });
  }
  if (!isConnectionLoss(thrown)) return undefined;
  const why = code === undefined || state !== undefined ? '' : ` (${code})`;
  return new Fault('unavailable', `${name} cannot be reached${why}`, { cause: causeOf(thrown) });
}

/** Without the driver's own members: some of its errors carry the client, and with it the password. */
export function causeOf(thrown: unknown): Error {
  const { message } = (thrown ?? {}) as Thrown;
  const cause = new Error(typeof message === 'string' ? message : 'the database failed');
  return Object.assign(cause, { code: sqlState(thrown) ?? networkCode(thrown) });
}

/** For reads: an error of the database becomes a fault, every other error passes unchanged. */
export function readFault(thrown: unknown, name: string): unknown {
  if (thrown instanceof Fault) return thrown;
  const fault = environmentFault(thrown, name);
  if (fault) return fault;
  return sqlState(thrown) === undefined
    ? thrown
    : new Fault('internal', `reading ${name} failed`, { cause: causeOf(thrown) });
}
