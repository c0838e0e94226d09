/**
 * Reading one stream, page by page, from a position on. A page is one short look at the file: no statement stays open
 * between pages, so a slow reader holds nothing back.
 *
 * Resource, task and session streams are merged from the resources that take part in them; a workspace has too many of
 * those and is read by the stretches of the log it appears in.
 */

import type { Stream } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Connection, Statement } from './connection.ts';
import { type Log, lastOfStretch, SPAN, stretchOf } from './log.ts';

export interface Item {
  readonly position: number;
  readonly text: string;
}
export interface Reader {
  /** The next items up to and including `upTo`, at most `most`. `done`: nothing is left up to there. */
  page(upTo: number, most: number): { readonly items: Item[]; readonly done: boolean };
}
export interface Readers {
  /** Starts behind `after`, which must not be behind the floor. */
  open(stream: Stream, after: number): Reader;
  /** True when the first events of a task or resource stream were pruned. */
  beheaded(stream: Stream): boolean;
  tip(stream: Stream): number | undefined;
}

/** One resource's part of a stream. */
interface Member {
  readonly resource: number;
  /** Where to go on: the stretch, and the first sequence not taken yet. */
  stretch: number;
  next: number;
  /** Positions fetched and not taken yet. */
  buffer: number[];
  /** There is nothing left up to this position. */
  exhausted: number;
}

const BUFFERED = 64;

export function createReaders(connection: Connection, log: Log): Readers {
  const range = connection.prepare(
    'SELECT position, body FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT ?',
  );
  const several = connection.prepare(
    `SELECT position, place, body FROM events WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position`,
  );
  const spansFrom = connection.prepare(
    'SELECT span FROM spans WHERE workspace = ? AND span >= ? ORDER BY span LIMIT 1',
  );
  const lastSpan = connection.prepare('SELECT max(span) FROM spans WHERE workspace = ?');
  const inWorkspace = connection.prepare(
    `SELECT e.position, e.body FROM events e JOIN places p ON p.id = e.place
     WHERE e.position > ? AND e.position <= ? AND p.workspace = ? ORDER BY e.position LIMIT ?`,
  );
  const lastInWorkspace = connection.prepare(
    `SELECT e.position FROM events e JOIN places p ON p.id = e.place
     WHERE e.position >= ? AND e.position < ? AND p.workspace = ? ORDER BY e.position DESC LIMIT 1`,
  );
  const resourceNamed = connection.prepare('SELECT id, 0 FROM resources WHERE object = ? AND name = ? AND id > ?');
  const placesOfTask = connection.prepare('SELECT resource, id FROM places WHERE task = ? AND id > ? ORDER BY id');
  const placesOfSession = connection.prepare(
    'SELECT resource, id FROM places WHERE session = ? AND id > ? ORDER BY id',
  );
  const base = connection.prepare('SELECT base FROM resources WHERE id = ?');
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

  function all(after: number): Reader {
    let at = after;
    return {
      page(upTo, most) {
        const items = (range.all([at, upTo, most]) as [number, string][]).map(item);
        at = items.at(-1)?.position ?? at;
        return { items, done: items.length < most };
      },
    };
  }

  function workspace(id: string, after: number): Reader {
    let at = after;
    return {
      page(upTo, most) {
        // One stretch at a time: bounded work, however rare the workspace is.
        const found = spansFrom.get([id, Math.floor((at + 1) / SPAN)]) as [number] | undefined;
        const span = found?.[0];
        if (at >= upTo || span === undefined || span * SPAN > upTo) return { items: [], done: true };
        const end = Math.min(upTo, span * SPAN + SPAN - 1);
        const items = (inWorkspace.all([at, end, id, most]) as [number, string][]).map(item);
        at = items.length === most ? items.at(-1)!.position : end;
        return { items, done: at >= upTo };
      },
    };
  }

  function merged(members: Statement, key: readonly string[], after: number, byPlace: boolean): Reader {
    const parts: Member[] = [];
    const places = new Set<number>();
    let newestKey = 0;
    let at = after;

    function join(): void {
      for (const [resource, place] of members.all([...key, newestKey]) as [number, number][]) {
        newestKey = byPlace ? place : resource;
        places.add(place);
        if (parts.some((part) => part.resource === resource)) continue;
        parts.push({ resource, stretch: stretchOf(at + 1), next: 0, buffer: [], exhausted: -1 });
      }
    }

    function refill(part: Member, upTo: number): void {
      while (part.buffer.length === 0 && part.exhausted < upTo) {
        const found = stretchFrom.get([part.resource, part.stretch]) as [number] | undefined;
        if (found) {
          part.stretch = found[0];
          const events = inStretch.all([part.stretch, part.resource, part.next, after, BUFFERED]) as [number, number][];
          part.buffer = events.map(([, position]) => position);
          part.next = (events.at(-1)?.[0] ?? part.next - 1) + 1;
          if (events.length > 0) return;
        }
        // A stretch the log has left behind is finished; the one it is in may still grow.
        if (found && lastOfStretch(part.stretch) <= upTo) part.stretch++;
        else part.exhausted = upTo;
      }
    }

    /** The part whose next event comes first, if that is not beyond `upTo`. */
    function earliest(upTo: number): Member | undefined {
      let best: Member | undefined;
      for (const part of parts) {
        refill(part, upTo);
        const position = part.buffer[0];
        if (position === undefined || position > upTo) continue;
        if (!best || position < best.buffer[0]!) best = part;
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
          wanted.push(part.buffer.shift()!);
        }
        if (wanted.length === 0) return { items: [], done: true };
        at = wanted.at(-1)!;
        const found = several.all([JSON.stringify(wanted)]) as [number, number, string][];
        const items = found
          .filter(([, place]) => !byPlace || places.has(place))
          .map(([position, , text]): Item => ({ position, text }));
        return { items, done: wanted.length < most };
      },
    };
  }

  /** The newest event in a resource that happened in one of `places`; all of them when undefined. */
  function newestIn(resource: number, places: ReadonlySet<number> | undefined): number | undefined {
    let stretch: number | null = Number.MAX_SAFE_INTEGER;
    while (true) {
      stretch = (stretchBelow.get([resource, stretch]) as [number | null])[0];
      if (stretch === null) return undefined;
      const found = newestInStretch.all([stretch, resource]) as [number, number][];
      const hit = places ? found.find(([, place]) => places.has(place)) : found[0];
      if (hit) return hit[0];
    }
  }

  function membersOf(stream: Stream): { resources: Set<number>; places: Set<number> | undefined } {
    switch (stream.of) {
      case 'resource': {
        const found = resourceNamed.get([stream.object, stream.id, 0]) as [number] | undefined;
        return { resources: new Set(found ? [found[0]] : []), places: undefined };
      }
      case 'task':
      case 'session': {
        const statement = stream.of === 'task' ? placesOfTask : placesOfSession;
        const found = statement.all([stream.id, 0]) as [number, number][];
        return { resources: new Set(found.map(([r]) => r)), places: new Set(found.map(([, p]) => p)) };
      }
      default:
        throw new Fault('internal', `a stream of ${stream.of} has no members`);
    }
  }

  return {
    open(stream, after) {
      switch (stream.of) {
        case 'all':
          return all(after);
        case 'workspace':
          return workspace(stream.id, after);
        case 'resource':
          return merged(resourceNamed, [stream.object, stream.id], after, false);
        case 'task':
          return merged(placesOfTask, [stream.id], after, true);
        case 'session':
          return merged(placesOfSession, [stream.id], after, true);
      }
    },
    beheaded(stream) {
      if (stream.of !== 'task' && stream.of !== 'resource') return false;
      for (const resource of membersOf(stream).resources) {
        if ((base.get([resource]) as [number])[0] > 0) return true;
      }
      return false;
    },
    tip(stream) {
      switch (stream.of) {
        case 'all':
          return log.last() || undefined;
        case 'workspace': {
          const span = (lastSpan.get([stream.id]) as [number | null])[0];
          if (span === null) return undefined;
          const found = lastInWorkspace.get([span * SPAN, span * SPAN + SPAN, stream.id]) as [number] | undefined;
          return found?.[0];
        }
        default: {
          const { resources, places } = membersOf(stream);
          let best: number | undefined;
          for (const resource of resources) {
            const position = newestIn(resource, places);
            if (position !== undefined && position > (best ?? 0)) best = position;
          }
          return best;
        }
      }
    },
  };
}

function item([position, text]: [number, string]): Item {
  return { position, text };
}
