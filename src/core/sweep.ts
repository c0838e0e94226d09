/** Looks again and again for what dead processes and passed deadlines have left: orphaned tasks, questions, acts behind them. */
import type { Logger } from '../ports/index.ts';

interface Sweep {
  /** Once now, which fails as it fails, and then at intervals until `close`. */
  start<T>(first: () => Promise<T>, again: () => Promise<unknown>): Promise<T>;
  close(): void;
}

export function createSweep(everyMs: number, logger: Logger): Sweep {
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  return {
    async start(first, again) {
      const repeat = async () => {
        try {
          await again();
        } catch (cause) {
          logger.error({ err: cause }, 'looking for orphaned tasks failed');
        } finally {
          if (!closed) timer = setTimeout(repeat, everyMs).unref();
        }
      };
      const found = await first();
      if (!closed) timer = setTimeout(repeat, everyMs).unref();
      return found;
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
