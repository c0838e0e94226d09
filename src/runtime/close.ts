/** Closes parts in order. Every part is closed even when the one before it threw. */
import type { Closable, Logger } from '../ports/index.ts';

export async function closeAll(parts: readonly Closable[], logger: Logger): Promise<void> {
  for (const part of parts) {
    try {
      await part.close();
    } catch (cause) {
      logger.error({ err: cause }, 'a part of the runtime did not close');
    }
  }
}
