/** Closes parts in order. Every part gets its chance to close, whatever the one before it did. */
import type { Closable, Logger } from '../ports.ts';

export async function closeAll(parts: readonly Closable[], logger: Logger): Promise<void> {
  for (const part of parts) {
    try {
      await part.close();
    } catch (cause) {
      logger.error({ err: cause }, 'a part of the runtime did not close');
    }
  }
}
