/**
 * What looking for secrets costs: a clean payload, as nearly all are, against turning the same payload into text, which
 * the log has to do anyway. With fifty known values, because a real installation has some.
 */
import { createRedactor } from '../../src/core/redaction/redact.ts';

export const name = 'redact';

/** As in a log: ids and what is said are new each time, words and hashes are not. More of them than anyone remembers. */
const PAYLOADS = Array.from({ length: 5_000 }, (_, n) => ({
  tool_call_id: `task_01JB8Z4K2Q7N5T3V9X1C6M0P8R.call${10_000 + n}`,
  name: 'read_note',
  kind: 'tool',
  input: { path: `notes/plan-${10_000 + n}.md`, limit: 200, options: { follow: true, encoding: 'utf-8' } },
  server: 'demo',
  target: `notes/plan-${10_000 + n}.md`,
  effect: 'read',
  evidence: 'held',
  definition: 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2',
  reason: `Plan ${10_000 + n} says what comes next, so it is read before anything is written down.`,
}));
const KNOWN = 50;
const ROUNDS = 15;
const CALLS = 20_000;

export async function run(): Promise<
  Array<{ bench: string; ratio: number; against: string; [k: string]: number | string }>
> {
  const redactor = createRedactor();
  for (let n = 0; n < KNOWN; n += 1) redactor.learn(`k${n * 7919}-value-${n * 104_729}`);
  const redact = (n: number) => redactor.redact(PAYLOADS[n % PAYLOADS.length]);
  const print = (n: number) => JSON.stringify(PAYLOADS[n % PAYLOADS.length]);

  const ratios: number[] = [];
  const each: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const [ours, theirs] = [nanoseconds(redact), nanoseconds(print)];
    ratios.push(ours / theirs);
    each.push(ours);
  }
  return [
    {
      bench: name,
      ratio: Number(median(ratios).toFixed(2)),
      against: 'JSON.stringify of the same payloads',
      ns_per_payload: Math.round(median(each)),
      bytes: JSON.stringify(PAYLOADS[0]).length,
    },
  ];
}

function nanoseconds(act: (n: number) => unknown): number {
  const start = process.hrtime.bigint();
  for (let call = 0; call < CALLS; call += 1) act(call);
  return Number(process.hrtime.bigint() - start) / CALLS;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}
