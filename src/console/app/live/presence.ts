/**
 * Which tabs keep their streams open. A browser opens six connections to a host, for all of its tabs together: a tab out of sight closes
 * its streams and reads on when it is looked at. One tab, the watcher, goes on following the log, and reports to the others how much waits.
 */

const LOCK = 'tollbridge-console-watcher';
const CHANNEL = 'tollbridge-console-waiting';

let watcher = false;
/** What belongs to this page: the streams that are open or at rest. */
const listeners = new Set<() => void>();

function changed(): void {
  for (const listener of listeners) listener();
}

/** Begins to stand in line for the role of the watcher, which is held until the tab is closed. */
export function standBy(): void {
  document.addEventListener('visibilitychange', changed);
  // Browsers have no locks for pages in the clear from another machine: there each tab out of sight rests.
  void navigator.locks?.request(LOCK, () => {
    watcher = true;
    changed();
    return new Promise(() => {});
  });
}

/** True for a tab that nobody looks at, where such tabs close this stream. */
export function rests(kept: boolean): boolean {
  return document.hidden && !(kept && watcher);
}

/** Resolves when the stream may be open. */
export async function awake(kept: boolean, signal: AbortSignal): Promise<void> {
  while (rests(kept) && !signal.aborted) await next(signal);
}

/** A signal that aborts when the tab closes the stream; `leave` when the stream is over. */
export function untilRest(kept: boolean): { readonly signal: AbortSignal; readonly leave: () => void } {
  const stop = new AbortController();
  const look = () => {
    if (rests(kept)) stop.abort();
  };
  listeners.add(look);
  return { signal: stop.signal, leave: () => void listeners.delete(look) };
}

function next(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      listeners.delete(done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    listeners.add(done);
    signal.addEventListener('abort', done);
  });
}

const channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel(CHANNEL);

/** Reports to the other tabs how many approvals wait; a tab at rest says nothing, because it has not read on. */
export function reportWaiting(count: number): void {
  if (!rests(true)) channel?.postMessage(count);
}

/** Calls `then` with what another tab reports. */
export function onWaitingReported(then: (count: number) => void): () => void {
  const received = ({ data }: MessageEvent) => {
    if (typeof data === 'number' && rests(true)) then(data);
  };
  channel?.addEventListener('message', received);
  return () => channel?.removeEventListener('message', received);
}
