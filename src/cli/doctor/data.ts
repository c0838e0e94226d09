/**
 * Checks the data directory: whether it can be written, the log opens, key files are private, and the clock fits the
 * log.
 */
import { existsSync } from 'node:fs';
import { readdir, rm, rmdir, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type ApiKey, openApiKeys } from '../../auth/api-keys.ts';
import { systemClock } from '../../core/clock.ts';
import { projector } from '../../core/events/projector.ts';
import type { Config } from '../../runtime/config/config.ts';
import { hasLog, isDatabase, openStore, type StoreLocation } from '../../store/index.ts';
import { requireUsable, withInstallation } from '../context.ts';
import { errorMessageOf } from '../output/error-output.ts';
import { counted } from '../output/terminal-text.ts';
import { lookAtDatabase } from './database.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

type DataLocation = Pick<Config, 'dataDir' | 'store'>;
type KeyLocation = Pick<Config, 'dataDir' | 'sharedFiles'>;

const LITTLE_ROOM = 100 * 1024 * 1024;
/** Allowed difference between the clocks of a machine and its disk. */
const APART_MS = 5_000;

export async function lookAtLog({ dataDir: dir, store }: DataLocation): Promise<readonly Finding[]> {
  const made = absent(resolve(dir));
  try {
    await requireUsable(dir);
    if (made.length > 0 && !isDatabase(store)) return [ok('log', `nothing yet; it will be in ${dir}`)];
    const room = await statfs(dir);
    const free = room.bavail * room.bsize;
    const tight =
      free < LITTLE_ROOM
        ? [
            warn(
              'disk',
              `${Math.floor(free / 1024 / 1024)} MB are left where ${dir} is`,
              'make room: a log that cannot be written stops all work',
            ),
          ]
        : [];
    if (isDatabase(store)) return [...(await lookAtDatabase(store)), ...tight];
    if (!(await hasLog(store))) return [ok('log', `${dir} can be written; there is no log yet`), ...tight];
    return [await opened(dir, store), ...tight];
  } catch (thrown) {
    const { sentence, fix } = errorMessageOf(thrown);
    return [bad('log', sentence, fix ?? 'restore it from a copy, or name another directory with --data')];
  } finally {
    // Creating the directories is the test; they are removed again.
    for (const each of made) await rmdir(each).catch(() => {});
  }
}

/** Missing directories, innermost first. */
function absent(dir: string): readonly string[] {
  return existsSync(dir) ? [] : [dir, ...absent(dirname(dir))];
}

export async function opened(called: string, location: StoreLocation): Promise<Finding> {
  const store = await openStore(location, { clock: systemClock, projector });
  try {
    // Taken and released: this writes beside the log, and leaves nothing in it.
    await (await store.lease('doctor'))?.close();
    const trouble = store.trouble();
    if (trouble) return bad('log', trouble, 'check the disk and its permissions');
    const { size } = await store.tree();
    return ok('log', `${called} opens and can be written; ${counted(size, 'receipt')}`);
  } finally {
    await store.close();
  }
}

/** All key files: receipts' signing key, API keys, vaults and their keys. */
export async function lookAtKeyFiles(config: KeyLocation): Promise<readonly Finding[]> {
  const { dataDir: dir } = config;
  const vaults = await readdir(join(dir, 'vaults')).catch((): string[] => []);
  const files = [
    join(dir, 'keys', 'receipt-keys.json'),
    join(dir, 'auth', 'api-keys.json'),
    ...vaults.map((name) => join(dir, 'vaults', name)),
  ];
  const findings: Finding[] = [];
  let found = 0;
  for (const file of files) {
    const { mode } = (await stat(file).catch(() => undefined)) ?? {};
    if (mode === undefined) continue;
    found += 1;
    if ((mode & 0o077) !== 0) findings.push(bad('keys', `${file} can be read by others`, `chmod 600 ${file}`));
  }
  if (findings.length === 0) findings.push(ok('keys', found === 0 ? 'none yet' : `${counted(found, 'file')}, private`));
  return [...findings, ...(await keysInUse(config))];
}

/** Keys that gateways share are opened with the one secret they all have. */
async function keysInUse(config: KeyLocation): Promise<readonly Finding[]> {
  try {
    return await withInstallation(config, async ({ files }) => {
      const shared = config.sharedFiles ? [ok('keys', `shared by all gateways, sealed: ${files.nameOf('keys')}`)] : [];
      return [...shared, ...expired(await openApiKeys(files, systemClock).list())];
    });
  } catch (thrown) {
    if (!config.sharedFiles) return [];
    const { sentence, fix } = errorMessageOf(thrown);
    return [bad('keys', sentence, fix ?? 'see docs/postgres.md')];
  }
}

function expired(keys: readonly ApiKey[]): readonly Finding[] {
  return keys
    .filter(({ state }) => state === 'expired')
    .map(({ id, name, expires_at }) =>
      warn(
        'keys',
        `API key ${id} (${name}) expired at ${expires_at}`,
        `make a new one: tollbridge keys create ${name} --scope ...`,
      ),
    );
}

export async function lookAtClock(
  { dataDir: dir, store }: DataLocation,
  now = Date.now(),
): Promise<readonly Finding[]> {
  // Times in a database are those of its own clock, which is compared with this one above.
  const newest = isDatabase(store) ? undefined : await newestTime(store);
  if (newest !== undefined && newest - now > APART_MS) {
    return [
      bad(
        'clock',
        `the log was last written at ${new Date(newest).toISOString()}, which is in the future of this clock`,
        'set the clock right: times in receipts and the end of approvals depend on it',
      ),
    ];
  }
  const skew = await diskSkew(dir);
  if (skew !== undefined && Math.abs(skew) > APART_MS) {
    return [
      warn(
        'clock',
        `the disk's clock and this one are ${Math.round(Math.abs(skew) / 1000)} s apart`,
        'set both by NTP',
      ),
    ];
  }
  return [ok('clock', `${new Date(now).toISOString()}`)];
}

async function newestTime(location: StoreLocation): Promise<number | undefined> {
  try {
    if (!(await hasLog(location))) return undefined;
    const store = await openStore(location, { clock: systemClock, projector });
    try {
      const tip = await store.tip({ of: 'all' });
      const event = tip ? await store.event(tip) : undefined;
      return event ? Date.parse(event.created_at) : undefined;
    } finally {
      await store.close();
    }
  } catch {
    return undefined; // reported by the check of the log
  }
}

async function diskSkew(dir: string): Promise<number | undefined> {
  const file = join(dir, `.doctor-${process.pid}`);
  try {
    const before = Date.now();
    await writeFile(file, '');
    return (await stat(file)).mtimeMs - before;
  } catch {
    return undefined;
  } finally {
    await rm(file, { force: true }).catch(() => {});
  }
}
