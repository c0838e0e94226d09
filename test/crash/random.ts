/** Chance from a seed: the same seed makes the same choices, so that a failure can be asked for again. */
export interface Chance {
  /** In [0, 1). */
  next(): number;
  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number;
  /** True this often. */
  happens(probability: number): boolean;
  pick<T>(among: readonly T[]): T;
  /** Something named after a weight, as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
  /** A source of its own: what it is asked does not change what others receive. */
  fork(name: string): Chance;
}

export function createChance(seed: string): Chance {
  let state = hash(seed);

  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const between = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));

  return {
    next,
    between,
    happens: (probability) => next() < probability,
    pick<T>(among: readonly T[]): T {
      if (among.length === 0) throw new Error('there is nothing to pick from');
      return among[between(0, among.length - 1)] as T;
    },
    weighted(weights) {
      const entries = Object.entries<number>(weights);
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        left -= weight;
        if (left < 0) return name as keyof typeof weights;
      }
      return entries.at(-1)?.[0] as keyof typeof weights;
    },
    fork: (name) => createChance(`${seed}/${name}`),
  };
}

/** FNV-1a: spreads similar names apart. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value;
}
