/** The `store` section: the path of the log, its maximum size, and how long a write waits for another process. */
import { join } from 'node:path';
import { durationMs } from '../../model/values/duration.ts';
import type { StoreLocation } from '../../store/index.ts';
import { type Where, wrong } from './document.ts';
import type { ConfigFile } from './shape.ts';

interface PathContext {
  readonly at: (path: string) => string;
  readonly dataDir: string;
  /** The command line or a variable names another data directory: its log is the one inside it. */
  readonly moved: boolean;
  readonly where: Where;
}

/** A smaller log has no room for its own tables. */
const LEAST_BYTES = 16 * 1024 ** 2;

export function storeOf(store: ConfigFile['store'], { at, dataDir, moved, where }: PathContext): StoreLocation {
  const { path, max_size, wait } = store ?? {};
  const maxBytes = max_size === undefined ? undefined : bytesOf(max_size);
  if (max_size !== undefined && (maxBytes === undefined || maxBytes < LEAST_BYTES))
    throw wrong(
      where(['store', 'max_size']),
      `store.max_size: ${max_size} is no size for a log; write 500MB, 10GB or 1TB`,
    );
  const lockTimeoutMs = wait === undefined ? undefined : durationMs(wait);
  if (wait !== undefined && lockTimeoutMs === undefined)
    throw wrong(where(['store', 'wait']), `store.wait: ${wait} is not a duration; write 500ms, 5s or 1m`);
  return {
    path: path && !moved ? at(path) : join(dataDir, 'log.db'),
    ...(maxBytes !== undefined && { maxBytes }),
    ...(lockTimeoutMs !== undefined && { lockTimeoutMs }),
  };
}

const UNITS = { MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 } as const;

export function bytesOf(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?) ?(MB|GB|TB)$/.exec(text) ?? [];
  return unit ? Math.floor(Number(count) * UNITS[unit as keyof typeof UNITS]) : undefined;
}
