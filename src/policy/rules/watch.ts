/**
 * Reports when one of some files or directories may have changed. May report too often; must not keep a process alive. File
 * system events come first; because they miss some changes (a link swapped further up the path, network file systems, no watches
 * left), the files are also polled, and checked whenever `changed` is called.
 */
import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

const RETRY_MS = 1_000;
/** How often the files are checked when no event arrives. */
const POLL_MS = 1_000;
/**
 * How long a file may be empty or missing before that counts as intended: many programs empty or remove a file and then write it.
 */
const INCOMPLETE_MS = 1_000;

export interface WatchedPaths {
  /**
   * Checks now. Undefined when the files are as last reported; otherwise resolves when `onEvent` has handled their present state.
   */
  changed(): Promise<void> | undefined;
  close(): void;
}

export function watchPaths({
  paths,
  debounceMs,
  onEvent,
}: {
  readonly paths: readonly string[];
  readonly debounceMs: number;
  readonly onEvent: () => unknown;
}): WatchedPaths {
  const watchers = new Map<string, FSWatcher>();
  const timers = new Set<NodeJS.Timeout>();
  let reported = paths.map(signatureOf);
  /** From the first event of a burst until `onEvent` is called. */
  let pending: Promise<void> | undefined;
  /** Set while `onEvent` runs. */
  let working: Promise<void> | undefined;
  /** Settles the pending wait when no further report will come. */
  let abandon = () => {};
  let closed = false;

  const later = (ms: number, run: () => void) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      run();
    }, ms);
    timer.unref();
    timers.add(timer);
  };
  /** Counts from the first event of a burst, so that a busy directory cannot delay the report for ever. */
  const notice = (): Promise<void> | undefined => {
    if (closed) return undefined;
    pending ??= new Promise<void>((resolve) => {
      abandon = resolve;
      later(debounceMs, () => settle(performance.now() + INCOMPLETE_MS, resolve));
    });
    return pending;
  };
  const settle = (until: number, done: () => void) => {
    if (paths.some(isIncomplete) && performance.now() < until) return later(debounceMs, () => settle(until, done));
    pending = undefined;
    reported = paths.map(signatureOf);
    const work = Promise.resolve(onEvent()).then(done, done);
    working = work;
    work.then(() => {
      if (working === work) working = undefined;
    });
  };
  const changed = () => {
    if (pending) return pending;
    return paths.some((path, index) => signatureOf(path) !== reported[index]) ? notice() : working;
  };
  const lost = (path: string) => {
    watchers.get(path)?.close();
    watchers.delete(path);
    if (!closed) {
      later(RETRY_MS, () => {
        start(path);
        // A directory that does not exist yet has no changes to report; it is looked for again.
        if (watchers.has(path)) notice();
      });
    }
  };
  const start = (path: string) => {
    if (closed) return;
    try {
      const whole = isDirectory(path);
      // A file is watched through its directory: editors replace files, and a watch on the old file sees nothing more.
      const watcher = watch(whole ? path : dirname(path), { persistent: false }, (_event, name) => {
        // Mounted configuration is swapped as a whole under names that begin with "..".
        if (whole || name === null || name === basename(path) || name.startsWith('..')) notice();
      });
      watcher.on('error', () => lost(path));
      watchers.set(path, watcher);
    } catch {
      lost(path);
    }
  };
  for (const path of paths) start(path);
  const poll = setInterval(changed, POLL_MS).unref();

  return {
    changed,
    close() {
      closed = true;
      clearInterval(poll);
      for (const timer of timers) clearTimeout(timer);
      for (const watcher of watchers.values()) watcher.close();
      abandon();
    },
  };
}

/** Changes when the file, or a link on the way to it, was replaced or written to. */
function signatureOf(path: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code ?? 'unreadable';
  }
}

function isIncomplete(path: string): boolean {
  try {
    const found = statSync(path);
    return found.isFile() && found.size === 0;
  } catch {
    return true;
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
