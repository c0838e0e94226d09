/** How long a server may be silent over one request. Progress starts it anew, up to a bound; people's time is not counted. */
import { Fault } from '../../src/index.ts';
import { Stop, type StopSignal } from '../../src/wire/stop.ts';

export interface Patience {
  /** Fires when whoever asked gives up, or when patience has run out. */
  readonly signal: StopSignal;
  moved(): void;
  /** While this goes on nobody is waiting for the server. */
  during<T>(what: Promise<T>): Promise<T>;
  /** The reason a request ended: ours, when patience ran out. */
  reason(thrown: unknown): unknown;
  end(): void;
}

/** One timer and one listener for a call, both by hand: `AbortSignal.any` and `.timeout` cost more than everything else here. */
export function createPatience(given: StopSignal, silentMs: number, longestMs: number): Patience {
  const out = new Stop();
  const began = performance.now();
  let expired = false;
  let held = 0;
  /** Since when the server has been silent. */
  let since = began;

  const givenUp = () => out.abort(given.reason);
  if (given.aborted) givenUp();
  else given.addEventListener('abort', givenUp, { once: true });

  /** Looks when the time might be up; what happened in between moves it, not the timer. */
  function look(): void {
    const now = performance.now();
    const left = Math.min(held > 0 ? silentMs : since + silentMs - now, began + longestMs - now);
    if (left > 0) {
      timer = setTimeout(look, Math.min(Math.ceil(left), LONGEST_TIMER)).unref();
      return;
    }
    expired = !given.aborted;
    out.abort();
  }
  let timer = setTimeout(look, Math.min(silentMs, longestMs, LONGEST_TIMER)).unref();

  const moved = () => {
    since = performance.now();
  };
  return {
    signal: out,
    moved,
    async during(what) {
      held += 1;
      try {
        return await what;
      } finally {
        held -= 1;
        moved();
      }
    },
    reason: (thrown) =>
      expired && !given.aborted
        ? new Fault('deadline_exceeded', 'the server took too long and was told to stop')
        : thrown,
    end() {
      given.removeEventListener('abort', givenUp);
      clearTimeout(timer);
    },
  };
}

const LONGEST_TIMER = 2 ** 31 - 1;
