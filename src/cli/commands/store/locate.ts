/** A log as it is typed: a file, a directory with `log.db` in it, or the URL of a database, with what the configuration says about it. */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { createSecrets } from '../../../auth/vaults.ts';
import { Fault } from '../../../model/faults.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { isDatabase, type PostgresLocation, type StoreLocation, storeName } from '../../../store/index.ts';

export interface Typed {
  readonly secret?: string | undefined;
  readonly schema?: string | undefined;
}

export function locate(text: string, { secret, schema }: Typed, config: Config): StoreLocation {
  if (!/^postgres(ql)?:/.test(text)) {
    if (secret ?? schema) throw new Fault('invalid_request', `${text} is a file: it has no secret and no schema`);
    const path = resolve(text);
    return { path: statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, 'log.db') : path };
  }
  const secrets = createSecrets({ vaults: config.vaults, env: process.env, learn() {} });
  const typed: PostgresLocation = { url: text, ...(schema && { schema }) };
  const known = isDatabase(config.store) && sameDatabase(config.store, typed) ? config.store : undefined;
  return {
    ...known,
    ...typed,
    ...(secret && { password: () => secrets(secret) }),
  };
}

function sameDatabase(configured: PostgresLocation, typed: PostgresLocation): boolean {
  return storeName({ url: configured.url }) === storeName({ url: typed.url });
}

/** Where the keys are that sign receipts of this log: in the data directory it is part of, or the configured one. */
export function keysOf(location: StoreLocation, { dataDir }: Config): string {
  if (isDatabase(location)) return dataDir;
  const own = dirname(location.path);
  return basename(location.path) === 'log.db' && existsSync(join(own, 'keys')) ? own : dataDir;
}
