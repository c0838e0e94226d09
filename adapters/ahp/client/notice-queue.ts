/**
 * Notifications for an outside harness: a bounded queue that drops old ones for new ones, but never the outcome of a run. Sent
 * one by one; in batches only where the configuration says that the harness keeps notifications in a batch away from its
 * decisions.
 */
import { eventRow } from '../../../mappings/ahp.ts';
import type { Logger } from '../../../src/index.ts';
import { pause } from '../timeout.ts';
import type { AhpEvent } from '../translate.ts';
import type { Asking, Welcome } from './harness-client.ts';
import { HarnessError } from './harness-error.ts';

export interface NoticeQueue {
  send(event: AhpEvent): void;
  /** Resolves when all notifications so far were sent or given up. */
  flushed(): Promise<void>;
}

export interface NoticeQueueDeps {
  readonly name: string;
  readonly most: number;
  /** The harness separates notifications from questions inside a batch. Most pass everything in it to their decision handler. */
  readonly batches: boolean;
  readonly log: Logger;
  readonly closing: AbortSignal;
  connection(): Promise<Asking>;
  /** How long to wait before the next attempt. */
  restMs(): number;
}

export function createNoticeQueue({
  name,
  most,
  batches,
  log,
  closing,
  connection,
  restMs,
}: NoticeQueueDeps): NoticeQueue {
  const waiting: AhpEvent[] = [];
  /** Connections that declared batches and then refused one. */
  const oneByOne = new WeakSet<Asking>();
  let sending: Promise<void> | undefined;

  function drop(events: readonly AhpEvent[]): void {
    for (const event of events) {
      const at = waiting.indexOf(event);
      if (at >= 0) waiting.splice(at, 1);
    }
  }

  async function send(): Promise<void> {
    while (waiting.length > 0 && !closing.aborted) {
      let next: readonly AhpEvent[] = waiting.slice(0, 1);
      try {
        const asking = await connection();
        // While the harness was unreachable, older notifications may have been dropped for newer ones.
        drop(waiting.filter(({ event_type }) => !knows(asking.welcome, event_type)));
        next = waiting.slice(0, !batches || oneByOne.has(asking) ? 1 : atOnce(asking.welcome));
        if (next.length > 1) await sendBatch(asking, next);
        else if (next[0]) await asking.notify(next[0]);
      } catch (cause) {
        log.warn({ engine: name, err: cause }, 'a notice could not be delivered to an outside harness');
        if (next.some(({ event_type }) => event_type === 'run_lifecycle') && !closing.aborted) {
          drop(next.filter(({ event_type }) => event_type !== 'run_lifecycle'));
          await pause(Math.max(10, restMs()), closing);
          continue;
        }
      }
      drop(next);
    }
  }

  async function sendBatch(asking: Asking, events: readonly AhpEvent[]): Promise<void> {
    try {
      await asking.batch(events, closing);
    } catch (cause) {
      // The harness received the batch and refused it: single notifications follow, which it must accept.
      if (!(cause instanceof HarnessError) || (cause.kind !== 'protocol' && cause.kind !== 'shape')) throw cause;
      oneByOne.add(asking);
      for (const event of events) await asking.notify(event);
    }
  }

  return {
    send(event) {
      if (closing.aborted) return;
      if (waiting.length >= most) {
        const oldest = waiting.findIndex(({ event_type }) => event_type !== 'run_lifecycle');
        if (oldest < 0) return;
        waiting.splice(oldest, 1);
      }
      waiting.push(event);
      sending ??= send().finally(() => {
        sending = undefined;
      });
    },
    async flushed() {
      await sending;
    },
  };
}

/** Harnesses before 2.4 do not know the event types of the run contracts. */
function knows(welcome: Welcome | undefined, type: AhpEvent['event_type']): boolean {
  return !eventRow(type).contract || Number(welcome?.version.split('.')[1] ?? 0) >= 4;
}

/** The batch size it declares, if it declares one. */
function atOnce(welcome: Welcome | undefined): number {
  return welcome?.capabilities.includes('batch') ? Math.max(1, welcome.batchSize ?? 1) : 1;
}
