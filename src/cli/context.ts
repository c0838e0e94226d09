/**
 * Shared by all commands: the options that name a configuration and data directory, the local actor, and access to the
 * log.
 */

import { existsSync, statSync } from 'node:fs';
import { access, constants, mkdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { Actor } from '../model/actions.ts';
import { own } from '../model/values/own.ts';
import type { PendingActs, Store } from '../ports/index.ts';
import type { Keyring } from '../receipt/seal/keys.ts';
import type { Jwks } from '../receipt/seal/public-keys.ts';
import type { CoreRuntime, CoreRuntimeOptions } from '../runtime/assemble.ts';
import { type Config, type ConfigRequest, readConfig } from '../runtime/config/config.ts';
import { userPaths } from '../runtime/config/user-paths.ts';
import type { Installation } from '../runtime/installation/installation.ts';
import { isDatabase, hasLog as storeHasLog, storeName } from '../store/index.ts';
import { trouble } from './output/error-output.ts';
import { projectNotice } from './output/project-notice.ts';

export interface CommonOptions {
  readonly config?: string;
  readonly data?: string;
}

/**
 * The configuration a command works with: the given file, or the user's own, and the rules of a trusted file in the
 * working directory. A file that does not count is reported in a line on standard error, because standard output may be
 * a protocol.
 */
export async function configFrom(options: CommonOptions, more: Partial<ConfigRequest> = {}): Promise<Config> {
  const config = await quietConfigFrom(options, more);
  const notice = projectNotice(config, options);
  if (notice) process.stderr.write(`tollbridge: ${notice}\n`);
  return config;
}

/** The same, for commands that report this themselves. */
export function quietConfigFrom({ config, data }: CommonOptions, more: Partial<ConfigRequest> = {}): Promise<Config> {
  return readConfig({
    env: process.env,
    cwd: process.cwd(),
    user: userPaths(),
    ...(config && { file: config }),
    ...(data && { data }),
    ...more,
  });
}

/** The user of this machine who owns the data directory: all scopes, and a person at a terminal. */
export function localActor(): Actor {
  return { id: `local:${userInfo().username}`, kind: 'person', scopes: ['*'], door: 'cli' };
}

/** The program that started us is an agent of this machine's owner. */
export function localAgent(door: string): Actor {
  return { id: 'agent:local', kind: 'agent', scopes: ['*'], door };
}

/**
 * Opens a core runtime to submit a command; it runs no work and recovers none. The rules on record in the data
 * directory decide, and not those of the directory the command is run in.
 */
export async function withCoreRuntime<T>(
  options: CommonOptions,
  use: (core: CoreRuntime, config: Config) => Promise<T>,
  more: Partial<CoreRuntimeOptions> = {},
): Promise<T> {
  const config = await configFrom(options);
  await requireLog(config);
  const core = await open(config, { policy: 'on record', ...more });
  try {
    return await use(core, config);
  } finally {
    await core.close();
  }
}

export interface OpenLog {
  readonly store: Store;
  /** Public keys of its receipts. */
  readonly keys: Jwks;
  readonly keyring: Keyring;
  readonly installation: Installation;
  /** Acts as they will run, while their questions are open. */
  readonly acts: Pick<PendingActs, 'read'>;
  readonly config: Config;
}

/** Opens the log alone: no rules are loaded and reading writes nothing. */
export async function lookInto<T>(options: CommonOptions, use: (openLog: OpenLog) => Promise<T>): Promise<T> {
  const config = await configFrom(options);
  await requireLog(config);
  await requireUsable(config.dataDir);
  const [{ openStore }, { projector }, { systemClock }] = await Promise.all([
    import('../store/index.ts'),
    import('../core/events/projector.ts'),
    import('../core/clock.ts'),
  ]);
  return await withInstallation(config, async (installation) => {
    const keyring = await installation.keyring();
    const store = await openStore(config.store, { clock: systemClock, projector });
    try {
      const acts = installation.pendingActs(keyring.signer());
      return await use({ store, keys: keyring.jwks(), keyring, acts, installation, config });
    } finally {
      await store.close();
    }
  });
}

/** Keys, sign-ins and switches, wherever they are. */
export async function withInstallation<T>(
  config: Pick<Config, 'dataDir' | 'sharedFiles'>,
  use: (installation: Installation) => Promise<T>,
): Promise<T> {
  const { openInstallation } = await import('../runtime/installation/installation.ts');
  const installation = await openInstallation(config);
  try {
    return await use(installation);
  } finally {
    await installation.close();
  }
}

export async function open(config: Config, more: Partial<CoreRuntimeOptions>): Promise<CoreRuntime> {
  await requireUsable(config.dataDir);
  const { openCoreRuntime } = await import('../runtime/assemble.ts');
  const policy = { load: config.policy.load };
  const core = await openCoreRuntime({
    ...{ dataDir: config.dataDir, store: config.store, sharedFiles: config.sharedFiles, policy },
    ...more,
  });
  if (more.policy === 'on record') return core;
  const { requireRules } = await import('../runtime/console/rules-on-record.ts');
  await requireRules(core.policy).catch(async (cause) => {
    await core.close();
    throw cause;
  });
  return core;
}

/** Checked before anything is opened, because an error about a key file says less than one about its directory. */
export async function requireUsable(dir: string, called = 'the data directory', option = '--data DIR'): Promise<void> {
  try {
    await makeDirectory(resolve(dir));
    await access(dir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw trouble(
      'unavailable',
      `${called} ${dir} cannot be used: ${whyNot(cause)}`,
      `name another${option && ` with ${option}`}, or make this one writable for you`,
      cause,
    );
  }
}

/** One step at a time: where no directory can be created at all, Node's recursive `mkdir` never returns. */
async function makeDirectory(dir: string): Promise<void> {
  const above = dirname(dir);
  if (above !== dir && !existsSync(above)) await makeDirectory(above);
  await mkdir(dir, { mode: 0o700 }).catch((cause) => {
    if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw cause;
  });
}

export function hasLog({ store }: Config): Promise<boolean> {
  return storeHasLog(store);
}

/** The location of the log for messages: its usual directory, the file when it is elsewhere, or the database. */
export function logAt({ dataDir, store }: Config): string {
  if (isDatabase(store)) return storeName(store);
  return dirname(store.path) === dataDir ? dataDir : store.path;
}

/** A missing log is a wrong directory far more often than a wish for an empty one. */
async function requireLog(config: Config): Promise<void> {
  if (await hasLog(config)) return;
  throw trouble(
    'not_found',
    `there is no log in ${logAt(config)}`,
    isDatabase(config.store)
      ? 'begin one: tollbridge serve'
      : 'name the directory with --data DIR, or begin one: tollbridge demo, tollbridge serve',
  );
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'it can only be read',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'it is a file',
  ENOSPC: 'the disk is full',
  ENOENT: 'nothing can be made there',
};

function whyNot(cause: unknown): string {
  const { code = '', message } = cause as NodeJS.ErrnoException;
  return own(REASONS, code) ?? message;
}
