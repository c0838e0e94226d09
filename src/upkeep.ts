/** What a gateway does now and then: signs the receipts' tree as it grows, and lets go of events that are past their time. */
import type { House } from './compose.ts';
import { later, systemClock } from './core/clock.ts';
import type { Closable, Logger } from './ports.ts';
import { createCheckpoints } from './receipt/checkpoints.ts';

const UPKEEP_MS = 10_000;

export function upkeep(
  { store, log, keyring }: House,
  keepEventsMs: () => number | undefined,
  logger: Logger,
): Closable {
  const checkpoints = createCheckpoints({ store, log, signer: keyring.signer(), clock: systemClock });
  const round = async () => {
    try {
      await checkpoints.take();
      const keep = keepEventsMs();
      if (keep) await store.retain(later(systemClock.now(), -keep));
    } catch (cause) {
      logger.error({ err: cause }, 'upkeep failed; it is tried again');
    }
  };
  const timer = setInterval(round, UPKEEP_MS).unref();
  return {
    async close() {
      clearInterval(timer);
      await round();
    },
  };
}
