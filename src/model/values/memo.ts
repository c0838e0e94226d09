/**
 * A cache of computed values that holds at most `most` of them. It forgets the older half at once, whatever is used again stays: on a
 * full cache that costs a fraction of what it costs to keep the exact order of use.
 */
export class Memo<K, V> {
  readonly #half: number;
  #latest = new Map<K, V>();
  #older = new Map<K, V>();

  constructor(most: number) {
    this.#half = Math.floor(most / 2);
  }

  get(key: K): V | undefined {
    const value = this.#latest.get(key);
    if (value !== undefined) return value;
    const old = this.#older.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: K, value: V): void {
    if (this.#half === 0) return;
    if (this.#latest.size >= this.#half) [this.#latest, this.#older] = [new Map(), this.#latest];
    this.#latest.set(key, value);
  }
}
