/**
 * A list that only grows, where adding shares everything before it: appending stays cheap, and a copy of the whole list costs
 * nothing.
 */
export interface Pile<T> {
  readonly top: T;
  readonly below: Pile<T> | undefined;
}

export function onto<T>(below: Pile<T> | undefined, top: T): Pile<T> {
  return { top, below };
}

/** Oldest first. */
export function listed<T>(pile: Pile<T> | undefined): T[] {
  const list: T[] = [];
  for (let at = pile; at; at = at.below) list.push(at.top);
  return list.reverse();
}

/** A copy of the map with one entry set or, without a value, removed. Meant for the few entries that are open at once. */
export function withEntry<V>(map: ReadonlyMap<string, V>, key: string, value: V | undefined): ReadonlyMap<string, V> {
  const copy = new Map(map);
  if (value === undefined) copy.delete(key);
  else copy.set(key, value);
  return copy;
}
