/**
 * The fourteen stories as they can be performed by processes: the world's clock is the real one, and nobody is held at a pause. Where
 * a story needs either, it is told with other words that do the same.
 */
import type { CoreEvent } from '../../src/model/events.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import { type Aspect, aspectsOf } from '../stories/aspects.ts';
import { readCore, readReceipts, readStory, type Story, storyNames } from '../stories/story.ts';

export { storyNames };

/** Work that says something for a while. */
export const LONG = 'wait 8';
/** The last words of the message that is cut in two. */
export const LAST_WORDS = 'step 8 of 8\n';

interface Change {
  readonly says?: string;
  readonly rules?: readonly object[];
  /** What is then otherwise in the account, and how. */
  readonly tells?: Partial<Readonly<Record<Aspect, unknown>>>;
  readonly why: string;
}

export const CHANGES: Readonly<Record<string, Change>> = {
  'approval-timeout': {
    rules: (readStory('approval-timeout').world.rules ?? []).map((rule) => ({ ...rule, expires: '1s' })),
    why: 'a second is waited for, not ten minutes',
  },
  canceled: {
    says: 'use slow_mail the plan then hello',
    rules: [{ id: 'mail-is-fine', when: { tool: 'slow_mail' }, then: 'allow', say: 'mail may go out' }],
    tells: {
      calls: ['slow_mail canceled'],
      arguments: [['sha256:20fc90d9499f2332c1a08084c905f1b0ebe88ba9b6fc7a1df7aff215a3835ece', null]],
      usage: [['demo', 6, 2]],
    },
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
    tells: {
      said: ['second says: plan says: First look, then leap.'],
      arguments: [['sha256:5c37c7d031fa402093152f8011e5929b0ae5570eba20d1e3c1e208e3a1e0dfb1', null]],
    },
    why: 'the other agent of a gateway is called second',
  },
  resumed: {
    says: LONG,
    tells: { said: [[1, 2, 3, 4, 5, 6, 7, 8].map((step) => `step ${step} of 8\n`).join('')], usage: [['demo', 2, 4]] },
    why: 'the demo agent says a greeting at once, and long work in pieces',
  },
};

export function liveStory(name: string): Story & { readonly rules: readonly object[] } {
  const story = readStory(name);
  const { says = story.world.says, rules = story.world.rules ?? [] } = CHANGES[name] ?? {};
  return { ...story, world: { ...story.world, says }, rules };
}

/** What an account of the story has to say, aspect by aspect. */
export function reportedIn(name: string): Record<Aspect, unknown> {
  const receipt = readReceipts(name)['receipt.json'];
  if (!receipt) throw new Error(`${name} has no receipt`);
  const log = readCore(name).filter(({ task_id }) => task_id === receipt.subject.id);
  return { ...accountOf(receipt, log), ...CHANGES[name]?.tells };
}

/** With files that were written among the effects; the result of a handoff holds ids, which are others each time. */
export function accountOf(receipt: Receipt, log: readonly CoreEvent[]): Record<Aspect, unknown> {
  const aspects = aspectsOf(receipt, log);
  const writes = receipt.side_effects.fs_writes.map(({ path }) => path);
  const handoff = receipt.side_effects.tool_calls.some(({ tool }) => tool === 'handoff');
  return {
    ...aspects,
    effects: [...(aspects.effects as string[]), ...writes],
    results: handoff ? [] : aspects.results,
  };
}
