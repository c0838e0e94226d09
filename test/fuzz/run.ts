/**
 * `npm run fuzz [-- <protocol>…] [--frames N] [--seed S]`: conversations with mutated frames, protocol by protocol, held against the
 * oracle. A violation is printed with the seed that finds it again.
 */
import { parseArgs } from 'node:util';

export interface FuzzOptions {
  readonly frames: number;
  readonly seed: number;
}
export interface Fuzzed {
  readonly frames: number;
  readonly violations: readonly string[];
}
type Fuzz = (options: FuzzOptions) => Promise<Fuzzed>;

const PROTOCOLS: ReadonlyMap<string, () => Promise<Fuzz>> = new Map([
  ['acp', async () => (await import('./acp.ts')).fuzzAcp],
  ['mcp', async () => (await import('./mcp.ts')).fuzzMcp],
  ['a2a', async () => (await import('./a2a.ts')).fuzzA2a],
  ['ahp', async () => (await import('./ahp.ts')).fuzzAhp],
  ['harn', async () => (await import('./harn.ts')).fuzzHarn],
  ['runs', async () => (await import('./runs.ts')).fuzzRuns],
]);
/** In one go a fuzzer keeps every event it read; in portions memory stays level. Seeds lie as far apart, so that no portion repeats another. */
const PORTION = 10_000;

const { values, positionals } = parseArgs({
  options: {
    frames: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
  },
  allowPositionals: true,
});
const wanted = positionals.length > 0 ? positionals : [...PROTOCOLS.keys()];
const unknown = wanted.filter((name) => !PROTOCOLS.has(name));
if (unknown.length > 0)
  throw new Error(`no fuzzer for ${unknown.join(', ')}; there is ${[...PROTOCOLS.keys()].join(', ')}`);

let bad = 0;
for (const name of wanted) {
  const fuzz = await PROTOCOLS.get(name)?.();
  const began = Date.now();
  let frames = 0;
  let found = 0;
  for (let seed = Number(values.seed); fuzz && frames < Number(values.frames); seed += PORTION) {
    const portion = await fuzz({ frames: Math.min(PORTION, Number(values.frames) - frames), seed });
    frames += portion.frames;
    found += portion.violations.length;
    for (const violation of portion.violations.slice(0, 5)) console.error(`${name}, seed ${seed}: ${violation}`);
    process.stderr.write(`\r${name}: ${frames} frames, ${found} violations`);
  }
  const seconds = (Date.now() - began) / 1000;
  const rate = `${seconds.toFixed(1)} s, ${Math.round(frames / seconds)} a second`;
  console.error(`\r${name}: ${frames} frames, ${found} violations, ${rate}`);
  bad += found;
}
// A portion that found something leaves its gateway open: what has not ended by then will not.
process.exit(bad === 0 ? 0 : 1);
