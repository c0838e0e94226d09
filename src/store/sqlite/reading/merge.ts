/**
 * Streams composed of resources: a resource itself, a task, a session. Each resource's events are found through the stretches of
 * the log it appears in and merged by position; events of the same resource in another task or session are filtered out by their
 * location.
 */
import type { Stream } from '../../../model/events.ts';
import { lastOfStretch, stretchOf } from '../../engine/commit/write-set.ts';
import type { StoredBody } from '../../engine/database.ts';
import type { Connection } from '../file/connection.ts';
import type { PagedStream } from './reader.ts';

export type MemberStream =
  | Extract<Stream, { of: 'resource' }>
  | { readonly of: 'task' | 'session'; readonly id: string };
export interface Merge {
  open(stream: MemberStream, after: number): PagedStream;
  /** The position of the stream's first pruned event; undefined: all are kept. */
  prunedFrom(stream: MemberStream): number | undefined;
  tip(stream: MemberStream): number | undefined;
}

/** One resource's part of a stream. */
interface Part {
  readonly resource: number;
  /** Where to go on: the stretch, and the first sequence not fetched yet. */
  stretch: number;
  next: number;
  /** Positions fetched and not consumed yet. */
  fetched: number[];
  /** No event is left up to this position. */
  exhausted: number;
}
/** A resource and one of its locations. A stream of the resource itself covers all its locations, represented by number 0. */
type Member = [resource: number, location: number, pruned: number];

const FETCHED = 64;

export function createMerge(connection: Connection): Merge {
  const resourceNamed = connection.prepare(
    'SELECT id, 0, base > 0 FROM resources WHERE object = ? AND name = ? AND id > ?',
  );
  const locationsOfTask = connection.prepare(
    'SELECT resource, id, pruned FROM places WHERE task = ? AND id > ? ORDER BY id',
  );
  const locationsOfSession = connection.prepare(
    'SELECT resource, id, pruned FROM places WHERE session = ? AND id > ? ORDER BY id',
  );
  const stretchFrom = connection.prepare(
    'SELECT stretch FROM stretches WHERE resource = ? AND stretch >= ? ORDER BY stretch LIMIT 1',
  );
  const stretchBelow = connection.prepare('SELECT max(stretch) FROM stretches WHERE resource = ? AND stretch < ?');
  const inStretch = connection.prepare(
    `SELECT sequence, position FROM events
     WHERE position >> 12 = ? AND resource = ? AND sequence >= ? AND position > ? ORDER BY sequence LIMIT ?`,
  );
  const newestInStretch = connection.prepare(
    'SELECT position, place FROM events WHERE position >> 12 = ? AND resource = ? ORDER BY sequence DESC',
  );
  const several = connection.prepare(
    'SELECT position, place, body FROM events WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position',
  );

  /** Members that joined after the one returned last. */
  function membersAfter(stream: MemberStream, last: number): Member[] {
    if (stream.of === 'resource') return resourceNamed.all([stream.object, stream.id, last]) as Member[];
    return (stream.of === 'task' ? locationsOfTask : locationsOfSession).all([stream.id, last]) as Member[];
  }

  function refill(part: Part, after: number, upTo: number): void {
    while (part.fetched.length === 0 && part.exhausted < upTo) {
      const found = stretchFrom.get([part.resource, part.stretch]) as [number] | undefined;
      if (found) {
        part.stretch = found[0];
        const events = inStretch.all([part.stretch, part.resource, part.next, after, FETCHED]) as [number, number][];
        part.fetched = events.map(([, position]) => position);
        part.next = (events.at(-1)?.[0] ?? part.next - 1) + 1;
        if (events.length > 0) return;
      }
      // A stretch that the log has passed is finished; the current one may still grow.
      if (found && lastOfStretch(part.stretch) <= upTo) part.stretch++;
      else part.exhausted = upTo;
    }
  }

  function open(stream: MemberStream, after: number): PagedStream {
    const parts = new Map<number, Part>();
    const locations = new Set<number>();
    let last = 0;

    /** New members may have joined since the last page. */
    function join(): void {
      for (const [resource, location] of membersAfter(stream, last)) {
        last = stream.of === 'resource' ? resource : location;
        locations.add(location);
        if (parts.has(resource)) continue;
        parts.set(resource, { resource, stretch: stretchOf(after + 1), next: 0, fetched: [], exhausted: -1 });
      }
    }

    /** The part whose next event comes first, if that is not beyond `upTo`. */
    function earliest(upTo: number): Part | undefined {
      let best: Part | undefined;
      for (const part of parts.values()) {
        refill(part, after, upTo);
        const position = part.fetched[0];
        if (position === undefined || position > upTo) continue;
        if (!best || position < best.fetched[0]!) best = part;
      }
      return best;
    }

    return {
      page(upTo, most) {
        join();
        const wanted: number[] = [];
        while (wanted.length < most) {
          const part = earliest(upTo);
          if (!part) break;
          wanted.push(part.fetched.shift()!);
        }
        if (wanted.length === 0) return { items: [], done: true };
        const found = several.all([JSON.stringify(wanted)]) as [number, number, string][];
        const items = found
          .filter(([, location]) => stream.of === 'resource' || locations.has(location))
          .map(([position, , body]): StoredBody => ({ position, body }));
        return { items, done: wanted.length < most };
      },
    };
  }

  /** The newest event of a resource in one of the locations. */
  function newestIn(resource: number, locations: ReadonlySet<number>): number {
    let stretch: number | null = Number.MAX_SAFE_INTEGER;
    while (true) {
      stretch = (stretchBelow.get([resource, stretch]) as [number | null])[0];
      if (stretch === null) return 0;
      const found = newestInStretch.all([stretch, resource]) as [number, number][];
      const hit = locations.has(0) ? found[0] : found.find(([, location]) => locations.has(location));
      if (hit) return hit[0];
    }
  }

  return {
    open,
    prunedFrom(stream) {
      const gone = membersAfter(stream, 0).flatMap(([, , pruned]) => (pruned > 0 ? [pruned] : []));
      return gone.length === 0 ? undefined : gone.reduce((first, each) => Math.min(first, each));
    },
    tip(stream) {
      const members = membersAfter(stream, 0);
      const locations = new Set(members.map(([, location]) => location));
      let newest = 0;
      for (const resource of new Set(members.map(([one]) => one))) {
        newest = Math.max(newest, newestIn(resource, locations));
      }
      return newest || undefined;
    },
  };
}
