/** What every command shares: the options that say which house is meant, who is speaking, and how to look into it. */

import { existsSync, statSync } from 'node:fs';
import { access, constants, mkdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { House, HouseOptions } from '../compose.ts';
import { type Config, type Given, readConfig } from '../config.ts';
import { userPlaces } from '../config-places.ts';
import type { Actor } from '../model/actions.ts';
import { own } from '../model/own.ts';
import type { PendingActs, Store } from '../ports.ts';
import type { Jwks } from '../receipt/public-keys.ts';
import { trouble } from './complaint.ts';
import { projectNotice } from './project-notice.ts';

export interface CommonOptions {
  readonly config?: string;
  readonly data?: string;
}

/**
 * The configuration a command works with: the file it was given, or the person's own, and what a trusted file in the working
 * directory adds. One that does not count is named in a line on standard error, because standard output may be a protocol.
 */
export async function configFrom(options: CommonOptions, more: Partial<Given> = {}): Promise<Config> {
  const config = await quietConfigFrom(options, more);
  const notice = projectNotice(config, options);
  if (notice) process.stderr.write(`tollbridge: ${notice}\n`);
  return config;
}

/** Likewise, for a command that itself says what counts. */
export function quietConfigFrom({ config, data }: CommonOptions, more: Partial<Given> = {}): Promise<Config> {
  return readConfig({
    env: process.env,
    cwd: process.cwd(),
    user: userPlaces(),
    ...(config && { file: config }),
    ...(data && { data }),
    ...more,
  });
}

/** The user of this machine whose data directory it is: everything, and a person at a terminal. */
export function localActor(): Actor {
  return { id: `local:${userInfo().username}`, kind: 'person', scopes: ['*'], door: 'cli' };
}

/**
 * A house to give a word to; it takes up no work and recovers none. Its own rules hold there, as they are on record, and not
 * those of the directory the visitor happens to stand in.
 */
export async function visit<T>(
  options: CommonOptions,
  use: (house: House, config: Config) => Promise<T>,
  more: Partial<HouseOptions> = {},
): Promise<T> {
  const config = await configFrom(options);
  requireLog(config);
  const house = await open(config, { policy: 'on record', ...more });
  try {
    return await use(house, config);
  } finally {
    await house.close();
  }
}

export interface LogBook {
  readonly store: Store;
  /** Public keys of its receipts. */
  readonly keys: Jwks;
  /** Acts as they will run, while people are asked about them. */
  readonly acts: Pick<PendingActs, 'read'>;
  readonly config: Config;
}

/** The log and nothing else: no rules are loaded and nothing is written by looking. */
export async function lookInto<T>(options: CommonOptions, use: (book: LogBook) => Promise<T>): Promise<T> {
  const config = await configFrom(options);
  requireLog(config);
  await requireUsable(config.dataDir);
  const [{ createSqliteStore }, { projector }, { systemClock }, { openKeyring }, { pendingActsIn }] = await Promise.all(
    [
      import('../store/sqlite.ts'),
      import('../core/projector.ts'),
      import('../core/clock.ts'),
      import('../receipt/keys.ts'),
      import('../store/pending-acts.ts'),
    ],
  );
  const keyring = await openKeyring({ dir: join(config.dataDir, 'keys'), now: () => systemClock.now() });
  const store = await createSqliteStore({ ...config.store, clock: systemClock, projector });
  try {
    const acts = pendingActsIn(config.dataDir, keyring.signer());
    return await use({ store, keys: keyring.jwks(), acts, config });
  } finally {
    await store.close();
  }
}

export async function open(config: Config, more: Partial<HouseOptions>): Promise<House> {
  await requireUsable(config.dataDir);
  const { openHouse } = await import('../compose.ts');
  const policy = { load: config.policy.load };
  const house = await openHouse({ dataDir: config.dataDir, place: config.store, policy, ...more });
  if (more.policy === 'on record') return house;
  const { requireRules } = await import('../rules-on-record.ts');
  await requireRules(house.policy).catch(async (cause) => {
    await house.close();
    throw cause;
  });
  return house;
}

/** Said before anything is opened, because a key file that cannot be made says less than the directory it is in. */
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

/** One step at a time: where nothing can be made at all, Node's own way of making them all never comes back. */
async function makeDirectory(dir: string): Promise<void> {
  const above = dirname(dir);
  if (above !== dir && !existsSync(above)) await makeDirectory(above);
  await mkdir(dir, { mode: 0o700 }).catch((cause) => {
    if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw cause;
  });
}

export function hasLog({ store }: Config): boolean {
  return existsSync(store.path);
}

/** Where the log is, as people are told: the directory it is usually in, or the file when it was put elsewhere. */
export function logAt({ dataDir, store }: Config): string {
  return dirname(store.path) === dataDir ? dataDir : store.path;
}

/** A log that is not there is a wrong directory far more often than a wish for an empty one. */
function requireLog(config: Config): void {
  if (hasLog(config)) return;
  throw trouble(
    'not_found',
    `there is no log in ${logAt(config)}`,
    'name the directory with --data DIR, or begin one: tollbridge demo, tollbridge serve',
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
