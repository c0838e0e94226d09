/** Tells when one of some files or directories may have changed. May tell too often; must not keep a process alive. */
import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

const RETRY_MS = 1_000;
/** How long a file may be empty before it is taken for meant: many programs empty a file and then write it. */
const EMPTY_MS = 1_000;

export interface WatchedPaths {
  close(): void;
}

export function watchPaths({
  paths,
  debounceMs,
  onEvent,
}: {
  readonly paths: readonly string[];
  readonly debounceMs: number;
  readonly onEvent: () => void;
}): WatchedPaths {
  const watchers = new Map<string, FSWatcher>();
  const timers = new Set<NodeJS.Timeout>();
  let pending = false;
  let closed = false;

  const later = (ms: number, run: () => void) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      run();
    }, ms);
    timer.unref();
    timers.add(timer);
  };
  /** From the first event of a burst, so that a busy directory cannot put it off for ever. */
  const notice = () => {
    if (pending || closed) return;
    pending = true;
    later(debounceMs, () => settle(performance.now() + EMPTY_MS));
  };
  const settle = (until: number) => {
    if (paths.some(isEmptyFile) && performance.now() < until) return later(debounceMs, () => settle(until));
    pending = false;
    onEvent();
  };
  const lost = (path: string) => {
    watchers.get(path)?.close();
    watchers.delete(path);
    if (!closed) {
      later(RETRY_MS, () => {
        start(path);
        // A directory that is not there yet has nothing to tell; it is looked for again.
        if (watchers.has(path)) notice();
      });
    }
  };
  const start = (path: string) => {
    if (closed) return;
    try {
      const whole = isDirectory(path);
      // A file is watched through its directory: editors replace files, and a watch on the old one sees nothing more.
      const watcher = watch(whole ? path : dirname(path), { persistent: false }, (_event, name) => {
        // Names that begin with ".." are how mounted configuration is swapped as a whole.
        if (whole || name === null || name === basename(path) || name.startsWith('..')) notice();
      });
      watcher.on('error', () => lost(path));
      watchers.set(path, watcher);
    } catch {
      lost(path);
    }
  };
  for (const path of paths) start(path);

  return {
    close() {
      closed = true;
      for (const timer of timers) clearTimeout(timer);
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}

function isEmptyFile(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true && found.size === 0;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
