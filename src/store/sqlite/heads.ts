/**
 * Numbers for names: every resource and every place events happen in has a small integer, and every resource a last
 * sequence. Remembered while nobody else writes the file; asked again as soon as someone has.
 */
import type { Connection, Value } from './connection.ts';
import { insertMany } from './insert.ts';
import { createRecent } from './recent.ts';

export interface Place {
  readonly number: number;
  readonly task: string | null;
  readonly session: string | null;
  readonly workspace: string | null;
}
export interface Head {
  readonly number: number;
  /** Sequence of the last event written. */
  sequence: number;
  /** Events of the unit in hand that are not written yet. */
  staged: number;
  readonly places: Place[];
}
export interface Heads {
  find(object: string, id: string): Head | undefined;
  claim(object: string, id: string): Head;
  place(head: Head, task: string | null, session: string | null, workspace: string | null): Place;
  /** Write the names given out since the last call. */
  write(): void;
  forget(): void;
  age(): void;
}

const REMEMBERED = 20_000;

export function createHeads(connection: Connection): Heads {
  const findResource = connection.prepare('SELECT id, base FROM resources WHERE object = ? AND name = ?');
  const lastSequence = connection.prepare(
    'SELECT sequence FROM events WHERE resource = ? ORDER BY sequence DESC LIMIT 1',
  );
  const placesOf = connection.prepare('SELECT id, task, session, workspace FROM places WHERE resource = ?');
  const lastResource = connection.prepare('SELECT max(id) FROM resources');
  const lastPlace = connection.prepare('SELECT max(id) FROM places');
  const insertResources = insertMany(connection, 'resources (id, object, name)', 3);
  const insertPlaces = insertMany(connection, 'places (id, resource, task, session, workspace)', 5);

  const known = createRecent<Head>(REMEMBERED);
  let nextResource: number | undefined;
  let nextPlace: number | undefined;
  let newResources: Value[] = [];
  let newPlaces: Value[] = [];

  const nextOf = (last: typeof lastResource): number => ((last.get() as [number | null])[0] ?? 0) + 1;
  const keyOf = (object: string, id: string): string => `${object}\n${id}`;

  function load(key: string, object: string, id: string): Head | undefined {
    const found = findResource.get([object, id]) as [number, number] | undefined;
    if (!found) return undefined;
    const [number, base] = found;
    const places = (placesOf.all([number]) as [number, string | null, string | null, string | null][]).map(
      ([place, task, session, workspace]): Place => ({ number: place, task, session, workspace }),
    );
    const last = lastSequence.get([number]) as [number] | undefined;
    const head: Head = { number, sequence: last?.[0] ?? base, staged: 0, places };
    known.set(key, head);
    return head;
  }

  return {
    find(object, id) {
      const key = keyOf(object, id);
      return known.get(key) ?? load(key, object, id);
    },
    claim(object, id) {
      const key = keyOf(object, id);
      const head = known.get(key) ?? load(key, object, id);
      if (head) return head;
      nextResource ??= nextOf(lastResource);
      const fresh: Head = { number: nextResource++, sequence: 0, staged: 0, places: [] };
      newResources.push(fresh.number, object, id);
      known.set(key, fresh);
      return fresh;
    },
    place(head, task, session, workspace) {
      for (const place of head.places) {
        if (place.task === task && place.session === session && place.workspace === workspace) return place;
      }
      nextPlace ??= nextOf(lastPlace);
      const fresh: Place = { number: nextPlace++, task, session, workspace };
      newPlaces.push(fresh.number, head.number, task, session, workspace);
      head.places.push(fresh);
      return fresh;
    },
    write() {
      if (newResources.length > 0) insertResources(newResources);
      if (newPlaces.length > 0) insertPlaces(newPlaces);
      newResources = [];
      newPlaces = [];
    },
    forget() {
      known.clear();
      nextResource = undefined;
      nextPlace = undefined;
      newResources = [];
      newPlaces = [];
    },
    age: known.age,
  };
}
