/**
 * The words of the log as its writer knows them, numbered one after the other. Events use words of their own era only, so that those of an
 * era go when its events are pruned; receipts are kept for good, and so are their words. A word counts once its batch is on disk.
 */
import type { CoreEvent } from '../../../model/events.ts';
import type { Receipt } from '../../../model/receipt.ts';
import { eraOf, firstOfEra, type WriteSet } from '../commit/write-set.ts';
import type { Database, LogEnd } from '../database.ts';
import { andThen, type Wait } from '../wait.ts';
import { HIGHEST_WORD, LONGEST_AGAIN } from './format.ts';
import { createPacker } from './pack.ts';
import { createVocabulary, type Vocabulary } from './vocabulary.ts';

export interface WordWriter {
  event(event: CoreEvent, position: number): string;
  receipt(receipt: Receipt): string;
  /** Adds the words made since the last call to the write set; returns the number of the last word. */
  fill(writeSet: WriteSet): number;
  /** The words up to this number are on disk. */
  reached(number: number): void;
  /** Forgets words that did not reach the disk; numbering continues behind this end of the log. */
  restart(end: LogEnd): Wait<void>;
}

/** Words that are read when a store is opened: the newest ones. */
const RECENT = 1_000;
/** Words in memory; with more than this, a vocabulary begins anew. */
const MOST = 20_000;
/** Ids that events carry become words with their first event. */
const SHORTEST_ID = 8;

interface Pending {
  readonly number: number;
  forget(): void;
}

export function createWordWriter({ recentWords }: Pick<Database, 'recentWords'>): WordWriter {
  let last = 0;
  let position = 0;
  let loaded = false;
  let pending: Pending[] = [];
  let fresh: WriteSet['words'] = [];

  function createWordsFor(positionOf: () => number) {
    let size = 0;
    const vocabulary: Vocabulary = createVocabulary({
      add(text, forget) {
        if (last >= HIGHEST_WORD) return undefined;
        last += 1;
        size += 1;
        fresh.push(last, positionOf(), text);
        pending.push({ number: last, forget });
        return last;
      },
    });
    const clear = (): void => {
      vocabulary.clear();
      size = 0;
    };
    return {
      ...vocabulary,
      pack: createPacker(vocabulary),
      clear,
      age() {
        if (size > MOST) clear();
      },
    };
  }
  let era = -1;
  const ofEvents = createWordsFor(() => position);
  const ofReceipts = createWordsFor(() => 0);

  function expect(id: string | null | undefined): void {
    if (id && id.length >= SHORTEST_ID && id.length <= LONGEST_AGAIN) ofEvents.expect(id);
  }

  function load(end: LogEnd): Wait<void> {
    const from = firstOfEra(eraOf(end.position + 1));
    return andThen(recentWords(from, RECENT), (words) => {
      loaded = true;
      era = eraOf(from);
      for (const { number, position, text } of words) (position === 0 ? ofReceipts : ofEvents).learn(number, text);
    });
  }

  return {
    event(event, at) {
      position = at;
      if (eraOf(at) !== era) {
        era = eraOf(at);
        ofEvents.clear();
      }
      ofEvents.age();
      expect(event.resource.id);
      expect(event.workspace_id);
      expect(event.session_id);
      expect(event.task_id);
      return ofEvents.pack(event);
    },
    receipt(receipt) {
      ofReceipts.age();
      return ofReceipts.pack(receipt);
    },
    fill(writeSet) {
      for (const value of fresh) writeSet.words.push(value);
      fresh = [];
      return last;
    },
    reached(number) {
      pending = pending.filter((word) => word.number > number);
    },
    restart(end) {
      for (const word of pending) word.forget();
      pending = [];
      fresh = [];
      last = end.word;
      return loaded ? undefined : load(end);
    },
  };
}
