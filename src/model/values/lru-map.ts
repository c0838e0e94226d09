/** A map that holds at most `most` entries: the one used least recently is dropped. For caches, where that costs only time. */
export class LruMap<K, V> extends Map<K, V> {
  readonly #most: number;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  /** Must not be called while iterating over the map: it moves the entry to the end. */
  override get(key: K): V | undefined {
    const value = super.get(key);
    // The order matters only once an entry may have to be dropped.
    if (value !== undefined && this.size >= this.#most) {
      super.delete(key);
      super.set(key, value);
    }
    return value;
  }

  override set(key: K, value: V): this {
    super.delete(key);
    super.set(key, value);
    if (this.size > this.#most) super.delete(this.keys().next().value as K);
    return this;
  }
}
