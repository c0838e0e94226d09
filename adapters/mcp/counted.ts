/** Names that are numbered one after the other and never taken back: the last of them is found with few looks. */

/** `find` says what a number stands for, if for anything. Counting starts at 1; zero where there is none yet. */
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
