/** A bounded memory: the least recently used entry goes first. Forgetting is always safe, it only costs time. */

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
        // Order only matters once something may have to go.
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
