/** Stories rendered in A2A 1.0: a peer sends a message, reads the stream, answers, cancels, and asks for the task at the end. */
import { openA2a } from '../doors/a2a.ts';
import { play } from '../playing.ts';
import type { Teller } from '../teller.ts';

export const teller: Teller = {
  protocol: 'a2a',
  shares: 'log',
  effects: 'here',
  tell: (world, lines, record) => play(world, lines, openA2a('1.0'), record),
};
