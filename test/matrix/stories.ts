/**
 * The fourteen stories as they can be performed by processes: the world's clock is the real one, and nobody is held at a pause. Where
 * a story needs either, it is told with other words that do the same.
 */
import { readStory, type Story, storyNames } from '../stories/story.ts';

export { storyNames };

/** Work that says something for a while. */
export const LONG = 'wait 8';
/** The last words of the message that is cut in two. */
export const LAST_WORDS = 'step 8 of 8\n';

interface Change {
  readonly says?: string;
  readonly rules?: readonly object[];
  readonly why: string;
}

export const CHANGES: Readonly<Record<string, Change>> = {
  'approval-timeout': {
    rules: [
      {
        id: 'mail-needs-a-person',
        when: { tool: 'send_mail' },
        then: 'ask',
        say: 'mail leaves the house, so a person decides',
        expires: '1s',
      },
    ],
    why: 'a second is waited for, not ten minutes',
  },
  canceled: {
    says: 'use slow_mail the plan then hello',
    rules: [{ id: 'mail-is-fine', when: { tool: 'slow_mail' }, then: 'allow', say: 'mail may go out' }],
    why: 'the demo tools are done at once, so the mail is one that takes a minute',
  },
  handoff: {
    says: 'handoff to second: read plan',
    rules: [
      { id: 'reads-are-fine', when: { effect: 'read' }, then: 'allow', say: 'reading changes nothing' },
      {
        id: 'work-may-be-shared',
        when: { kind: 'handoff', target: 'second' },
        then: 'allow',
        say: 'the helper may be given work',
      },
    ],
    why: 'the other agent of a gateway is called second',
  },
  resumed: { says: LONG, why: 'the demo agent says a greeting at once, and long work in pieces' },
};

export function liveStory(name: string): Story & { readonly rules: readonly object[] } {
  const story = readStory(name);
  const { says = story.world.says, rules = story.world.rules ?? [] } = CHANGES[name] ?? {};
  return { ...story, world: { ...story.world, says }, rules };
}
