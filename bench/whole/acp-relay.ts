/**
 * How many messages a second pass through the relay, each looked at and the text of all of them written to a durable log,
 * against a bare two-way pump of the same lines that looks at nothing. Same agent, same reader, one process each, taking
 * turns; a turn of the relay is over when its receipt is sealed.
 */
import { throughPump, throughRelay } from '../acp/editor.ts';
import type { Measured } from '../run.ts';

export const name = 'acp-relay';

const CHUNKS = 60_000;
const ROUNDS = 5;

export async function run(): Promise<readonly Measured[]> {
  const [ours, theirs] = [await throughRelay(), await throughPump()];
  try {
    const times = { ours: [] as number[], theirs: [] as number[] };
    for (const editor of [ours, theirs]) await editor.prompt(CHUNKS / 4);
    for (let round = 0; round < ROUNDS; round += 1) {
      times.theirs.push(await theirs.prompt(CHUNKS));
      times.ours.push(await ours.prompt(CHUNKS));
    }
    const rate = (list: number[]) => Math.round((CHUNKS / median(list)) * 1000);
    const [relay, pump] = [rate(times.ours), rate(times.theirs)];
    return [
      {
        bench: name,
        ratio: Number((relay / pump).toFixed(3)),
        against: 'a bare two-way line pump of the same lines; messages per second',
        ours_per_second: relay,
        theirs_per_second: pump,
      },
    ];
  } finally {
    await Promise.all([ours.close(), theirs.close()]);
  }
}

function median(list: number[]): number {
  return list.toSorted((a, b) => a - b)[list.length >> 1] as number;
}
