/** The log itself: nothing acknowledged is missing, nothing has a gap, nobody was shown what is not there. */
import type { CoreEvent } from '../../../src/model/events.ts';
import { eventId } from '../../../src/model/events.ts';
import { Broken } from '../broken.ts';
import type { Ledger, Received } from '../clients/ledger.ts';
import type { Evidence } from '../evidence.ts';

export function logHasNoGap({ events }: Evidence): void {
  const sequences = new Map<string, number>();
  let before: CoreEvent | undefined;
  for (const [at, event] of events.entries()) {
    if (event.id !== eventId(at + 1))
      throw new Broken('events have no gap', `${event.id} stands where ${eventId(at + 1)} should`);
    if (before && event.created_at < before.created_at)
      throw new Broken('time does not go backwards', `${event.id} is older than the event before it`);
    const resource = `${event.resource.object} ${event.resource.id}`;
    const sequence = (sequences.get(resource) ?? 0) + 1;
    if (event.sequence !== sequence)
      throw new Broken(
        'sequences have no gap',
        `${event.id} is number ${event.sequence} of ${resource}, not ${sequence}`,
      );
    sequences.set(resource, sequence);
    before = event;
  }
}

/** Every event a stream delivered is there, word for word, and between its first and its last none was left out. */
export function streamsWereTrue({ events }: Evidence, ledger: Ledger): number {
  let count = 0;
  const byId = new Map(events.map((event) => [event.id, event]));
  const texts = new Map<string, string>();
  for (const received of ledger.streams) {
    for (const frame of received.frames) {
      const event = byId.get(frame.id);
      if (!event)
        throw new Broken('acknowledged events are there', `${frame.id} was delivered on ${received.path}`, frame);
      const text = texts.get(frame.id) ?? shown(event);
      texts.set(frame.id, text);
      if (text !== frame.data)
        throw new Broken('acknowledged events are unchanged', frame.id, { delivered: frame.data, kept: text });
      count += 1;
    }
    leftNothingOut(received, events);
  }
  return count;
}

/** As a reader gets it: without what other wires said, and a repeated event with its own place as a cursor. */
function shown({ ext: _, ...event }: CoreEvent): string {
  const { replay, id } = event;
  return JSON.stringify(replay ? { ...event, replay: { ...replay, replay_cursor: id } } : event);
}

function leftNothingOut({ path, frames, of, fromNow }: Received, events: readonly CoreEvent[]): void {
  const last = frames.at(-1)?.id;
  if (last === undefined) return;
  const first = fromNow ? (frames[0]?.id ?? '') : '';
  const due = events.filter((event) => event[of.member] === of.id && event.id >= first && event.id <= last);
  for (const [at, event] of due.entries()) {
    if (event.id === frames[at]?.id) continue;
    const detail = { due: event.id, delivered: frames[at]?.id };
    throw new Broken('a stream is complete', `${path} skipped or repeated an event`, detail);
  }
  if (due.length !== frames.length) throw new Broken('a stream is complete', `${path} delivered more than there is`);
}
