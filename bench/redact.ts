/**
 * What looking for secrets costs: a clean payload, as nearly all are, against turning the same payload into text, which
 * the log has to do anyway. With fifty known values, because a real house has some.
 */
import { createRedactor } from '../src/core/redact.ts';

export const name = 'redact';

const PAYLOAD = {
  tool_call_id: 'task_01JB8Z4K2Q7N5T3V9X1C6M0P8R.call3',
  name: 'read_note',
  kind: 'tool',
  input: { path: 'notes/plan.md', limit: 200, options: { follow: true, encoding: 'utf-8' } },
  server: 'demo',
  target: 'notes/plan.md',
  effect: 'read',
  evidence: 'held',
  definition: 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2',
  reason: 'The plan says what comes next, so it is read before anything is written down.',
};
const KNOWN = 50;
const ROUNDS = 15;
const CALLS = 20_000;

export async function run(): Promise<
  Array<{ bench: string; ratio: number; against: string; [k: string]: number | string }>
> {
  const redactor = createRedactor();
  for (let n = 0; n < KNOWN; n += 1) redactor.learn(`k${n * 7919}-value-${n * 104_729}`);
  const redact = () => redactor.redact(PAYLOAD);
  const print = () => JSON.stringify(PAYLOAD);

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
      against: 'JSON.stringify of the same payload',
      ns_per_payload: Math.round(median(each)),
      bytes: JSON.stringify(PAYLOAD).length,
    },
  ];
}

function nanoseconds(act: () => unknown): number {
  const start = process.hrtime.bigint();
  for (let call = 0; call < CALLS; call += 1) act();
  return Number(process.hrtime.bigint() - start) / CALLS;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}
