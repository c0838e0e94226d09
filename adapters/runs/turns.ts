/** One after the other, for what is about the same thing; side by side otherwise. */
export interface Turns {
  take<T>(about: string, work: () => Promise<T>): Promise<T>;
}

export function createTurns(): Turns {
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
