/**
 * One transaction's worth of units, computed in memory into one write set. Each unit sees the results of the units before it; a
 * unit that fails leaves no trace. A batch only reads. A batch may be computed while the one before it is still being
 * written: it sees that batch's rows, answers and receipts as if they were on disk, so it is void if that batch does not get
 * there.
 */
import type { CoreEvent, EventDraft } from '../../../model/events.ts';
import type { Pointer } from '../../../model/resources.ts';
import type { At, Committed, Draft, Projector, Row, Unit } from '../../../ports/index.ts';
import type { LogEnd, Lookups, StoredAnswer } from '../database.ts';
import { createLeaseCheck } from '../lease.ts';
import type { WordWriter } from '../packing/words.ts';
import type { CachedRows } from '../rows.ts';
import type { Wait } from '../wait.ts';
import { buildEvent } from './event.ts';
import { createHeads, type EventLocation, type Head } from './heads.ts';
import { answerAgain, answerTo, digestOf } from './idempotency.ts';
import { createOverlay, type Overlay } from './overlay.ts';
import { NOT_LOADED } from './remote-lookups.ts';
import { createSealer, type Sealer, type Sealing } from './sealing.ts';
import { emptyWriteSet, SPAN, stretchOf, type WriteSet } from './write-set.ts';

/** The end of the log: its last position, and the time of its last event; empty when there never was one. */
export interface Tip {
  readonly position: number;
  readonly at: string;
}

export interface Batch {
  /** Moves the time forward for units that arrive after the batch began. It never goes backwards, whatever the clock says. */
  later(clock: string): void;
  run(unit: Unit): Committed;
  /** Runs a unit without keeping anything, so that all lookups of a batch over a network are loaded together. */
  scout(unit: Unit): void;
  /**
   * The previous batch is on disk, so its references are dropped. Call before this batch is written: they would keep ever older
   * batches alive.
   */
  standAlone(): void;
  /** The write set of the whole batch. Call once: names and locations count as stored from then on. */
  writeSet(): WriteSet;
  /** The batch is on disk: publishes its rows to the row cache. */
  learn(): void;
  /** Drops all references. A long-lived list that still points at young objects keeps them from being collected cheaply. */
  release(): void;
  readonly events: readonly CoreEvent[];
  readonly first: number;
  /** The results that the next batch needs before this one is on disk. */
  readonly left: Left;
  readonly tip: Tip;
  readonly empty: boolean;
  /** The length of the events' bodies. */
  readonly chars: number;
}
interface Left {
  readonly rows: Overlay;
  readonly receipts: Sealer;
  readonly answers: ReadonlyMap<string, StoredAnswer>;
}
export interface Batches {
  /** `before` is the batch that is still being written, if any; then `tip` is the end of that batch. */
  begin(tip: Tip, clock: string, before?: Batch): Batch;
  /** Drops all caches: another writer has committed, or a transaction failed. */
  forget(): void;
  /** Numbering continues behind this end of the log. */
  restart(end: LogEnd): Wait<void>;
}
export interface BatchDeps {
  readonly lookups: Lookups;
  readonly rows: CachedRows;
  readonly words: WordWriter;
  readonly projector: Projector;
}

/** Workspaces whose newest span is cached; a dropped entry costs one insert of a row that already exists. */
const REMEMBERED = 10_000;

export function createBatches({ lookups, rows, words, projector }: BatchDeps): Batches {
  const heads = createHeads(lookups);
  const leases = createLeaseCheck(lookups);
  /** Newest span written for each workspace. */
  const spans = new Map<string, number>();

  function begin(tip: Tip, clock: string, before?: Batch): Batch {
    let now = clock > tip.at ? clock : tip.at;
    const first = tip.position + 1;
    const events: CoreEvent[] = [];
    /** For each event, the head of its resource and its location. */
    const owners: Head[] = [];
    const locations: EventLocation[] = [];
    const filled = emptyWriteSet();
    const values = filled.events;
    const born = new Set<string>();
    const seen = createOverlay(rows, born, before?.left.rows);
    const sealer = createSealer(lookups, before?.left.receipts);
    const answers = new Map<string, StoredAnswer>();
    let under = before?.left.answers;
    let lastWord = 0;
    let made: { readonly unit: Unit; readonly draft: Draft; readonly at: string } | undefined;

    // The rows the current unit may look at. One variable per batch suffices: units run one at a time.
    let reads: readonly Pointer[] = [];
    let touched: readonly Pointer[] = [];

    lookups.remote?.forget();
    heads.age();
    rows.age();
    if (spans.size > REMEMBERED) spans.clear();

    const at: At = {
      get now() {
        return now;
      },
      get<T extends Row>(object: string, id: string): T | undefined {
        mustBeNamed(reads, object, id, 'reads');
        return seen.get(object, id) as T | undefined;
      },
      sequence(object, id) {
        mustBeNamed(reads, object, id, 'reads');
        return heads.find(object, id)?.sequence ?? 0;
      },
    };
    function touchedRow<T extends Row>(object: string, id: string): T | undefined {
      mustBeNamed(touched, object, id, 'touches');
      return seen.get(object, id) as T | undefined;
    }

    function append(draft: EventDraft): void {
      const { object, id } = draft.resource;
      const head = heads.claim(object, id, born.has(id));
      const location = heads.locate(head, draft);
      const position = first + events.length;
      const event = buildEvent(draft, position, head.sequence + 1, now);
      values.push(position, head.number, event.sequence, location.number, words.event(event, position));
      events.push(event);
      owners.push(head);
      locations.push(location);
      head.sequence++;
      touched = projector.touches(draft);
      for (const change of projector.apply(event, touchedRow)) seen.note(change);
    }

    /** Undoes the events of the current unit. Names it claimed stay claimed: they cost a row each and have no effect. */
    function takeBack(mark: number): void {
      for (const head of owners.splice(mark)) head.sequence--;
      events.length = mark;
      locations.length = mark;
      values.length = mark * 5;
      seen.drop();
    }

    function run(unit: Unit): Committed {
      const key = unit.idempotency;
      const digest = key && digestOf(key.body);
      requireLoaded(unit);
      if (unit.lease) leases.require(unit.lease);
      if (key && digest) {
        const first = findAnswer(key.scope);
        if (first) return { events: [], result: answerAgain(first, digest), receipt: undefined, repeated: true };
      }
      const draft = decided(unit);
      for (const id of draft.born ?? []) born.add(id);
      const mark = events.length;
      let sealing: Sealing | undefined;
      let answer: StoredAnswer | undefined;
      try {
        for (const wanted of draft.events) append(wanted);
        sealing = draft.receipt && sealer.seal(draft.receipt, events.slice(mark));
        answer = digest ? answerTo(digest, draft.result) : undefined;
      } catch (thrown) {
        takeBack(mark);
        if (thrown === NOT_LOADED) made = { unit, draft, at: now };
        throw thrown;
      }
      // From here on nothing can fail: the next unit sees the results of this one.
      seen.keep();
      if (sealing) sealer.keep(sealing);
      if (key && answer) answers.set(key.scope, answer);
      return { events: events.slice(mark), result: draft.result, receipt: sealing?.sealed.receipt, repeated: false };
    }

    /** What is missing for writing a decision down does not change the decision: once that is loaded, the decision is not made again. */
    function decided(unit: Unit): Draft {
      const known = made?.unit === unit && made.at === now ? made.draft : undefined;
      made = undefined;
      return known ?? unit.decide(at);
    }

    function scout(unit: Unit): void {
      const mark = events.length;
      try {
        requireLoaded(unit);
        const draft = unit.decide(at);
        for (const wanted of draft.events) append(wanted);
        if (draft.receipt) lookups.chain(draft.receipt.chain);
      } catch {
        // It is decided properly later.
      }
      takeBack(mark);
    }

    /** Over a network, everything a unit names is loaded together, before it is decided. */
    function requireLoaded({ reads: named = [], idempotency, lease }: Unit): void {
      reads = named;
      if (!lookups.remote) return;
      const wants = (look: () => unknown): boolean => {
        try {
          look();
          return false;
        } catch (thrown) {
          return thrown === NOT_LOADED;
        }
      };
      const missing = named.filter(({ object, id }) =>
        [wants(() => seen.get(object, id)), wants(() => heads.find(object, id))].includes(true),
      );
      const scope = idempotency?.scope;
      const wanting = [
        lease && wants(() => leases.require(lease)),
        scope !== undefined && wants(() => findAnswer(scope)),
      ];
      if (wanting.includes(true) || missing.length > 0) throw NOT_LOADED;
    }

    function findAnswer(scope: string): StoredAnswer | undefined {
      return answers.get(scope) ?? under?.get(scope) ?? lookups.answer(scope);
    }

    /** Records in which part of the log each resource and each workspace now has events, where that is new. */
    function fillWhereabouts(): void {
      for (let i = 0; i < events.length; i++) {
        const head = owners[i]!;
        const stretch = stretchOf(first + i);
        if (head.stretch !== stretch) {
          head.stretch = stretch;
          filled.stretches.push(head.number, stretch, events[i]!.sequence);
        }
        const location = locations[i]!;
        const span = Math.floor((first + i) / SPAN);
        if (location.span === span) continue;
        location.span = span;
        const workspace = location.ids.workspace_id;
        if (workspace == null || spans.get(workspace) === span) continue;
        spans.set(workspace, span);
        filled.spans.push(workspace, span);
      }
    }

    function writeSet(): WriteSet {
      heads.fill(filled);
      fillWhereabouts();
      seen.fill(filled);
      sealer.fill(filled, words.receipt);
      lastWord = words.fill(filled);
      for (const [scope, { digest, result }] of answers) {
        filled.answers.push(scope, digest, result, now);
      }
      return filled;
    }

    function release(): void {
      events.length = 0;
      owners.length = 0;
      locations.length = 0;
      for (const list of Object.values(filled)) list.length = 0;
      seen.release();
      sealer.release();
      answers.clear();
      made = undefined;
      reads = [];
      touched = [];
    }

    return {
      later(clock) {
        if (clock > now) now = clock;
      },
      run,
      scout,
      writeSet,
      standAlone() {
        seen.standAlone();
        sealer.standAlone();
        under = undefined;
        lookups.remote?.forget();
      },
      learn() {
        words.reached(lastWord);
        seen.learn();
      },
      release,
      events,
      first,
      left: { rows: seen, receipts: sealer, answers },
      get tip() {
        return events.length > 0 ? { position: first + events.length - 1, at: now } : tip;
      },
      get chars() {
        let chars = 0;
        for (let at = 4; at < values.length; at += 5) chars += (values[at] as string).length;
        return chars;
      },
      get empty() {
        return events.length === 0 && !seen.changed && !sealer.sealed && answers.size === 0;
      },
    };
  }

  return {
    begin,
    restart(end) {
      heads.restart(end);
      return words.restart(end);
    },
    forget() {
      rows.forget();
      spans.clear();
      leases.forget();
    },
  };
}

/** A store that fetches rows over a network can only serve rows that were named, so no store serves more. */
function mustBeNamed(pointers: readonly Pointer[], object: string, id: string, where: string): void {
  for (const pointer of pointers) if (pointer.id === id && pointer.object === object) return;
  throw new Error(`${object} ${id} is not among the ${where}`);
}
