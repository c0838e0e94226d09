/** Which cells of the live matrix there are, and which there cannot be. */
import { readStory } from '../stories/story.ts';
import type { Backend } from './backends.ts';
import type { Door } from './doors/index.ts';

/** Why there is nothing to try; undefined: the cell has to work. */
export function impossible(door: Door, backend: Backend, story: string): string | undefined {
  if (door === 'ahp' && backend !== 'demo' && backend !== 'ahp')
    return 'an agent of AHP does its work itself: the gateway decides for it and gives nothing to a backend';
  if (door === 'ahp') return readStory(story).cannot.ahp;
  return undefined;
}
