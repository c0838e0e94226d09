/** Waiting for several answers of which some may never come. */

/** After the first of several answers, how long the next one may take. */
const NEXT_MS = 500;
/** How long the first may take. */
const FIRST_MS = 5_000;

/**
 * Resolves when all are settled, or when no further one settles for a moment (`nextMs`) after the last: one that hangs does not hold up
 * the others. Never rejects.
 */
export function mostOf(all: readonly Promise<unknown>[], nextMs = NEXT_MS): Promise<void> {
  if (all.length === 0) return Promise.resolve();
  return new Promise((resolve) => {
    let left = all.length;
    let timer = setTimeout(resolve, FIRST_MS);
    const settled = () => {
      left -= 1;
      clearTimeout(timer);
      if (left === 0) resolve();
      else timer = setTimeout(resolve, nextMs);
    };
    for (const each of all) each.then(settled, settled);
  });
}
