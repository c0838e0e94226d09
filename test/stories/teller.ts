/** Someone who can tell stories in one protocol. One file each in `tellers/`, exporting `teller`. */
import type { CoreEvent } from '../../src/model/events.ts';
import type { Line } from './frames.ts';
import type { World } from './world.ts';

export interface Teller {
  readonly protocol: string;
  /**
   * What a rendition has in common with the story. `log`: the demo agent of the gateway does the work, so log and receipts
   * are the story's but for names and what the door adds. `spine`: the work is done at the other end of the wire and
   * only reported, so what is left to agree on is who decided what and how it ended.
   */
  readonly shares: 'log' | 'spine';
  /** Whose tools do what is done: the gateway's, which then hold what the story leaves behind, or someone else's. */
  readonly effects: 'here' | 'elsewhere';
  tell(world: World, lines: readonly Line[], record?: boolean): Promise<Reported>;
}

export interface Reported {
  /** Everything said, in the rendition's own spelling. */
  readonly frames: readonly Line[];
  /** What someone reading the task's events saw of them, when the protocol lets one read them as they are. */
  readonly read?: readonly CoreEvent[];
}

export async function tellerOf(protocol: string): Promise<Teller> {
  const { teller } = (await import(`./tellers/${protocol}.ts`)) as { teller: Teller };
  return teller;
}
