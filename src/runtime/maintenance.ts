/**
 * The gateway's periodic work: signs the trees of receipts and events as they grow, and deletes events past their
 * retention.
 */

import { later, systemClock } from '../core/clock.ts';
import type { Closable, Logger } from '../ports/index.ts';
import type { GrowOptions } from '../receipt/merkle/log-tree.ts';
import { createCheckpoints, type Heads } from '../receipt/seal/checkpoints.ts';
import type { CoreRuntime } from './assemble.ts';

const UPKEEP_MS = 10_000;
/** A process that is stopping leaves the rest to the next one. */
const MOST_AT_CLOSE = 5_000;

export interface UpkeepOptions {
  readonly keepEventsMs: () => number | undefined;
  readonly logger: Logger;
  /** Called with each signed head. */
  readonly signed?: (heads: Heads) => Promise<void>;
}

export function upkeep(
  { store, log, leaves, keyring }: CoreRuntime,
  { keepEventsMs, logger, signed }: UpkeepOptions,
): Closable {
  const checkpoints = createCheckpoints({ store, log, signer: keyring.signer(), clock: systemClock });
  const stopping = new AbortController();
  const round = async (options: GrowOptions) => {
    try {
      const heads = await checkpoints.take({ ...options, leaves });
      await signed?.(heads);
      const keep = keepEventsMs();
      if (keep) await store.retain(later(systemClock.now(), -keep));
    } catch (cause) {
      logger.error({ err: cause }, 'upkeep failed; it is tried again');
    }
  };
  // One round at a time: a long backlog takes longer than the time between two.
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= round({ signal: stopping.signal }).finally(() => {
      running = undefined;
    });
  }, UPKEEP_MS).unref();
  return {
    async close() {
      clearInterval(timer);
      stopping.abort();
      await running;
      await round({ most: MOST_AT_CLOSE });
    },
  };
}
