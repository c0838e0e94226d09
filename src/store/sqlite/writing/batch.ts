/**
 * One transaction's worth of units, computed in memory into one write set. Each unit sees the results of the units before it; a
 * unit that fails leaves no trace. A batch only reads the file. A batch may be computed while the one before it is still being
 * written: it sees that batch's rows, answers and receipts as if they were on disk, so it is void if that batch does not get
 * there.
 */
import type { CoreEvent, EventDraft } from '../../../model/events.ts';
import type { Pointer } from '../../../model/resources.ts';
import type { At, Committed, Projector, Row, Unit } from '../../../ports/index.ts';
import { buildEvent, createEncoder } from '../../engine/event.ts';
import type { Connection } from '../connection.ts';
import { SPAN, stretchOf, type Tip } from '../log.ts';
import type { Receipts } from '../receipts.ts';
import type { Rows } from '../rows.ts';
import { createHeads, type EventLocation, type Head } from './heads.ts';
import { answerAgain, createIdempotency, digestOf, type Remembered } from './idempotency.ts';
import { createOverlay, type Overlay } from './overlay.ts';
import { createSealer, type Sealer, type Sealing } from './sealing.ts';
import { emptyWriteSet, type WriteSet } from './write-set.ts';

export interface Batch {
  /** Moves the time forward for units that arrive after the batch began. It never goes backwards, whatever the clock says. */
  later(clock: string): void;
  run(unit: Unit): Committed;
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
  /** Locations new in this batch have this number or a higher one. */
  readonly firstLocation: number;
  /** Ids created for units of this batch. */
  readonly born: ReadonlySet<string>;
  /** The results that the next batch needs before this one is on disk. */
  readonly left: Left;
  /** Total length of the events' texts. */
  readonly chars: number;
  readonly tip: Tip;
  readonly empty: boolean;
}
interface Left {
  readonly rows: Overlay;
  readonly receipts: Sealer;
  readonly answers: ReadonlyMap<string, Remembered>;
}
export interface Batches {
  /** `before` is the batch that is still being written, if any; then `tip` is the end of that batch. */
  begin(tip: Tip, clock: string, before?: Batch): Batch;
  /** Drops all caches: another writer changed the file, or a transaction failed. */
  forget(): void;
}
export interface BatchDeps {
  readonly connection: Connection;
  readonly rows: Rows;
  readonly receipts: Receipts;
  readonly projector: Projector;
}

/** Workspaces whose newest span is cached; a dropped entry costs one insert of a row that already exists. */
const REMEMBERED = 10_000;

export function createBatches({ connection, rows, receipts, projector }: BatchDeps): Batches {
  const heads = createHeads(connection);
  const idempotency = createIdempotency(connection);
  /** Newest span written for each workspace. */
  const spans = new Map<string, number>();

  function begin(tip: Tip, clock: string, before?: Batch): Batch {
    let now = clock > tip.at ? clock : tip.at;
    const first = tip.position + 1;
    const firstLocation = heads.nextLocation();
    let encoder = createEncoder(now);
    const events: CoreEvent[] = [];
    /** For each event, the head of its resource and its location. */
    const owners: Head[] = [];
    const locations: EventLocation[] = [];
    const filled = emptyWriteSet();
    const values = filled.events;
    const born = new Set<string>();
    const seen = createOverlay(rows, born, before?.left.rows);
    const sealer = createSealer(receipts, before?.left.receipts);
    const answers = new Map<string, Remembered>();
    let under = before?.left.answers;

    // The rows the current unit may look at. One variable per batch suffices: units run one at a time.
    let reads: readonly Pointer[] = [];
    let touched: readonly Pointer[] = [];

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
      const location = heads.location(head, draft);
      const position = first + events.length;
      const event = buildEvent(draft, position, head.sequence + 1, now);
      values.push(
        position,
        head.number,
        event.sequence,
        location.number,
        encoder.encode(event, draft, head.text, location.text),
      );
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
      if (key && digest) {
        const first = answers.get(key.scope) ?? under?.get(key.scope) ?? idempotency.find(key.scope);
        if (first) return { events: [], result: answerAgain(first, digest), receipt: undefined, repeated: true };
      }
      reads = unit.reads ?? [];
      const draft = unit.decide(at);
      for (const id of draft.born ?? []) born.add(id);
      const mark = events.length;
      let sealing: Sealing | undefined;
      try {
        for (const wanted of draft.events) append(wanted);
        sealing = draft.receipt && sealer.seal(draft.receipt, events.slice(mark));
      } catch (thrown) {
        takeBack(mark);
        throw thrown;
      }
      // From here on nothing can fail: the next unit sees the results of this one.
      seen.keep();
      if (sealing) sealer.keep(sealing);
      if (key && digest) answers.set(key.scope, { digest, result: draft.result });
      return { events: events.slice(mark), result: draft.result, receipt: sealing?.sealed.receipt, repeated: false };
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
      sealer.fill(filled);
      for (const [scope, { digest, result }] of answers) {
        filled.answers.push(scope, digest, result === undefined ? null : JSON.stringify(result), now);
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
      reads = [];
      touched = [];
    }

    return {
      later(clock) {
        if (clock <= now) return;
        now = clock;
        encoder = createEncoder(now);
      },
      run,
      writeSet,
      standAlone() {
        seen.standAlone();
        sealer.standAlone();
        under = undefined;
      },
      learn: seen.learn,
      release,
      events,
      first,
      firstLocation,
      born,
      left: { rows: seen, receipts: sealer, answers },
      get chars() {
        let chars = 0;
        for (let at = 4; at < values.length; at += 5) chars += (values[at] as string).length;
        return chars;
      },
      get tip() {
        return events.length > 0 ? { position: first + events.length - 1, at: now } : tip;
      },
      get empty() {
        return events.length === 0 && !seen.changed && !sealer.sealed && answers.size === 0;
      },
    };
  }

  return {
    begin,
    forget() {
      heads.forget();
      rows.forget();
      spans.clear();
    },
  };
}

/** A store that fetches rows over a network can only serve rows that were named, so no store serves more. */
function mustBeNamed(pointers: readonly Pointer[], object: string, id: string, where: string): void {
  for (const pointer of pointers) if (pointer.id === id && pointer.object === object) return;
  throw new Error(`${object} ${id} is not among the ${where}`);
}
