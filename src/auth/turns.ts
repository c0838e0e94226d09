/**
 * A lock between processes: a file that only one of them can create. A dead process's lock is cleared, and waiting is
 * bounded. For work that must not run twice at once, such as refreshing with a token that can be used once.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Fault } from '../model/faults.ts';

/** Longer than any work done under the lock takes. */
const LONGEST_TURN_MS = 60_000;
const LOOK_MS = 25;

export async function inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
  const mine = `${process.pid} ${randomUUID()}`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const giveUp = Date.now() + 2 * LONGEST_TURN_MS;
  while (!(await taken(path, mine))) {
    if (Date.now() > giveUp) throw new Fault('unavailable', `another process does not give up its turn at ${path}`);
    await clearDead(path);
    await pause(LOOK_MS);
  }
  try {
    return await work();
  } finally {
    // A holder that took too long may have lost the lock to another process by now.
    if ((await readFile(path, 'utf8').catch(() => '')) === mine) await rm(path, { force: true });
  }
}

async function taken(path: string, mine: string): Promise<boolean> {
  try {
    await writeFile(path, mine, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw cause;
  }
}

/** The lock is renamed before it is deleted: of two processes that find it dead, only one can rename it. */
async function clearDead(path: string): Promise<void> {
  const holder = await readFile(path, 'utf8').catch(() => undefined);
  if (holder === undefined || (await isAlive(path, holder))) return;
  const aside = `${path}.${randomUUID()}`;
  await rename(path, aside).catch(() => {});
  // A living process may have taken the lock between the check and the rename; then it is put back.
  const moved = await readFile(aside, 'utf8').catch(() => undefined);
  if (moved !== undefined && moved !== holder)
    await writeFile(path, moved, { flag: 'wx', mode: 0o600 }).catch(() => {});
  await rm(aside, { force: true });
}

async function isAlive(path: string, holder: string): Promise<boolean> {
  const pid = Number(holder.split(' ', 1)[0]);
  const age = await stat(path).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0,
  );
  // Created and not written yet.
  if (holder === '') return age < LOOK_MS * 40;
  if (!Number.isInteger(pid) || pid <= 0 || age > LONGEST_TURN_MS) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EPERM';
  }
}
