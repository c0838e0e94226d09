/**
 * One transaction's worth of units, worked out in memory and written in one go. Each unit sees what the ones before it
 * did; a unit that fails leaves no trace in what the next one sees. Touches the file only to look, and in `write`.
 */
import type { CoreEvent, EventDraft } from '../../model/events.ts';
import type { Pointer } from '../../model/resources.ts';
import type { At, ChainHead, Change, Committed, Draft, Projector, Row, SealedReceipt, Unit } from '../../ports.ts';
import type { Connection, Value } from './connection.ts';
import { buildEvent, createEncoder } from './event.ts';
import { createHeads, type Head } from './heads.ts';
import { answerAgain, createIdempotency, digestOf, type Remembered } from './idempotency.ts';
import { insertMany } from './insert.ts';
import { type Log, SPAN, stretchOf, type Tip } from './log.ts';
import type { Receipts } from './receipts.ts';
import type { Rows } from './rows.ts';

export interface Batch {
  /** The clock, or the time of the last event when that is later: time never goes backwards in the log. */
  readonly now: string;
  run(unit: Unit): Committed;
  write(): void;
  /** Let go of everything. A long-lived list that still points at young objects keeps them from being collected cheaply. */
  release(): void;
  readonly events: readonly CoreEvent[];
  readonly first: number;
  readonly tip: Tip;
  readonly empty: boolean;
}
export interface Batches {
  begin(tip: Tip, clock: string): Batch;
  /** Drop everything remembered: the file changed behind our back, or a transaction came to nothing. */
  forget(): void;
}
export interface BatchDeps {
  readonly connection: Connection;
  readonly log: Log;
  readonly rows: Rows;
  readonly receipts: Receipts;
  readonly projector: Projector;
}

/** A changed row, or undefined when it was dropped; `born` is where it goes in the order if it is new. */
interface Changed {
  readonly object: string;
  readonly id: string;
  readonly row: Row | undefined;
  readonly born: string;
}
type Changes = Map<string, Changed>;
interface Sealing {
  readonly chain: string;
  readonly index: number;
  readonly position: number;
  readonly sealed: SealedReceipt;
}

const keyOf = (object: string, id: string): string => `${object}\n${id}`;

export function createBatches({ connection, log, rows, receipts, projector }: BatchDeps): Batches {
  const heads = createHeads(connection);
  const idempotency = createIdempotency(connection);
  const insertStretches = insertMany(connection, 'stretches', 3);
  const insertSpans = insertMany(connection, 'spans', 2, 'INSERT OR IGNORE');
  /** Newest span written for a workspace. */
  const spans = new Map<string, number>();

  function begin(tip: Tip, clock: string): Batch {
    const now = clock > tip.at ? clock : tip.at;
    const first = tip.position + 1;
    const encoder = createEncoder(now);
    const events: CoreEvent[] = [];
    /** The head of each event's resource. */
    const owners: Head[] = [];
    const values: Value[] = [];
    const changed: Changes = new Map();
    const answers = new Map<string, Remembered>();
    const sealings: Sealing[] = [];
    const chains = new Map<string, { previous: string; index: number }>();
    let tree: ChainHead['tree'] | undefined;

    // What the unit in hand may look at, and what it changed so far. One set per batch: units run one at a time.
    let reads: readonly Pointer[] = [];
    let touched: readonly Pointer[] = [];
    let own: Changes | undefined;

    heads.age();
    rows.age();

    function rowAt(object: string, id: string): Row | undefined {
      if (changed.size > 0 || own) {
        const key = keyOf(object, id);
        const change = own?.get(key) ?? changed.get(key);
        if (change) return change.row;
      }
      return rows.peek(object, id);
    }
    const at: At = {
      now,
      get<T extends Row>(object: string, id: string): T | undefined {
        mustBeNamed(reads, object, id, 'reads');
        return rowAt(object, id) as T | undefined;
      },
      sequence(object, id) {
        mustBeNamed(reads, object, id, 'reads');
        return heads.find(object, id)?.sequence ?? 0;
      },
    };
    function touchedRow<T extends Row>(object: string, id: string): T | undefined {
      mustBeNamed(touched, object, id, 'touches');
      return rowAt(object, id) as T | undefined;
    }

    function append(draft: EventDraft): void {
      const head = heads.claim(draft.resource.object, draft.resource.id);
      const place = heads.place(head, draft);
      const position = first + events.length;
      const event = buildEvent(draft, position, head.sequence + 1, now);
      values.push(
        position,
        head.number,
        event.sequence,
        place.number,
        encoder.encode(event, draft, head.text, place.text),
      );
      events.push(event);
      owners.push(head);
      head.sequence++;
      touched = projector.touches(draft);
      for (const change of projector.apply(event, touchedRow)) note(change);
    }

    function note(change: Change): void {
      const { object, id } = 'put' in change ? change.put : change.drop;
      const key = keyOf(object, id);
      const before = own?.get(key) ?? changed.get(key);
      const known = before?.born ?? rows.peek(object, id)?.created_at;
      own ??= new Map();
      if ('put' in change) own.set(key, { object, id, row: change.put, born: known ?? change.put.created_at });
      else if (known !== undefined) own.set(key, { object, id, row: undefined, born: known });
    }

    /** Take back what the unit in hand appended. Names it claimed stay claimed: they cost a row each and mean nothing. */
    function takeBack(mark: number): void {
      for (const head of owners.splice(mark)) head.sequence--;
      events.length = mark;
      values.length = mark * 5;
    }

    function seal(wanted: NonNullable<Draft['receipt']>): Sealing {
      const { chain } = wanted;
      const stored = tree && chains.has(chain) ? undefined : receipts.head(chain);
      const size = tree ?? stored!.tree;
      const { previous, index } = chains.get(chain) ?? stored!;
      return { chain, index, position: size.size, sealed: wanted.seal({ previous, index, tree: size }) };
    }

    function run(unit: Unit): Committed {
      const key = unit.idempotency;
      const digest = key && digestOf(key.body);
      if (key && digest) {
        const before = answers.get(key.scope) ?? idempotency.find(key.scope);
        if (before) return { events: [], result: answerAgain(before, digest), receipt: undefined, repeated: true };
      }
      reads = unit.reads ?? [];
      own = undefined;
      const draft = unit.decide(at);
      const mark = events.length;
      let sealing: Sealing | undefined;
      try {
        for (const wanted of draft.events) append(wanted);
        sealing = draft.receipt && seal(draft.receipt);
      } catch (thrown) {
        takeBack(mark);
        throw thrown;
      }
      // From here on nothing can fail: the unit becomes part of what the next one sees.
      if (own) for (const [row, change] of own as Changes) changed.set(row, change);
      if (sealing) {
        sealings.push(sealing);
        chains.set(sealing.chain, { previous: sealing.sealed.hash, index: sealing.index + 1 });
        tree = sealing.sealed.tree;
      }
      if (key && digest) answers.set(key.scope, { digest, result: draft.result });
      return { events: events.slice(mark), result: draft.result, receipt: sealing?.sealed.receipt, repeated: false };
    }

    /** Note where in the log each resource and each workspace now has events, if that is news. */
    function writeWhereabouts(): void {
      const newStretches: Value[] = [];
      const newSpans: Value[] = [];
      for (let i = 0; i < events.length; i++) {
        const head = owners[i]!;
        const stretch = stretchOf(first + i);
        if (head.stretch !== stretch) {
          head.stretch = stretch;
          newStretches.push(head.number, stretch, events[i]!.sequence);
        }
        const workspace = events[i]!.workspace_id;
        const span = Math.floor((first + i) / SPAN);
        if (workspace == null || spans.get(workspace) === span) continue;
        spans.set(workspace, span);
        newSpans.push(workspace, span);
      }
      insertStretches(newStretches);
      insertSpans(newSpans);
    }

    function write(): void {
      heads.write();
      log.append(values);
      writeWhereabouts();
      for (const { object, id, row, born } of changed.values()) {
        if (row) rows.put(row, born);
        else rows.drop(object, id, born);
      }
      for (const { position, chain, index, sealed } of sealings) receipts.put(position, chain, index, sealed);
      for (const [scope, remembered] of answers) idempotency.put(scope, remembered, now);
    }

    function release(): void {
      events.length = 0;
      owners.length = 0;
      values.length = 0;
      reads = [];
      touched = [];
    }

    return {
      now,
      run,
      write,
      release,
      events,
      first,
      get tip() {
        return events.length > 0 ? { position: first + events.length - 1, at: now } : tip;
      },
      get empty() {
        return events.length === 0 && changed.size === 0 && sealings.length === 0 && answers.size === 0;
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

/** A store that has to fetch rows beforehand can only serve what was named, so none serves more. */
function mustBeNamed(pointers: readonly Pointer[], object: string, id: string, where: string): void {
  for (const pointer of pointers) if (pointer.id === id && pointer.object === object) return;
  throw new Error(`${object} ${id} is not among the ${where}`);
}
