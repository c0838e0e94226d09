/** How long a server may be silent over one request. Progress starts it anew, up to a bound; people's time is not counted. */
import { Fault } from '../../src/index.ts';

export interface Patience {
  /** Fires when whoever asked gives up, or when patience has run out. */
  readonly signal: AbortSignal;
  moved(): void;
  /** While this goes on nobody is waiting for the server. */
  during<T>(what: Promise<T>): Promise<T>;
  /** The reason a request ended: ours, when patience ran out. */
  reason(thrown: unknown): unknown;
  end(): void;
}

export function createPatience(given: AbortSignal, silentMs: number, longestMs: number): Patience {
  // One signal by hand: joining them by `AbortSignal.any` costs more than everything else here.
  const out = new AbortController();
  const givenUp = () => out.abort(given.reason);
  if (given.aborted) givenUp();
  else given.addEventListener('abort', givenUp, { once: true });
  let expired = false;
  const expire = () => {
    expired = !given.aborted;
    out.abort();
  };
  const longest = setTimeout(expire, Math.min(longestMs, LONGEST_TIMER)).unref();
  let timer: NodeJS.Timeout | undefined;
  let held = 0;
  const arm = () => {
    clearTimeout(timer);
    if (held === 0) timer = setTimeout(expire, silentMs).unref();
  };
  arm();
  return {
    signal: out.signal,
    moved: arm,
    async during(what) {
      held += 1;
      clearTimeout(timer);
      try {
        return await what;
      } finally {
        held -= 1;
        arm();
      }
    },
    reason: (thrown) =>
      expired && !given.aborted
        ? new Fault('deadline_exceeded', 'the server took too long and was told to stop')
        : thrown,
    end() {
      given.removeEventListener('abort', givenUp);
      clearTimeout(timer);
      clearTimeout(longest);
    },
  };
}

const LONGEST_TIMER = 2 ** 31 - 1;
