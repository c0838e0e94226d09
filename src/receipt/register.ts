/**
 * Entries by name, where putting one shares nearly all of the others: folding a task with thousands of open calls stays
 * quick, and pure. In no particular order.
 */
export type Register<V> = readonly ReadonlyMap<string, V>[];

const SHELVES = 64;

export const NO_ENTRIES: Register<never> = Array<ReadonlyMap<string, never>>(SHELVES).fill(new Map<string, never>());

export function entry<V>(register: Register<V>, name: string): V | undefined {
  return register[shelfOf(name)]!.get(name);
}

/** Without a value it is taken out. */
export function withEntryIn<V>(register: Register<V>, name: string, value: V | undefined): Register<V> {
  const at = shelfOf(name);
  const shelf = new Map(register[at]);
  if (value === undefined) shelf.delete(name);
  else shelf.set(name, value);
  return register.with(at, shelf);
}

export function* entriesOf<V>(register: Register<V>): Generator<V> {
  for (const shelf of register) if (shelf.size > 0) yield* shelf.values();
}

/** Names given out in a row differ in few characters, and land on different shelves all the same. */
function shelfOf(name: string): number {
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) hash = (Math.imul(hash, 31) + name.charCodeAt(at)) | 0;
  return (hash ^ (hash >>> 8)) & (SHELVES - 1);
}
