/** One small file only its owner may read, replaced whole or not at all. Refuses a file that other users can read. */
import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fault } from '../model/faults.ts';

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
