/** A bounded cache: the least recently used entry goes first. Dropping an entry is always safe and costs only time. */

export interface Memo<T> {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
}

export function createMemo<T>(capacity: number): Memo<T> {
  const entries = new Map<string, T>();
  return {
    get(key) {
      const value = entries.get(key);
      if (value !== undefined && entries.size >= capacity) {
        // The order matters only once an entry may have to be dropped.
        entries.delete(key);
        entries.set(key, value);
      }
      return value;
    },
    set(key, value) {
      if (capacity <= 0) return;
      entries.delete(key);
      if (entries.size >= capacity) entries.delete(entries.keys().next().value as string);
      entries.set(key, value);
    },
  };
}
