/** How long a server may be silent during one request. Progress restarts the timer, up to a limit; time spent asking people does not count. */
import { Fault } from '../../../src/index.ts';

/** The longest time that a timer can be set to. */
export const FOREVER_MS = 2 ** 31 - 1;

export interface ResponseTimeout {
  /** Fires when the caller aborts, or when the timeout has expired. */
  readonly signal: AbortSignal;
  moved(): void;
  /** The timeout is paused while this promise is pending, because the server is then waiting for the client. */
  during<T>(what: Promise<T>): Promise<T>;
  /** The reason a request ended: ours, when the timeout expired. */
  reason(thrown: unknown): unknown;
  end(): void;
}

/** One timer and one listener per call, without `AbortSignal.any` and `.timeout`, which cost more than everything else here. */
export function createResponseTimeout(parent: AbortSignal, silentMs: number, longestMs: number): ResponseTimeout {
  const out = new AbortController();
  const began = performance.now();
  let expired = false;
  let held = 0;
  /** Since when the server has been silent. */
  let since = began;

  const stop = () => out.abort(parent.reason);
  if (parent.aborted) stop();
  else parent.addEventListener('abort', stop, { once: true });

  /** Checks when the timeout could have expired; progress only records its time and does not reset the timer. */
  function look(): void {
    const now = performance.now();
    const left = Math.min(held > 0 ? silentMs : since + silentMs - now, began + longestMs - now);
    if (left > 0) {
      timer = setTimeout(look, Math.min(Math.ceil(left), FOREVER_MS)).unref();
      return;
    }
    expired = !parent.aborted;
    out.abort();
  }
  let timer = setTimeout(look, Math.min(silentMs, longestMs, FOREVER_MS)).unref();

  const moved = () => {
    since = performance.now();
  };
  return {
    signal: out.signal,
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
      expired && !parent.aborted
        ? new Fault('deadline_exceeded', 'the server took too long and the call was canceled')
        : thrown,
    end() {
      parent.removeEventListener('abort', stop);
      clearTimeout(timer);
    },
  };
}

/** The value, unless the signal fires first: for values that others wait for too, so that nobody gives them up for all. */
export function unlessStopped<T>(what: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new Fault('client_closed', 'the request was given up'));
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    what.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
