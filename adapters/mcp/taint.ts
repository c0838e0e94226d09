/**
 * Sessions that have read what others wrote. Whatever such a session wants next may be somebody else's wish, and rules may
 * say so. One list for all servers of a house: what was read from one is sent through another.
 */
export interface Taints {
  has(sessionId: string): boolean;
  add(sessionId: string): void;
}

const houses = new WeakMap<object, Taints>();

/** Everyone who was given the same `house` shares a list. */
export function taintsOf(house: object): Taints {
  const known = houses.get(house);
  if (known) return known;
  const made = createTaints();
  houses.set(house, made);
  return made;
}

function createTaints(): Taints {
  const sessions = new Set<string>();
  return {
    has: (sessionId) => sessions.has(sessionId),
    add(sessionId) {
      sessions.delete(sessionId);
      sessions.add(sessionId);
      const [oldest] = sessions;
      if (sessions.size > MOST && oldest !== undefined) sessions.delete(oldest);
    },
  };
}
const MOST = 50_000;
