/**
 * A bounded memory of what was used lately. Two generations instead of a linked list: a hit costs one map lookup,
 * and the older half is forgotten at once. Forgets only when told to age, so nothing vanishes in the middle of a batch.
 */
export interface Recent<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
  /** Forget the older generation when the younger one is full. */
  age(): void;
}

export function createRecent<V>(size: number): Recent<V> {
  let young = new Map<string, V>();
  let old = new Map<string, V>();

  return {
    get(key) {
      const hit = young.get(key);
      if (hit !== undefined) return hit;
      const aged = old.get(key);
      if (aged !== undefined) young.set(key, aged);
      return aged;
    },
    set(key, value) {
      young.set(key, value);
    },
    delete(key) {
      young.delete(key);
      old.delete(key);
    },
    clear() {
      young = new Map();
      old = new Map();
    },
    age() {
      if (young.size < size) return;
      old = young;
      young = new Map();
    },
  };
}
