/**
 * A bounded cache of recently used resources. It keeps two generations instead of a linked list: a hit costs two map lookups and
 * no new string, and the older generation is dropped at once. Entries are dropped only by `age()`, so none vanishes in the middle
 * of a batch.
 */
export interface Recent<V> {
  get(object: string, id: string): V | undefined;
  set(object: string, id: string, value: V): void;
  clear(): void;
  /** Drops the older generation when the younger one is full. */
  age(): void;
}

type Generation<V> = Map<string, Map<string, V>>;

export function createRecent<V>(most: number): Recent<V> {
  let young: Generation<V> = new Map();
  let old: Generation<V> = new Map();
  let size = 0;

  function set(object: string, id: string, value: V): void {
    const group = young.get(object);
    if (group) group.set(id, value);
    else young.set(object, new Map([[id, value]]));
    size++;
  }

  return {
    set,
    get(object, id) {
      const hit = young.get(object)?.get(id);
      if (hit !== undefined) return hit;
      const aged = old.get(object)?.get(id);
      if (aged !== undefined) set(object, id, aged);
      return aged;
    },
    clear() {
      young = new Map();
      old = new Map();
      size = 0;
    },
    age() {
      if (size < most) return;
      old = young;
      young = new Map();
      size = 0;
    },
  };
}
