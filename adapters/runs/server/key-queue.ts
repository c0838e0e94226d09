/** Runs work for the same key in sequence, and work for different keys concurrently. */
export interface KeyQueue {
  take<T>(about: string, work: () => Promise<T>): Promise<T>;
}

export function createKeyQueue(): KeyQueue {
  const last = new Map<string, Promise<unknown>>();
  return {
    async take(about, work) {
      const before = last.get(about) ?? Promise.resolve();
      const mine = before.then(work, work);
      last.set(about, mine);
      try {
        return await mine;
      } finally {
        if (last.get(about) === mine) last.delete(about);
      }
    },
  };
}
