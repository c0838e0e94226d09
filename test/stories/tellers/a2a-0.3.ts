/** Stories rendered in A2A 0.3, by a peer that sends no version. */
import { openA2a } from '../doors/a2a.ts';
import { play } from '../playing.ts';
import type { Teller } from '../teller.ts';

export const teller: Teller = {
  protocol: 'a2a-0.3',
  shares: 'log',
  effects: 'here',
  tell: (world, lines, record) => play(world, lines, openA2a(''), record),
};
