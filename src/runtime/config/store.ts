/**
 * The `store` section: a file with its maximum size, or a database with its password's secret; and how long a write waits for another
 * process.
 */
import { join } from 'node:path';
import { createSecrets, type VaultSource } from '../../auth/vaults.ts';
import { durationMs } from '../../model/values/duration.ts';
import type { PostgresLocation, StoreLocation } from '../../store/index.ts';
import { type Where, wrong } from './document.ts';
import type { ConfigFile } from './shape.ts';

interface PathContext {
  readonly at: (path: string) => string;
  readonly dataDir: string;
  /** The command line or a variable names another data directory: a log in a file is the one inside it. */
  readonly moved: boolean;
  readonly where: Where;
  /** Where the password of a database is looked up. */
  readonly vaults: readonly VaultSource[];
  readonly env: NodeJS.ProcessEnv;
}
type Section = NonNullable<ConfigFile['store']>;

/** A smaller log has no room for its own tables. */
const LEAST_BYTES = 16 * 1024 ** 2;
const OF_FILES = ['path', 'max_size'] as const;
const OF_DATABASES = [
  ...(['secret', 'keys', 'direct_url', 'schema', 'standby', 'connections'] as const),
  ...(['statement_timeout', 'lease_timeout'] as const),
];

export function storeOf(store: ConfigFile['store'], context: PathContext): StoreLocation {
  const { at, dataDir, moved, where } = context;
  const { url, path, max_size, wait } = store ?? {};
  const foreign = (url === undefined ? OF_DATABASES : OF_FILES).find((name) => store?.[name] !== undefined);
  if (foreign) {
    const whose = url === undefined ? 'a log in a file: it goes with store.url' : 'a log in a database';
    throw wrong(where(['store', foreign]), `store.${foreign} means nothing to ${whose}`);
  }
  const maxBytes = max_size === undefined ? undefined : bytesOf(max_size);
  if (max_size !== undefined && (maxBytes === undefined || maxBytes < LEAST_BYTES))
    throw wrong(
      where(['store', 'max_size']),
      `store.max_size: ${max_size} is no size for a log; write 500MB, 10GB or 1TB`,
    );
  const lockTimeoutMs = duration('wait', wait, where);
  const waiting = lockTimeoutMs !== undefined && { lockTimeoutMs };
  if (url !== undefined) return { ...databaseOf({ ...store, url }, context), ...waiting };
  return {
    path: path && !moved ? at(path) : join(dataDir, 'log.db'),
    ...(maxBytes !== undefined && { maxBytes }),
    ...waiting,
  };
}

function databaseOf(store: Section & { readonly url: string }, { where, vaults, env }: PathContext): PostgresLocation {
  for (const name of ['url', 'direct_url'] as const) {
    const text = store[name];
    if (text === undefined) continue;
    // Said without the text: what stands there is a secret now.
    if (!URL.canParse(text) || new URL(text).password !== '')
      throw wrong(
        where(['store', name]),
        `store.${name} must look like postgres://user@host:5432/database, and holds no password: put it into a vault and name it with store.secret`,
      );
  }
  const { url, secret, keys, direct_url, schema, standby, connections } = store;
  const statementTimeoutMs = duration('statement_timeout', store.statement_timeout, where);
  const leaseTimeoutMs = duration('lease_timeout', store.lease_timeout, where);
  const secrets = createSecrets({ vaults, env, learn: () => undefined });
  return {
    url,
    ...(secret !== undefined && { password: () => secrets(secret) }),
    ...(keys !== undefined && { keys: () => secrets(keys) }),
    ...(direct_url !== undefined && { directUrl: direct_url }),
    ...(schema !== undefined && { schema }),
    ...(standby !== undefined && { standby }),
    ...(connections !== undefined && { connections }),
    ...(statementTimeoutMs !== undefined && { statementTimeoutMs }),
    ...(leaseTimeoutMs !== undefined && { leaseTimeoutMs }),
  };
}

function duration(name: string, text: string | undefined, where: Where): number | undefined {
  const found = text === undefined ? undefined : durationMs(text);
  if (text !== undefined && found === undefined)
    throw wrong(where(['store', name]), `store.${name}: ${text} is not a duration; write 500ms, 5s or 1m`);
  return found;
}

const UNITS = { MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 } as const;

export function bytesOf(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?) ?(MB|GB|TB)$/.exec(text) ?? [];
  return unit ? Math.floor(Number(count) * UNITS[unit as keyof typeof UNITS]) : undefined;
}
