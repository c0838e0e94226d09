/** Reading a stream that may be silent: silence is reported, and a dead stream is abandoned. */

/** Time since the last bytes on a stream, be it only a comment. */
export function createSilenceDetector() {
  let last = performance.now();
  return {
    moved: () => {
      last = performance.now();
    },
    silentMs: () => performance.now() - last,
  };
}

/** Yields `quiet` whenever nothing arrived for a while, and ends when `dead` says that the stream is. */
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

/** `late` when it takes longer; the promise itself continues. */
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
