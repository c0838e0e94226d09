/**
 * The first minute, in milliseconds of a person's time: how much longer `tollbridge --help` takes than Node itself, and
 * how long `tollbridge demo` takes from Enter to its first event, again beside bare Node. Started cold each time, from the
 * build, taking turns; medians.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Measured } from '../run.ts';

export const name = 'cli';
export const names = ['cli-help', 'cli-demo'];

const PROGRAM = resolve(process.env.TOLLBRIDGE_BUILD ?? resolve(import.meta.dirname, '../..'), 'src/main.js');
const ROUNDS = 7;

export async function run(wanted: string = name): Promise<readonly Measured[]> {
  const kinds = wanted === name ? names : [wanted];
  const measured: Measured[] = [];
  for (const kind of kinds) measured.push(await measure(kind));
  return measured;
}

async function measure(kind: string): Promise<Measured> {
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    bare.push(await timed(['-e', 'process.stdout.write("x")'], /x/));
    if (kind === 'cli-help') ours.push(await timed([PROGRAM, '--help'], /Usage/));
    else {
      const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
      ours.push(await timed([PROGRAM, 'demo', '--no', '--data', dir], /^ {2}event \d+/m));
      await rm(dir, { recursive: true, force: true });
    }
  }
  const [mine, node] = [median(ours), median(bare)];
  return {
    bench: kind,
    ratio: round(mine / node),
    against: 'node printing one character',
    ms: round(mine),
    node_ms: round(node),
    over_node_ms: round(mine - node),
  };
}

/** From the start of the process until its output has the pattern; it is left to end by itself. */
function timed(args: readonly string[], pattern: RegExp): Promise<number> {
  const started = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  let seen: number | undefined;
  child.stdout.on('data', (chunk) => {
    out += chunk;
    if (seen === undefined && pattern.test(out)) seen = performance.now() - started;
  });
  return new Promise((resolve, reject) => {
    child.once('close', () => (seen === undefined ? reject(new Error(`it never said ${pattern}`)) : resolve(seen)));
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
