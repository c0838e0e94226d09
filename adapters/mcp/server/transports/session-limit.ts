/** Limits open sessions: in total, and for one principal. A session holds memory, and with older servers a process. */
import type { Actor } from '../../../../src/index.ts';

const MOST = 2_048;
const MOST_EACH = 256;

export interface SessionLimit {
  /** The reason another session cannot be opened; undefined when it can, and is counted. */
  open(actor: Actor): string | undefined;
  closed(actor: Actor): void;
}

export function createSessionLimit(most = MOST, mostEach = MOST_EACH): SessionLimit {
  const counts = new Map<string, number>();
  let all = 0;
  const keyOf = ({ tenant_id = '', id }: Actor) => `${tenant_id}\n${id}`;
  return {
    open(actor) {
      const key = keyOf(actor);
      const count = counts.get(key) ?? 0;
      if (count >= mostEach)
        return `${mostEach} sessions of this caller are open; end some with DELETE, or let them expire`;
      if (all >= most) return 'too many sessions are open here; try again later';
      counts.set(key, count + 1);
      all += 1;
      return undefined;
    },
    closed(actor) {
      const key = keyOf(actor);
      const left = (counts.get(key) ?? 1) - 1;
      if (left > 0) counts.set(key, left);
      else counts.delete(key);
      all -= 1;
    },
  };
}
