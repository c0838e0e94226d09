/** A minute of mixed traffic through all doors of the built gateway; `npm run soak` is the same for an hour, with a closer look at memory. */
import { expect, test } from 'vitest';
import { DOORS } from '../soak/doors.ts';
import { soak } from '../soak/soak.ts';

/** The traffic, and the time to start the gateway, to finish what is under way and to verify the log on a machine that others use. */
const TIMEOUT_MS = 300_000;
/** In a minute the heap has not found its size; what this finds holds on to everything. */
const LOOSE = 0.8;

test.runIf(process.platform === 'linux')(
  'after a minute of traffic through all doors it holds no more than before, and everything it wrote is valid',
  async () => {
    const { uses, violations } = await soak({ minutes: 1, memory: LOOSE, callers: 4 });
    expect(violations).toEqual([]);
    for (const door of Object.keys(DOORS)) expect(uses.get(door), door).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);
