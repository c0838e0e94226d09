/**
 * What the relay adds to one message: a small request there and back, one after the other, and a whole short turn with its
 * task, its decision and its sealed receipt, against the same through a bare pump. Both take turns in one run.
 */
import { type Editor, throughPump, throughRelay } from '../acp/editor.ts';
import type { Measured } from '../run.ts';

export const name = 'acp-latency';

const TRIPS = 400;
const TURNS = 60;

export async function run(): Promise<readonly Measured[]> {
  const [ours, theirs] = [await throughRelay(), await throughPump()];
  try {
    const trips = await alternate(TRIPS, ours, theirs, (editor) => editor.trip());
    const turns = await alternate(TURNS, ours, theirs, (editor) => editor.prompt(1));
    const round = (value: number) => Number(value.toFixed(3));
    return [
      {
        bench: name,
        ratio: round(trips.ours / trips.theirs),
        against: 'a bare two-way line pump; p50 of a request there and back',
        added_p50_ms: round(trips.ours - trips.theirs),
        ours_p50_ms: round(trips.ours),
        theirs_p50_ms: round(trips.theirs),
        turn_added_p50_ms: round(turns.ours - turns.theirs),
      },
    ];
  } finally {
    await Promise.all([ours.close(), theirs.close()]);
  }
}

async function alternate(count: number, ours: Editor, theirs: Editor, measure: (editor: Editor) => Promise<number>) {
  const times = { ours: [] as number[], theirs: [] as number[] };
  for (let at = 0; at < count; at += 1) {
    times.theirs.push(await measure(theirs));
    times.ours.push(await measure(ours));
  }
  const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1] as number;
  return { ours: median(times.ours), theirs: median(times.theirs) };
}
