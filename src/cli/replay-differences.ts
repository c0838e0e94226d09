/** A record and its replay told side by side, as people see them: ids and times of a replay are its own. */
import type { CoreEvent } from '../model/events.ts';
import { createNarrator } from './narrator.ts';

export interface Change {
  /** The recorded event, and the one that stands for it now; null where there is none. */
  readonly original_event_id: string | null;
  readonly event_id: string | null;
  readonly before: string | null;
  readonly after: string | null;
}

export function differences(before: readonly CoreEvent[], after: readonly CoreEvent[]): readonly Change[] {
  const then = told(before.filter(isStory));
  const now = told(after.filter(isStory));
  const byOriginal = new Map(now.map((each) => [placeOf(each.event, each.event.replay?.original_event_id), each]));
  const changes: Change[] = [];
  for (const { event, text } of then) {
    const place = placeOf(event, event.id);
    const again = byOriginal.get(place);
    byOriginal.delete(place);
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

/** What it stands for in the record. The end is made anew by every replay and names none, and there is only one. */
function placeOf({ event, id }: CoreEvent, original: string | null | undefined): string {
  return /^task\.(completed|failed|canceled)$/.test(event) ? 'end' : (original ?? id);
}

/** Of a replay's own making: its beginning, its receipt. */
function isStory({ event }: CoreEvent): boolean {
  return !['task.submitted', 'receipt.issued', 'replay.started', 'replay.completed'].includes(event);
}

function told(events: readonly CoreEvent[]) {
  const narrate = createNarrator();
  return events.flatMap((event) => {
    const line = narrate(event);
    // Ids in brackets at the end are names of this telling, not of the story.
    return line ? [{ event, text: `${line.word} ${line.text.replace(/ {2}\([0-9A-Z]{6}\)$/, '')}` }] : [];
  });
}
