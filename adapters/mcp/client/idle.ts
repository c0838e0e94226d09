/**
 * Releases a resource that has been unused for a while. Each use only records the time; a single timer checks how long ago that
 * was, so that a use does not cost a timer.
 */
export interface Idle {
  used(): void;
  stop(): void;
}

export function createIdle(ms: number, over: () => void): Idle {
  let last = 0;
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    const left = last + ms - performance.now();
    timer = left > 0 ? setTimeout(look, Math.min(Math.ceil(left), LONGEST_TIMER)).unref() : undefined;
    if (!timer) over();
  }

  return {
    used() {
      last = performance.now();
      timer ??= setTimeout(look, Math.min(ms, LONGEST_TIMER)).unref();
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

const LONGEST_TIMER = 2 ** 31 - 1;
