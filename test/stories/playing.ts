/**
 * Plays a rendition over a wire: says what the others say, in order, and takes down what the bridge says back. A protocol
 * brings only its wire; what is waited for, matched and left over is dealt with here, once.
 */
import type { Json, JsonObject } from '../../src/model/schema.ts';
import { asRendered, fill, type Line, type Names, named } from './frames.ts';
import type { Until } from './story.ts';
import type { Reported } from './teller.ts';
import type { World } from './world.ts';

/** What a protocol's teller opens: its door on the gateway, and someone outside who speaks the protocol. */
export interface Wire {
  /** Says this frame as the line's speaker. Resolves once it has been said, not once it is answered. */
  say(frame: Json, line: Line): Promise<void>;
  /** Hangs up and closes the door. Nothing is received afterwards. */
  close(): Promise<void>;
}
/** Called with every frame the bridge says, in the order it comes. */
export type Hear = (frame: Json, where?: { readonly to?: string; readonly on?: string }) => void;
export type OpenWire = (world: World, hear: Hear) => Promise<Wire>;

const TIMEOUT_MS = 10_000;
/** When nothing has been received for this long, a recording takes it that nothing more comes. */
const QUIET_MS = 200;

/**
 * Lines `from: "story"` are directions to the world: `{"until": …}`, `{"pass_ms": …}`, `{"release": true}`. With `record`
 * the bridge's lines of the rendition are not expected, only used for their names, and what it says is written down anew.
 */
export async function play(world: World, lines: readonly Line[], open: OpenWire, record = false): Promise<Reported> {
  const ear = createEar();
  const names: Names = new Map();
  const frames: Line[] = [];
  const wire = await open(world, ear.hear);
  const expected = lines.filter(({ from }) => from === 'bridge');

  const takeDown = (received: Line): void => {
    const at = expected.findIndex((line) => channel(line) === channel(received));
    const [reported] = at < 0 ? [] : expected.splice(at, 1);
    const frame = asRendered(reported?.frame, received.frame, names);
    frames.push({ ...received, frame: record ? named(received.frame, names) : frame });
  };

  try {
    for (const line of lines) {
      if (line.from === 'bridge') {
        if (!record) takeDown(await ear.next(channel(line)));
        continue;
      }
      frames.push(line);
      const frame = fill(line.frame, names);
      if (line.from === 'story') await direct(world, frame as JsonObject);
      else await wire.say(frame, line);
      if (record) for (const received of await ear.untilQuiet()) takeDown(received);
    }
    await world.runtime.idle();
    if (record) for (const received of await ear.untilQuiet()) takeDown(received);
  } finally {
    await wire.close();
  }
  // What nobody expected was said all the same: it stands at the end, where a comparison finds it.
  for (const received of ear.rest()) frames.push(received);
  return { frames };
}

async function direct(world: World, { until, pass_ms, release }: JsonObject): Promise<void> {
  if (until !== undefined) await world.until(until as unknown as Until);
  if (typeof pass_ms === 'number') world.pass(pass_ms);
  if (release === true) world.release();
}

function channel({ to = 'client', on = '' }: Pick<Line, 'to' | 'on'>): string {
  return on ? `${to} on ${on}` : to;
}

function createEar() {
  const waiting: Line[] = [];
  let wake = () => {};
  const arrival = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });

  return {
    hear: ((frame, where = {}) => {
      waiting.push({ from: 'bridge', ...where, frame });
      wake();
    }) satisfies Hear,

    async next(wanted: string): Promise<Line> {
      const deadline = Date.now() + TIMEOUT_MS;
      for (;;) {
        const at = waiting.findIndex((line) => channel(line) === wanted);
        const [line] = at < 0 ? [] : waiting.splice(at, 1);
        if (line) return line;
        if (!(await within(deadline - Date.now(), arrival()))) {
          const rest = JSON.stringify(waiting, undefined, 1);
          throw new Error(`the bridge said nothing more to ${wanted}; not yet told: ${rest}`);
        }
      }
    },

    async untilQuiet(): Promise<Line[]> {
      while (await within(QUIET_MS, arrival()));
      return waiting.splice(0);
    },

    rest: () => waiting.splice(0),
  };
}

/** True when it came to pass in time. */
async function within(ms: number, happening: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms));
  });
  try {
    return await Promise.race([happening.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
