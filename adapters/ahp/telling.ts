/**
 * What an outside harness is told when there is time: a bounded queue that drops old news for new, but never how a run went.
 * One by one; several in one batch only where the configuration says that the harness keeps news in a batch from its decisions.
 */
import { eventRow } from '../../mappings/ahp.ts';
import type { Logger } from '../../src/index.ts';
import type { Asking, Welcome } from './asking.ts';
import { HarnessError } from './harness-error.ts';
import { pause } from './patience.ts';
import type { AhpEvent } from './translate.ts';

export interface Telling {
  tell(event: AhpEvent): void;
  /** Resolves when everything told so far has been sent or given up. */
  told(): Promise<void>;
}

export interface TellingDeps {
  readonly name: string;
  readonly most: number;
  /** The harness tells news from questions inside a batch. Most put everything in it to their decision handler. */
  readonly batches: boolean;
  readonly log: Logger;
  readonly closing: AbortSignal;
  connection(): Promise<Asking>;
  /** How long it is no use to try again. */
  restMs(): number;
}

export function createTelling({ name, most, batches, log, closing, connection, restMs }: TellingDeps): Telling {
  const waiting: AhpEvent[] = [];
  /** Connections that said they take batches and then did not. */
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
        // Older ones may have been dropped for newer ones while nobody could be told.
        drop(waiting.filter(({ event_type }) => !knows(asking.welcome, event_type)));
        next = waiting.slice(0, !batches || oneByOne.has(asking) ? 1 : atOnce(asking.welcome));
        if (next.length > 1) await together(asking, next);
        else if (next[0]) await asking.notify(next[0]);
      } catch (cause) {
        log.warn({ engine: name, err: cause }, 'something could not be told to an outside harness');
        if (next.some(({ event_type }) => event_type === 'run_lifecycle') && !closing.aborted) {
          drop(next.filter(({ event_type }) => event_type !== 'run_lifecycle'));
          await pause(Math.max(10, restMs()), closing);
          continue;
        }
      }
      drop(next);
    }
  }

  async function together(asking: Asking, events: readonly AhpEvent[]): Promise<void> {
    try {
      await asking.batch(events, closing);
    } catch (cause) {
      // It heard us and would not have it: then one by one, which it has to take.
      if (!(cause instanceof HarnessError) || (cause.kind !== 'protocol' && cause.kind !== 'shape')) throw cause;
      oneByOne.add(asking);
      for (const event of events) await asking.notify(event);
    }
  }

  return {
    tell(event) {
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
    async told() {
      await sending;
    },
  };
}

/** Harnesses before 2.4 do not know the words of the run contracts. */
function knows(welcome: Welcome | undefined, type: AhpEvent['event_type']): boolean {
  return !eventRow(type).contract || Number(welcome?.version.split('.')[1] ?? 0) >= 4;
}

/** As many as it says it takes, if it says so. */
function atOnce(welcome: Welcome | undefined): number {
  return welcome?.capabilities.includes('batch') ? Math.max(1, welcome.batchSize ?? 1) : 1;
}
