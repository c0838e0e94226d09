/**
 * How long an editor waits for the first byte of its agent when we stand in between, from a cold start of the built command,
 * against starting and ending the runtime alone. The agent is a shell that speaks at once, so that what is measured is us.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Measured } from '../run.ts';

export const name = 'acp-start';

const ROUNDS = 15;
const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

export async function run(): Promise<readonly Measured[]> {
  if (!existsSync(MAIN)) throw new Error('build it first: npm run build');
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-bench-'));
  try {
    const times = { ours: [] as number[], theirs: [] as number[] };
    for (let round = 0; round < ROUNDS; round += 1) {
      times.theirs.push(await bare());
      times.ours.push(await firstByte(dir));
    }
    const least = { ours: Math.min(...times.ours), theirs: Math.min(...times.theirs) };
    const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1] as number;
    const round = (value: number) => Math.round(value);
    return [
      {
        bench: name,
        ratio: Number((median(times.ours) / median(times.theirs)).toFixed(3)),
        against: 'node -e 0, from start to end',
        more_ms: round(median(times.ours) - median(times.theirs)),
        more_ms_at_best: round(least.ours - least.theirs),
        ours_ms: round(median(times.ours)),
        theirs_ms: round(median(times.theirs)),
      },
    ];
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function bare(): Promise<number> {
  const began = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return performance.now() - began;
}

async function firstByte(dir: string): Promise<number> {
  const began = performance.now();
  const agent = ['sh', '-c', 'echo "{}"; cat >/dev/null'];
  const child = spawn(process.execPath, [MAIN, '--data', dir, 'acp', '--', ...agent], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  await once(child.stdout, 'data');
  const took = performance.now() - began;
  child.stdin.end();
  await once(child, 'exit');
  return took;
}
