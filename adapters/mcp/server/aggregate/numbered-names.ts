/** Finds the last of a series of numbered names that are never removed, with few lookups. */

/** `find` looks up the object with this number. Numbers start at 1; `count` is zero where there is none yet. */
export async function lastCounted<T>(
  find: (count: number) => Promise<T | undefined>,
): Promise<{ readonly count: number; readonly found: T | undefined }> {
  let [low, high] = [0, 1];
  let found: T | undefined;
  for (let hit = await find(high); hit !== undefined; hit = await find(high))
    [low, high, found] = [high, high * 2, hit];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const hit = await find(middle);
    if (hit === undefined) high = middle;
    else [low, found] = [middle, hit];
  }
  return { count: low, found };
}
