/**
 * Small integers for names: every resource and every location of events has one, and every resource has a last sequence. Cached
 * until another writer commits.
 */
import type { LocationIds, LogEnd, Lookups } from '../database.ts';
import { createRecent } from '../recent.ts';
import type { Column, WriteSet } from './write-set.ts';

/** A set of ids that events of a resource carry. An absent id counts as null. */
export interface EventLocation {
  readonly number: number;
  readonly ids: LocationIds;
  /** The last span of the log in which its workspace is known to have events; -1 for none. */
  span: number;
}
export interface Head {
  readonly number: number;
  /** Sequence of the last event. */
  sequence: number;
  /** The last stretch of the log in which it is known to have events; -1 for none. */
  stretch: number;
  readonly locations: EventLocation[];
}
interface Heads {
  find(object: string, id: string): Head | undefined;
  /** `born`: the id was just created, so it is not looked up. */
  claim(object: string, id: string, born: boolean): Head;
  locate(head: Head, ids: LocationIds): EventLocation;
  /** Adds the names assigned since the last call to the write set. */
  fill(writeSet: WriteSet): void;
  /** Drops the cache; numbering continues behind this end of the log. */
  restart(end: LogEnd): void;
  age(): void;
}

const REMEMBERED = 10_000;

export function createHeads(lookups: Lookups): Heads {
  const known = createRecent<Head>(REMEMBERED);
  let lastResource = 0;
  let lastLocation = 0;
  let newResources: Column[] = [];
  let newLocations: Column[] = [];

  function load(object: string, id: string): Head | undefined {
    const found = lookups.head(object, id);
    if (!found) return undefined;
    const { number, sequence, stretch } = found;
    const locations = found.locations.map((location) => ({ number: location.number, ids: named(location), span: -1 }));
    const head: Head = { number, sequence, stretch, locations };
    known.set(object, id, head);
    return head;
  }

  return {
    find: (object, id) => known.get(object, id) ?? load(object, id),
    claim(object, id, born) {
      const head = known.get(object, id) ?? (born ? undefined : load(object, id));
      if (head) return head;
      const fresh: Head = { number: ++lastResource, sequence: 0, stretch: -1, locations: [] };
      newResources.push(fresh.number, object, id);
      known.set(object, id, fresh);
      return fresh;
    },
    locate(head, ids) {
      const wanted = named(ids);
      const known = head.locations.find((location) => sameIds(location.ids, wanted));
      if (known) return known;
      const location = { number: ++lastLocation, ids: wanted, span: -1 };
      newLocations.push(location.number, head.number, wanted.task_id, wanted.session_id, wanted.workspace_id);
      head.locations.push(location);
      return location;
    },
    fill(writeSet) {
      for (const value of newResources) writeSet.resources.push(value);
      for (const value of newLocations) writeSet.locations.push(value);
      newResources = [];
      newLocations = [];
    },
    restart({ resource, location }) {
      known.clear();
      lastResource = resource;
      lastLocation = location;
      newResources = [];
      newLocations = [];
    },
    age: known.age,
  };
}

function sameIds(a: LocationIds, b: LocationIds): boolean {
  return a.task_id === b.task_id && a.session_id === b.session_id && a.workspace_id === b.workspace_id;
}

function named({ workspace_id = null, session_id = null, task_id = null }: LocationIds) {
  return { workspace_id, session_id, task_id };
}
