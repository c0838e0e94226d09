/**
 * One transaction's worth of units, worked out in memory and written in one go. Each unit sees what the ones before it
 * did; a unit that fails leaves no trace in what the next one sees. Touches the file only to look, and in `write`.
 */
import type { CoreEvent } from '../../model/events.ts';
import type { Pointer } from '../../model/resources.ts';
import type { At, ChainHead, Committed, Draft, Projector, Row, SealedReceipt, Unit } from '../../ports.ts';
import type { Connection, Value } from './connection.ts';
import { buildEvent } from './event.ts';
import { createHeads, type Head } from './heads.ts';
import { answerAgain, createIdempotency, digestOf, type Remembered } from './idempotency.ts';
import { insertMany } from './insert.ts';
import { type Log, SPAN, type Tip } from './log.ts';
import type { Receipts } from './receipts.ts';
import type { Rows } from './rows.ts';

export interface Batch {
  /** The clock, or the time of the last event when that is later: time never goes backwards in the log. */
  readonly now: string;
  run(unit: Unit): Committed;
  write(): void;
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
interface Change {
  readonly object: string;
  readonly id: string;
  readonly row: Row | undefined;
  readonly born: string;
}
interface Staged {
  readonly event: CoreEvent;
  readonly head: Head;
  readonly place: number;
  readonly text: string;
  readonly workspace: string | null;
}
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
  const insertSpans = insertMany(connection, 'spans', 2, '(?,?)', 'INSERT OR IGNORE');
  /** Newest span written for a workspace. */
  const spans = new Map<string, number>();

  function begin(tip: Tip, clock: string): Batch {
    const now = clock > tip.at ? clock : tip.at;
    const first = tip.position + 1;
    let next = first;
    const events: CoreEvent[] = [];
    const values: Value[] = [];
    const newSpans: Value[] = [];
    const changed = new Map<string, Change>();
    const answers = new Map<string, Remembered>();
    const sealings: Sealing[] = [];
    const chains = new Map<string, { previous: string; index: number }>();
    let tree: ChainHead['tree'] | undefined;

    heads.age();
    rows.age();

    function rowAt(object: string, id: string, own?: Map<string, Change>): Row | undefined {
      const key = keyOf(object, id);
      const change = own?.get(key) ?? changed.get(key);
      return change ? change.row : rows.peek(object, id);
    }

    function lookFrom(unit: Unit): At {
      const reads = unit.reads ?? [];
      return {
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
    }

    function stage(draft: Draft, own: Map<string, Change>): Staged[] {
      const staged: Staged[] = [];
      try {
        for (const wanted of draft.events) {
          const { object, id } = wanted.resource;
          const head = heads.claim(object, id);
          const workspace = wanted.workspace_id ?? null;
          const place = heads.place(head, wanted.task_id ?? null, wanted.session_id ?? null, workspace);
          const event = buildEvent(wanted, next + staged.length, head.sequence + ++head.staged, now);
          staged.push({ event, head, place: place.number, text: JSON.stringify(event), workspace });
          const touched = projector.touches(wanted);
          const changes = projector.apply(event, <T extends Row>(o: string, i: string) => {
            mustBeNamed(touched, o, i, 'touches');
            return rowAt(o, i, own) as T | undefined;
          });
          for (const change of changes) {
            const target = 'put' in change ? change.put : change.drop;
            const key = keyOf(target.object, target.id);
            const before = own.get(key) ?? changed.get(key);
            const known = before?.born ?? rows.peek(target.object, target.id)?.created_at;
            if ('put' in change) {
              const born = known ?? change.put.created_at;
              own.set(key, { object: target.object, id: target.id, row: change.put, born });
            } else if (known !== undefined) {
              own.set(key, { object: target.object, id: target.id, row: undefined, born: known });
            }
          }
        }
        return staged;
      } finally {
        for (const { head } of staged) head.staged = 0;
      }
    }

    function seal(wanted: NonNullable<Draft['receipt']>): Sealing {
      const { chain } = wanted;
      const stored = tree && chains.has(chain) ? undefined : receipts.head(chain);
      const size = tree ?? stored!.tree;
      const { previous, index } = chains.get(chain) ?? stored!;
      return { chain, index, position: size.size, sealed: wanted.seal({ previous, index, tree: size }) };
    }

    function keep({ event, head, place, text, workspace }: Staged): void {
      head.sequence++;
      events.push(event);
      values.push(head.number, head.sequence, place, text);
      const span = Math.floor(next / SPAN);
      if (workspace !== null && spans.get(workspace) !== span) {
        spans.set(workspace, span);
        newSpans.push(workspace, span);
      }
      next++;
    }

    function run(unit: Unit): Committed {
      const key = unit.idempotency;
      const digest = key && digestOf(key.body);
      if (key && digest) {
        const before = answers.get(key.scope) ?? idempotency.find(key.scope);
        if (before) {
          return { events: [], result: answerAgain(before, digest), receipt: undefined, repeated: true };
        }
      }
      const draft = unit.decide(lookFrom(unit));
      const own = new Map<string, Change>();
      const staged = stage(draft, own);
      const sealing = draft.receipt && seal(draft.receipt);

      // From here on nothing can fail: the unit becomes part of what the next one sees.
      for (const one of staged) keep(one);
      for (const [row, change] of own) changed.set(row, change);
      if (sealing) {
        sealings.push(sealing);
        chains.set(sealing.chain, { previous: sealing.sealed.hash, index: sealing.index + 1 });
        tree = sealing.sealed.tree;
      }
      if (key && digest) answers.set(key.scope, { digest, result: draft.result });
      return {
        events: staged.map(({ event }) => event),
        result: draft.result,
        receipt: sealing?.sealed.receipt,
        repeated: false,
      };
    }

    function write(): void {
      heads.write();
      log.append(first, values);
      if (newSpans.length > 0) insertSpans(newSpans);
      for (const { object, id, row, born } of changed.values()) {
        if (row) rows.put(row, born);
        else rows.drop(object, id, born);
      }
      for (const { position, chain, index, sealed } of sealings) receipts.put(position, chain, index, sealed);
      for (const [scope, remembered] of answers) idempotency.put(scope, remembered, now);
    }

    return {
      now,
      run,
      write,
      events,
      first,
      get tip() {
        return events.length > 0 ? { position: next - 1, at: now } : tip;
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
