/** Small files only their owner may read, replaced whole or not at all. Refuses a file that other users can read. */
import { readFileSync, statSync } from 'node:fs';
import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Fault } from '../model/faults.ts';
import type { PrivateFiles } from '../ports/index.ts';
import { inTurn } from './turns.ts';

/** Private files of a data directory: processes that share it share them. */
export function directoryFiles(dir: string): PrivateFiles {
  const at = (file: string) => join(dir, file);
  const version = (file: string): string => {
    const stat = statSync(at(file), { throwIfNoEntry: false, bigint: true });
    return stat ? `${stat.ino} ${stat.mtimeNs} ${stat.size}` : 'absent';
  };
  return {
    nameOf: at,
    read: (file) => readPrivate(at(file)),
    fresh: version,
    version,
    readNow: (file) => (statSync(at(file), { throwIfNoEntry: false }) ? readFileSync(at(file), 'utf8') : undefined),
    replace: (file, change) => replacePrivate(at(file), change),
    alone: (name, work) => inTurn(at(`${name}.turn`), work),
    lagMs: 0,
    close: async () => {},
  };
}

/** A data directory by its path, or files that are elsewhere. */
export const filesIn = (where: string | PrivateFiles): PrivateFiles =>
  typeof where === 'string' ? directoryFiles(where) : where;

export async function readPrivate(path: string): Promise<string | undefined> {
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) throw new Fault('unavailable', `${path} can be read by others; make it private (0600)`);
    return await readFile(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
}

/** Processes that change it at once take turns: the lock is a file that only one of them can create. */
export async function replacePrivate(path: string, change: (text: string | undefined) => string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const next = `${path}.next`;
  const file = await lock(next);
  try {
    await chmod(next, 0o600);
    await file.writeFile(change(await readPrivate(path)));
    await file.sync();
    await file.close();
    await rename(next, path);
  } catch (cause) {
    await file.close().catch(() => {});
    await rm(next, { force: true });
    throw cause;
  }
}

const STALE_MS = 10_000;

async function lock(path: string) {
  for (;;) {
    try {
      return await open(path, 'wx', 0o600);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
      // Left behind by a process that died while holding the lock.
      const age = await stat(path).then(
        ({ mtimeMs }) => Date.now() - mtimeMs,
        () => 0,
      );
      if (age > STALE_MS) await rm(path, { force: true });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
