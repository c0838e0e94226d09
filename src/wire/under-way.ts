/**
 * What is under way, by a name, and gone from here when it is over. A `Map` alone keeps in reach what has left it: V8 leaves
 * each table it has rebuilt linked to the one that follows, so that once one of them has grown old the collector of young
 * objects takes everything that ever was in any of them for used, and copies it. Here only an emptied place stays behind.
 */
interface Place<T> {
  what: T | undefined;
}

export class UnderWay<K, T> {
  readonly #places = new Map<K, Place<T>>();

  get size(): number {
    return this.#places.size;
  }

  has(name: K): boolean {
    return this.#places.has(name);
  }

  get(name: K): T | undefined {
    return this.#places.get(name)?.what;
  }

  /** Whatever had this name has it no more. */
  begin(name: K, what: T): void {
    this.over(name);
    this.#places.set(name, { what });
  }

  over(name: K): void {
    const place = this.#places.get(name);
    if (!place) return;
    place.what = undefined;
    this.#places.delete(name);
  }

  /** As it is now: those who are told may end while they are. In the order they began. */
  all(): readonly T[] {
    return Array.from(this.#places.values(), ({ what }) => what as T);
  }
}
