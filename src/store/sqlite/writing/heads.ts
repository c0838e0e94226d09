/**
 * Small integers for names: every resource and every location of events has one, and every resource has a last sequence. Cached
 * until another writer commits to the file.
 */

import { type Ids, idsText, resourceText } from '../../engine/event.ts';
import { createRecent } from '../../engine/recent.ts';
import type { Connection } from '../connection.ts';
import type { Column, WriteSet } from './write-set.ts';

/** A set of ids that events of a resource carry. Absent and null share one number but have different texts. */
export interface EventLocation {
  readonly number: number;
  readonly ids: Ids;
  readonly text: string;
  /** The last span of the log in which its workspace is known to have events; -1 for none. */
  span: number;
}
export interface Head {
  readonly number: number;
  readonly text: string;
  /** Sequence of the last event. */
  sequence: number;
  /** The last stretch of the log in which it is known to have events; -1 for none. */
  stretch: number;
  readonly locations: EventLocation[];
}
export interface Heads {
  find(object: string, id: string): Head | undefined;
  /** `born`: the id was just created, so it is not looked up. */
  claim(object: string, id: string, born: boolean): Head;
  location(head: Head, ids: Ids): EventLocation;
  /** The number the next new location gets. */
  nextLocation(): number;
  /** Adds the names assigned since the last call to the write set. */
  fill(writeSet: WriteSet): void;
  forget(): void;
  age(): void;
}

const REMEMBERED = 10_000;

export function createHeads(connection: Connection): Heads {
  const findResource = connection.prepare('SELECT id, base FROM resources WHERE object = ? AND name = ?');
  const lastStretch = connection.prepare('SELECT max(stretch) FROM stretches WHERE resource = ?');
  const lastSequence = connection.prepare('SELECT max(sequence) FROM events WHERE position >> 12 = ? AND resource = ?');
  const locationsOf = connection.prepare('SELECT id, task, session, workspace FROM places WHERE resource = ?');
  const lastResource = connection.prepare('SELECT max(id) FROM resources');
  const lastLocation = connection.prepare('SELECT max(id) FROM places');

  const known = createRecent<Head>(REMEMBERED);
  let nextResource: number | undefined;
  let nextLocation: number | undefined;
  let newResources: Column[] = [];
  let newLocations: Column[] = [];

  const nextOf = (last: typeof lastResource): number => ((last.get() as [number | null])[0] ?? 0) + 1;

  function load(object: string, id: string): Head | undefined {
    const found = findResource.get([object, id]) as [number, number] | undefined;
    if (!found) return undefined;
    const [number, base] = found;
    const locations = (locationsOf.all([number]) as [number, string | null, string | null, string | null][]).map(
      ([location, task_id, session_id, workspace_id]) => locationOf(location, { workspace_id, session_id, task_id }),
    );
    const stretch = (lastStretch.get([number]) as [number | null])[0] ?? -1;
    const last = (lastSequence.get([stretch, number]) as [number | null])[0];
    const head: Head = { number, text: resourceText({ object, id }), sequence: last ?? base, stretch, locations };
    known.set(object, id, head);
    return head;
  }

  function locationNumber(): number {
    nextLocation ??= nextOf(lastLocation);
    return nextLocation;
  }

  return {
    nextLocation: locationNumber,
    find: (object, id) => known.get(object, id) ?? load(object, id),
    claim(object, id, born) {
      const head = known.get(object, id) ?? (born ? undefined : load(object, id));
      if (head) return head;
      nextResource ??= nextOf(lastResource);
      const text = resourceText({ object, id });
      const fresh: Head = { number: nextResource++, text, sequence: 0, stretch: -1, locations: [] };
      newResources.push(fresh.number, object, id);
      known.set(object, id, fresh);
      return fresh;
    },
    location(head, ids) {
      for (const location of head.locations) if (sameIds(location.ids, ids)) return location;
      let number = head.locations.find((location) => sameIds(named(location.ids), named(ids)))?.number;
      if (number === undefined) {
        number = locationNumber();
        nextLocation = number + 1;
        const { task_id, session_id, workspace_id } = named(ids);
        newLocations.push(number, head.number, task_id, session_id, workspace_id);
      }
      const location = locationOf(number, ids);
      head.locations.push(location);
      return location;
    },
    fill(writeSet) {
      for (const value of newResources) writeSet.resources.push(value);
      for (const value of newLocations) writeSet.locations.push(value);
      newResources = [];
      newLocations = [];
    },
    forget() {
      known.clear();
      nextResource = undefined;
      nextLocation = undefined;
      newResources = [];
      newLocations = [];
    },
    age: known.age,
  };
}

function locationOf(number: number, { workspace_id, session_id, task_id }: Ids): EventLocation {
  const ids: { -readonly [K in keyof Ids]: Ids[K] } = {};
  if (workspace_id !== undefined) ids.workspace_id = workspace_id;
  if (session_id !== undefined) ids.session_id = session_id;
  if (task_id !== undefined) ids.task_id = task_id;
  return { number, ids, text: idsText(ids), span: -1 };
}

function sameIds(a: Ids, b: Ids): boolean {
  return a.task_id === b.task_id && a.session_id === b.session_id && a.workspace_id === b.workspace_id;
}

function named({ workspace_id = null, session_id = null, task_id = null }: Ids) {
  return { workspace_id, session_id, task_id };
}
