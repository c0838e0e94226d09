/** A log as it is typed: a file, a directory with `log.db` in it, or the URL of a database, with what the configuration says about it. */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createSecrets } from '../../../auth/vaults.ts';
import { Fault } from '../../../model/faults.ts';
import { RECEIPT_KEYS } from '../../../receipt/seal/key-file.ts';
import type { Jwks } from '../../../receipt/seal/public-keys.ts';
import type { Config } from '../../../runtime/config/config.ts';
import {
  isDatabase,
  openDatabaseFiles,
  type PostgresLocation,
  type StoreLocation,
  storeName,
} from '../../../store/index.ts';
import { withInstallation } from '../../context.ts';

export interface Typed {
  readonly secret?: string | undefined;
  readonly schema?: string | undefined;
  readonly keys?: string | undefined;
}

export const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:/.test(text);

export function locate(text: string, { secret, schema, keys }: Typed, config: Config): StoreLocation {
  if (!isPostgresUrl(text)) {
    if (secret ?? schema) throw new Fault('invalid_request', `${text} is a file: it has no secret and no schema`);
    const path = resolve(text);
    return { path: statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, 'log.db') : path };
  }
  const secrets = createSecrets({
    vaults: config.vaults.filter(({ provider }) => provider !== 'store'),
    env: process.env,
    learn() {},
  });
  const typed: PostgresLocation = { url: text, ...(schema && { schema }) };
  const known = isDatabase(config.store) && sameDatabase(config.store, typed) ? config.store : undefined;
  return {
    ...known,
    ...typed,
    ...(secret && { password: () => secrets(secret) }),
    ...(keys && { keys: () => secrets(keys) }),
  };
}

function sameDatabase(configured: PostgresLocation, typed: PostgresLocation): boolean {
  return storeName({ url: configured.url }) === storeName({ url: typed.url });
}

/**
 * The keys that sign receipts of this log: in the data directory it is part of, or those of the configuration. Undefined: there are none,
 * and none are made.
 */
export async function keysOf(
  location: StoreLocation,
  config: Config,
): Promise<{ jwks: Jwks | undefined; where: string }> {
  const own = isDatabase(location) ? undefined : dirname(location.path);
  const apart = own !== undefined && existsSync(join(own, RECEIPT_KEYS));
  const shared = isDatabase(location) && location.keys ? () => openDatabaseFiles(location) : undefined;
  const found = apart || shared ? { dataDir: own ?? config.dataDir, sharedFiles: shared } : config;
  return await withInstallation(found, async ({ files, keyring }) => {
    const where = files.nameOf(RECEIPT_KEYS);
    return { where, jwks: (await files.read(RECEIPT_KEYS)) === undefined ? undefined : (await keyring()).jwks() };
  });
}
