/** The stories of the live matrix, played through the balancer of a fleet. */
import { expect, test } from 'vitest';
import { performCell } from '../matrix/cell.ts';
import { answeredThere, impossible, surprises } from '../matrix/cells.ts';
import { DOORS, type Door } from '../matrix/doors/index.ts';
import { liveStory, storyNames } from '../matrix/stories.ts';
import type { FleetSetup } from './setup.ts';

/** A client over standard streams starts a process of its own: no balancer stands before it. */
const doors = DOORS.filter((door) => door !== 'acp-stdio');
const all = process.env.TOLLBRIDGE_FLEET_STORIES === 'all';

/** Of each door every so-manieth story; all of them with `TOLLBRIDGE_FLEET_STORIES=all`. */
export function fleetStories(setupOf: () => FleetSetup, every: number): void {
  const played = (story: string, door: Door) =>
    all || (storyNames().indexOf(story) + doors.indexOf(door as (typeof doors)[number])) % every === 0;
  for (const name of storyNames()) {
    const here = doors.filter((door) => played(name, door) && !impossible({ door, backend: 'demo', story: name }));
    if (here.length === 0) continue;
    test(`${name}, each request at another replica: ${here.join(', ')}`, { timeout: 120_000 }, async () => {
      const setup = setupOf();
      const story = liveStory(name);
      await setup.rules(story.rules);
      for (const door of here) {
        const cell = { door, backend: 'demo' as const, story: name };
        const account = await performCell(setup, door, story, answeredThere(cell));
        expect({ door, surprises: surprises(cell, account) }).toEqual({ door, surprises: [] });
      }
    });
  }
}
