/**
 * The ids of a replay. They are derived from the source, the request and the number of equal replays before: two copies of one log
 * get the same ids, and no id is used twice in one log. Neither randomness nor the clock is involved.
 */
import type { Json } from '../../model/schema.ts';
import type { Ids, Row, Store } from '../../ports/index.ts';
import type { Applied, ReplayRequest } from './overrides.ts';

/** The identity of a replay. Reasons do not count, nor does the value of a secret: it could be guessed from its hash. */
export function stemOf(
  hash: (value: Json) => string,
  sourceId: string,
  request: ReplayRequest,
  checkpoint: string | undefined,
  applied: readonly Applied[],
): string {
  const overrides = applied.map(({ key, override, sha256, visibility }) => ({
    key,
    kind: override.kind,
    sha256: override.kind === 'secret_value' ? null : sha256,
    artifact_id: override.artifact_id ?? null,
    visibility,
  }));
  const refreshed = [...new Set(request.allowRefresh)].sort();
  const same = { source: sourceId, mode: request.mode, checkpoint: checkpoint ?? null, overrides, refreshed };
  return hash(same).slice('sha256:'.length, 'sha256:'.length + STEM_DIGITS);
}
/** 104 bits: as many as random ids have behind them. */
const STEM_DIGITS = 26;

export function numbered(stem: string, number: number): string {
  return number === 1 ? stem : `${stem}_${number}`;
}

export function replayTaskId(stem: string): string {
  return `task_replay_${stem}`;
}

/** The lowest number that no replay has. Numbers have no gaps, so that the search can double and then halve. */
export async function freeNumber(store: Pick<Store, 'get'>, stem: string): Promise<number> {
  const taken = async (number: number) =>
    (await store.get<Row>('task', replayTaskId(numbered(stem, number)))) !== undefined;
  let low = 0;
  let high = 1;
  while (await taken(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await taken(middle)) low = middle;
    else high = middle;
  }
  return high;
}

/** The first id of a kind is the replay's own name: `receipt_replay_…`. Others are numbered: `action_replay_….2`. */
export function idsOfReplay(stem: string): Ids {
  const counts = new Map<string, number>();
  return {
    next(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1;
      counts.set(prefix, count);
      const name = `${prefix}_replay_${stem}`;
      return count === 1 ? name : `${name}.${count}`;
    },
  };
}
