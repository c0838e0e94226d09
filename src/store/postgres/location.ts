/** Where a database is, read from its URL: how to connect, and how messages name it. The password never stands in a URL. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { Fault } from '../../model/faults.ts';

/** What the configuration says of a log in PostgreSQL. */
export interface PostgresLocation {
  /** `postgres://user@host:5432/database?sslmode=verify-full&sslrootcert=/path/ca.pem` */
  readonly url: string;
  /** Asked for with each new connection, so that it can be changed while gateways run. */
  readonly password?: string | (() => Promise<string>);
  /** Around a pooler in transaction mode: for leases and notices, which live as long as their connection. */
  readonly directUrl?: string;
  /** The schema that holds the tables; `tollbridge` when absent. */
  readonly schema?: string;
  /** A write is answered only once a synchronous standby has applied it. */
  readonly standby?: boolean;
  /** Connections of one gateway at most, beside those for leases, notices, turns and shared keys. */
  readonly connections?: number;
  /** How long a write waits for another gateway before it is refused. */
  readonly lockTimeoutMs?: number;
  /** How long one statement may take. */
  readonly statementTimeoutMs?: number;
  /**
   * The secret under which private files of the installation lie in the database, for all gateways. Absent: each gateway has them in its
   * data directory.
   */
  readonly keys?: () => Promise<string>;
  /** How long a holder of leases may be silent before the server ends its connection, and others may take them. */
  readonly leaseTimeoutMs?: number;
}

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly password: PostgresLocation['password'];
  readonly ssl: ConnectionOptions | false;
}

export const SCHEMA = 'tollbridge';
const MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
type SslMode = (typeof MODES)[number];
const KNOWN = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'];

export const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:\/\//.test(text);

/** The URL for messages: without a password, whatever it was given. */
export function nameOf({ url, schema = SCHEMA }: Pick<PostgresLocation, 'url' | 'schema'>): string {
  const parsed = parse(url);
  const user = parsed.username === '' ? '' : `${parsed.username}@`;
  const more = schema === SCHEMA ? '' : ` (schema ${schema})`;
  return `postgres://${user}${parsed.host}${parsed.pathname}${more}`;
}

export function targetOf({ url, password }: { url: string; password?: PostgresLocation['password'] }): Target {
  const parsed = parse(url);
  if (parsed.password !== '') throw invalid('must not hold a password: put it into a vault, and name it with `secret`');
  const unknown = [...parsed.searchParams.keys()].find((key) => !KNOWN.includes(key));
  if (unknown !== undefined) throw invalid(`has the parameter ${unknown}; there are ${KNOWN.join(', ')}`);
  const host = decodeURIComponent(parsed.hostname).replace(/^\[|\]$/g, '');
  const database = decodeURIComponent(parsed.pathname.slice(1));
  if (host === '' || database === '') throw invalid('needs a host and a database: postgres://user@host:5432/database');
  return {
    host,
    port: parsed.port === '' ? 5432 : Number(parsed.port),
    user: decodeURIComponent(parsed.username) || 'postgres',
    database,
    password,
    ssl: sslOf(parsed.searchParams, host),
  };
}

function parse(url: string): URL {
  if (!isPostgresUrl(url) || !URL.canParse(url)) throw invalid('must look like postgres://user@host:5432/database');
  return new URL(url);
}

/** Never quotes the URL: it may hold a password. */
function invalid(what: string): Fault {
  return new Fault('invalid_request', `the URL of the store ${what}`, { param: 'url' });
}

function sslOf(parameters: URLSearchParams, host: string): ConnectionOptions | false {
  const mode = parameters.get('sslmode') ?? (isLoopback(host) ? 'disable' : 'verify-full');
  if (!MODES.includes(mode as SslMode)) throw invalid(`has sslmode ${mode}; there are ${MODES.join(', ')}`);
  if (mode === 'disable') return false;
  const [ca, cert, key] = ['sslrootcert', 'sslcert', 'sslkey'].map((name) => fileIn(parameters, name));
  const files = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  if (mode === 'verify-full') return { ...files, rejectUnauthorized: true };
  if (mode === 'verify-ca') return { ...files, rejectUnauthorized: true, checkServerIdentity: () => undefined };
  // As psql has it: with a root certificate at hand, the server has to have been certified by it.
  return { ...files, rejectUnauthorized: ca !== undefined, checkServerIdentity: () => undefined };
}

function fileIn(parameters: URLSearchParams, name: string): string | undefined {
  const path = parameters.get(name);
  if (path === null) return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new Fault('invalid_request', `the file of ${name} cannot be read: ${path}`, { param: 'url', cause });
  }
}

const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|::1)$/.test(host);

/** A key for advisory locks: 64 bits of a digest, so that two names do not meet by chance. */
export function lockKey(schema: string, name: string): string {
  const digest = createHash('sha256').update(`tollbridge\n${schema}\n${name}`).digest();
  return digest.readBigInt64BE().toString();
}
