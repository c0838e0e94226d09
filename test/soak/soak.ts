/**
 * Mixed traffic through all doors of a built gateway for a while, and whether it stays as it was: memory, descriptors and children
 * level, no use failed, everything it wrote valid. What it holds is looked at while nothing is under way, so that a level is a level.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { DOORS, type Use } from './doors.ts';
import { type Held, startGateway } from './process.ts';

export interface SoakOptions {
  readonly minutes: number;
  /** How much more memory than after the warm-up is no leak: 0.05 is five percent. */
  readonly memory: number;
  /** Uses that are under way at once. */
  readonly callers: number;
  readonly progress?: (line: string) => void;
}
export interface Soaked {
  readonly samples: readonly (Held & { readonly seconds: number; readonly uses: number })[];
  readonly uses: ReadonlyMap<string, number>;
  /** Empty when it stayed as it was. */
  readonly violations: readonly string[];
}

const SAMPLES = 30;
/** Connections that a client keeps open come and go; a leak does not stop here. */
const SLACK = { descriptors: 12, children: 1 } as const;
const MOST_FAILURES = 10;
/** A door that is slow does not keep the sample of the others waiting for good. */
const REST_MS = 250;

export async function soak({ minutes, memory, callers, progress = () => {} }: SoakOptions): Promise<Soaked> {
  const gateway = await startGateway();
  const uses = new Map<string, number>(Object.keys(DOORS).map((door) => [door, 0]));
  const wheel = Object.entries(DOORS).flatMap(([door, [use, weight]]) =>
    Array<[string, Use]>(weight).fill([door, use]),
  );
  const samples: Soaked['samples'][number][] = [];
  const failures: string[] = [];
  const began = performance.now();
  const whole = minutes * 60_000;
  let count = 0;

  async function caller(until: number): Promise<void> {
    while (performance.now() < until && failures.length < MOST_FAILURES) {
      count += 1;
      const [door, use] = wheel[(count * 7) % wheel.length] as [string, Use];
      try {
        await use(gateway, count);
        uses.set(door, (uses.get(door) ?? 0) + 1);
      } catch (cause) {
        failures.push(`${door}: ${cause instanceof Error ? cause.message : String(cause)}`);
      }
    }
  }

  try {
    for (let step = 1; step <= SAMPLES && failures.length < MOST_FAILURES; step++) {
      const until = began + (whole * step) / SAMPLES;
      await Promise.all(Array.from({ length: callers }, () => caller(until)));
      await pause(REST_MS);
      const seconds = Math.round((performance.now() - began) / 1000);
      const sample = { seconds, uses: count, ...gateway.held() };
      samples.push(sample);
      progress(lineOf(sample));
    }
  } finally {
    const invalid = await gateway.stop();
    if (invalid) failures.push(invalid);
  }
  return { samples, uses, violations: [...failures, ...risen(samples, memory)] };
}

export function lineOf({ seconds, uses, rssMb, descriptors, children }: Soaked['samples'][number]): string {
  return `${seconds} s  ${uses} uses  ${Math.round(rssMb)} MB  ${descriptors} descriptors  ${children} children`;
}

/** Compares the part after the warm-up (the first third at most ten minutes) with the last: a leak rises all the way. */
function risen(samples: Soaked['samples'], memory: number): readonly string[] {
  const last = samples.at(-1);
  if (!last || samples.length < SAMPLES) return ['it did not run to its end'];
  const warm = samples.filter(({ seconds }) => seconds >= Math.min(600, last.seconds / 3));
  const fifth = Math.max(2, Math.floor(warm.length / 5));
  const [early, late] = [warm.slice(0, fifth), warm.slice(-fifth)];
  const out: string[] = [];
  const [before, after] = [early, late].map((part) => median(part.map(({ rssMb }) => rssMb))) as [number, number];
  if (after > before * (1 + memory)) out.push(`memory rose from ${Math.round(before)} to ${Math.round(after)} MB`);
  for (const name of ['descriptors', 'children'] as const) {
    const [low, high] = [early, late].map((part) => Math.min(...part.map((each) => each[name]))) as [number, number];
    if (high > low + SLACK[name]) out.push(`${name} rose from ${low} to ${high}`);
  }
  return out;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}
