/**
 * Values in progress, by name, and released when they are over. A plain `Map` keeps removed values reachable: V8 links
 * each table it has rebuilt to its successor, so that once one of them is in the old generation the young-generation
 * collector treats everything ever held in any of them as live, and copies it. Here only an emptied slot stays behind.
 */
interface Slot<T> {
  value: T | undefined;
}

export class InFlightMap<K, T> {
  readonly #slots = new Map<K, Slot<T>>();

  get size(): number {
    return this.#slots.size;
  }

  has(name: K): boolean {
    return this.#slots.has(name);
  }

  get(name: K): T | undefined {
    return this.#slots.get(name)?.value;
  }

  /** Replaces a value that had this name. */
  begin(name: K, value: T): void {
    this.over(name);
    this.#slots.set(name, { value });
  }

  over(name: K): void {
    const slot = this.#slots.get(name);
    if (!slot) return;
    slot.value = undefined;
    this.#slots.delete(name);
  }

  /** A snapshot, because callbacks may end entries while iterating. In the order they began. */
  all(): readonly T[] {
    return Array.from(this.#slots.values(), ({ value }) => value as T);
  }
}
