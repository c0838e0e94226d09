/**
 * Where servers keep their data: those of tests in memory where there is room, because every commit waits until it is on disk. Benches and
 * campaigns want that wait.
 */
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const MEMORY = '/dev/shm';
/** Far more than a run of tests writes. */
const ROOM = 4 * 1024 ** 3;

export function dataLocation(): string {
  if (!process.env.VITEST) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > ROOM ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}
