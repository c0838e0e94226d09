/**
 * Does checking a log take more memory the longer it is? `tollbridge verify all` on a log of a hundred thousand events and on one of
 * twenty thousand, both with receipts and signed heads: peak resident size of either process, as the system counts it. The
 * figure is the shorter log's over the longer one's; 1 is level. TOLLBRIDGE_BENCH_EVENTS names other lengths.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Measured } from '../run.ts';
import { growLog } from '../verify/log.ts';

export const name = 'verify';

const PROGRAM = resolve(process.env.TOLLBRIDGE_BUILD ?? resolve(import.meta.dirname, '../..'), 'src/main.js');
const LENGTHS = (process.env.TOLLBRIDGE_BENCH_EVENTS ?? '20000,100000').split(',').map(Number);
/** Said when the process ends: the most it ever had. */
const PEAK = `data:text/javascript,process.on('exit',()=>console.error('peak',process.resourceUsage().maxRSS))`;
const start = promisify(execFile);

interface Checked {
  readonly events: number;
  readonly megabytes: number;
  readonly seconds: number;
}

async function checked(dir: string, length: number): Promise<Checked> {
  const events = await growLog(dir, length);
  const began = performance.now();
  const { stderr } = await start(process.execPath, ['--import', PEAK, PROGRAM, 'verify', 'all', '--data', dir]);
  const [, peak] = /peak (\d+)/.exec(stderr) ?? [];
  if (!peak) throw new Error(`it did not say how much memory it took: ${stderr}`);
  return { events, megabytes: Math.round(Number(peak) / 1024), seconds: Math.round(performance.now() - began) / 1000 };
}

/** One log, checked at each length as it grows. */
export async function run(): Promise<readonly Measured[]> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
  try {
    const found: Checked[] = [];
    for (const length of LENGTHS) found.push(await checked(dir, length));
    const [first] = found;
    return found.slice(1).map((longer) => ({
      bench: name,
      ratio: Math.round((first!.megabytes / longer.megabytes) * 100) / 100,
      against: `peak memory on a log of ${first!.events} events`,
      events: longer.events,
      'MB at most': longer.megabytes,
      'MB at most, short log': first!.megabytes,
      s: longer.seconds,
      's, short log': first!.seconds,
    }));
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
