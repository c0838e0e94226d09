/** Listening to someone who may say nothing: silence is told, and a line on which nothing moves at all is given up. */

/** When something last came over a line, be it only a comment. */
export function createLine() {
  let last = performance.now();
  return {
    moved: () => {
      last = performance.now();
    },
    silentMs: () => performance.now() - last,
  };
}

/** Says `quiet` whenever nothing came for a while, and gives up a line on which nothing moves at all. */
export async function* withPauses<T>(
  source: AsyncGenerator<T>,
  quietMs: number,
  dead: () => boolean,
): AsyncGenerator<T | 'quiet'> {
  let next = source.next();
  try {
    for (;;) {
      const came = await within(next, quietMs);
      if (came === 'late') {
        if (dead()) return;
        yield 'quiet';
        continue;
      }
      if (came.done) return;
      yield came.value;
      next = source.next();
    }
  } finally {
    next.catch(() => {});
    source.return(undefined).catch(() => {});
  }
}

/** `late` when it takes longer; it goes on all the same. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
