/** Everything that has to hold after a kill, in the order in which one thing rests on another. */
import { Broken } from './broken.ts';
import type { Ledger } from './clients/ledger.ts';
import type { Evidence } from './evidence.ts';
import { questionsKeep } from './promises/asks.ts';
import { type EffectCounts, effectsAreHeld, filesAreThere } from './promises/effects.ts';
import { logHasNoGap, streamsWereTrue } from './promises/log.ts';
import { guardedWorkWaits, livesAreLegal, nothingIsSaidTwice, receiptsVerify } from './promises/tasks.ts';
import { type WriteCounts, writesAreDoneOnce } from './promises/writes.ts';

export interface Counts extends EffectCounts, WriteCounts {
  readonly events: number;
  /** Deliveries of events on streams. */
  readonly delivered: number;
  readonly tasks: number;
  readonly receipts: number;
  readonly asks: number;
  readonly replays: number;
  /** How often a task went on after the process it ran in was killed. */
  readonly takenUp: number;
}

export async function keepsPromises(evidence: Evidence, ledger: Ledger): Promise<Counts> {
  logHasNoGap(evidence);
  const delivered = streamsWereTrue(evidence, ledger);
  livesAreLegal(evidence, ledger);
  guardedWorkWaits(evidence);
  nothingIsSaidTwice(evidence);
  await receiptsVerify(evidence);
  questionsKeep(evidence, ledger);
  const effects = effectsAreHeld(evidence);
  await filesAreThere(evidence);
  const writes = writesAreDoneOnce(evidence, ledger);
  return {
    ...effects,
    ...writes,
    delivered,
    events: evidence.events.length,
    tasks: evidence.tasks.size,
    receipts: evidence.receipts.length,
    asks: evidence.asks.size,
    replays: evidence.replays.size,
    takenUp: evidence.events.filter(({ event }) => event === 'vendor.tollbridge.recovered').length,
  };
}

/** When nobody asks for anything more and everything was answered, nothing is left undone. */
export function everythingEnded({ runs, asks }: Evidence, ledger: Ledger): void {
  if (runs.size > 0) throw new Broken('every accepted task reaches an end', `${runs.size} did not`, [...runs]);
  const open = [...asks.values()].filter(({ state }) => state === 'open');
  if (open.length > 0) throw new Broken('every accepted task reaches an end', 'questions are open', open);
  const unanswered = ledger.unanswered();
  if (unanswered.length > 0)
    throw new Broken('every write is answered in the end', `${unanswered.length} are not`, unanswered);
}
