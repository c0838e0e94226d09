/** Compares a record with its replay as rendered lines: ids and times of a replay are its own. */
import type { CoreEvent } from '../../../model/events.ts';
import { createNarrator } from '../../output/event-lines.ts';

export interface ReplayDifference {
  /** The recorded event, and its counterpart in the replay; null where there is none. */
  readonly original_event_id: string | null;
  readonly event_id: string | null;
  readonly before: string | null;
  readonly after: string | null;
}

const REPEATED = 'replay.event_replayed';

export function differences(before: readonly CoreEvent[], after: readonly CoreEvent[]): readonly ReplayDifference[] {
  // A replay says of some events that they were part of it without writing them again, such as what was said to the agent.
  const repeated = new Set(
    after.flatMap(({ event, replay }) => (event === REPEATED ? [replay?.original_event_id] : [])),
  );
  const then = rendered(before.filter((event) => isStory(event) && !repeated.has(event.id)));
  const now = rendered(after.filter(isStory));
  const byOriginal = new Map(now.map((each) => [pairKey(each.event, each.event.replay?.original_event_id), each]));
  const changes: ReplayDifference[] = [];
  for (const { event, text } of then) {
    const key = pairKey(event, event.id);
    const again = byOriginal.get(key);
    byOriginal.delete(key);
    if (again?.text === text) continue;
    changes.push({
      original_event_id: event.id,
      event_id: again?.event.id ?? null,
      before: text,
      after: again?.text ?? null,
    });
  }
  for (const { event, text } of byOriginal.values()) {
    if (event.replay?.original_event_id) continue;
    changes.push({ original_event_id: null, event_id: event.id, before: null, after: text });
  }
  return changes;
}

/**
 * The key that pairs an event with its counterpart. Every replay makes its own end event without an original id, and
 * there is only one.
 */
function pairKey({ event, id }: CoreEvent, original: string | null | undefined): string {
  return /^task\.(completed|failed|canceled)$/.test(event) ? 'end' : (original ?? id);
}

/** Leaves out events of the replay itself: its beginning, its receipt. */
function isStory({ event }: CoreEvent): boolean {
  return !['task.submitted', 'receipt.issued', 'replay.started', 'replay.completed'].includes(event);
}

function rendered(events: readonly CoreEvent[]) {
  const narrate = createNarrator();
  return events.flatMap((event) => {
    const line = narrate(event);
    // Ids in brackets at the end differ between a record and its replay.
    return line ? [{ event, text: `${line.word} ${line.text.replace(/ {2}\([0-9A-Za-z._]{6}\)$/, '')}` }] : [];
  });
}
