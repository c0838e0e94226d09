/** Verifies receipts in the log: one by its own or its task's id, or all of them. All hashes are computed again. */
import { setImmediate as turn } from 'node:timers/promises';
import { position } from '../../../model/events.ts';
import { own } from '../../../model/values/own.ts';
import type { Store, StoredReceipt } from '../../../ports/index.ts';
import { lastReceiptHead } from '../../../receipt/seal/checkpoints.ts';
import type { Jwks } from '../../../receipt/seal/public-keys.ts';
import { verifyChain } from '../../../receipt/verify/chain.ts';
import {
  bySize,
  type Covering,
  createCovering,
  type EventsReport,
  verifyEvents,
} from '../../../receipt/verify/events.ts';
import { createStoredVerifier } from '../../../receipt/verify/stored.ts';
import { headsInLog, storedSource } from '../../../receipt/verify/stored-events.ts';
import { lookInto, type OpenLog } from '../../context.ts';
import { findTask } from '../../find.ts';
import { trouble } from '../../output/error-output.ts';
import { createProgress } from '../../output/progress.ts';
import type { Verified, VerifyOptions } from './verify.ts';
import { WHY } from './verify-files.ts';
import { headsFrom } from './witness-heads.ts';

export async function verifyInLog(what: string, options: VerifyOptions): Promise<Verified> {
  if (looksLikeFile(what)) {
    throw trouble(
      'not_found',
      `there is no file ${what}`,
      'give a file, a directory, the id of a task or receipt, or "all"',
    );
  }
  return await lookInto(options, (openLog) =>
    what === 'all' ? verifyAll(openLog.store, openLog.keys, options) : oneOf(openLog, what, options),
  );
}

function looksLikeFile(what: string): boolean {
  return /[/\\]|\.(jsonl?|cbor)$/.test(what);
}

async function oneOf({ store, keys }: OpenLog, id: string, { trust }: VerifyOptions): Promise<Verified> {
  const stored = await storedFor(store, id);
  const report = await createStoredVerifier({ store, keys: () => keys })(stored, {
    ...(trust && { trustAnchor: trust }),
  });
  const signed = (stored.receipt.signatures ?? []).map(({ key_id }) => key_id);
  const task_events = report.details.events;
  if (report.valid) return { valid: true, records: 1, keys: signed, task_events };
  const reason = report.reason ?? 'unknown';
  const why = reason.startsWith('schema_')
    ? `is not a receipt: ${report.details.schema}`
    : (own(WHY, reason) ?? reason);
  return {
    valid: false,
    records: 0,
    keys: signed,
    task_events,
    first_bad: { code: reason, message: `receipt ${stored.receipt.receipt_id} ${why}` },
  };
}

async function storedFor(store: Store, id: string): Promise<StoredReceipt> {
  const direct = await store.receipt(id);
  if (direct) return direct;
  const task = await findTask(store, id);
  const [stored] = await store.receipts({ task: task.id, limit: 1 });
  if (stored) return stored;
  throw trouble(
    'not_found',
    `task ${task.id} has no receipt; it is ${task.status}`,
    'a receipt is written when a task ends',
  );
}

/** Every receipt, event, index and row of a log. */
export async function verifyAll(
  store: Store,
  keys: Jwks,
  { trust, witness }: Pick<VerifyOptions, 'trust' | 'witness'> = {},
): Promise<Verified> {
  const { size } = await store.tree();
  const head = await lastReceiptHead(store);
  const covering = createCovering();
  const progress = createProgress('checking receipts', size);
  let count = 0;
  const documents = async function* () {
    for (let after = -1; ; ) {
      const page = await store.receipts({ after, limit: 100 });
      // The driver releases rows only between turns of the event loop.
      await turn();
      for (const { receipt } of page) {
        count += 1;
        progress.at(count);
        covering.note(receipt);
        yield receipt;
      }
      const last = page.at(-1);
      if (!last) return;
      after = last.position;
    }
  };
  const report = await verifyChain(documents, {
    keys,
    ...(head && { treeHead: head }),
    ...(trust && { trustAnchor: trust }),
  });
  progress.end();
  const ids = keys.keys.map(({ kid }) => kid);
  if (report.firstBad)
    return { valid: false, records: report.records, end: report.end, keys: ids, first_bad: report.firstBad };
  if (count !== size) {
    const message = `the log counts ${size} receipts and holds ${count}`;
    return { valid: false, records: count, end: 'missing', keys: ids, first_bad: { code: 'truncated', message } };
  }
  const { valid, firstBad, ...events } = await allEvents(store, keys, trust, covering, witness);
  const end = firstBad?.code === 'rolled_back' ? 'missing' : 'complete';
  const found = { records: count, end, keys: ids, events } as const;
  return valid ? await withRows(store, found) : { ...found, valid, ...(firstBad && { first_bad: firstBad }) };
}

async function allEvents(
  store: Store,
  keys: Jwks,
  trustAnchor: string | undefined,
  { covered }: Covering,
  witnesses: readonly string[] = [],
): Promise<EventsReport> {
  const [source, total] = [await storedSource(store), await lastPosition(store)];
  const kept = await headsFrom(witnesses);
  const progress = createProgress('checking events', total);
  const report = await verifyEvents({
    ...source,
    keys,
    trustAnchor,
    covered,
    heads: bySize(headsInLog(store), kept),
    progress: progress.at,
  });
  progress.end();
  return report.valid ? await withColumns(store, report, total) : report;
}

/** Events can be intact while the resource rows differ: rows are compared with the state that the events fold to. */
async function withRows(store: Store, found: Omit<Verified, 'valid'>): Promise<Verified> {
  const progress = createProgress('comparing rows', await lastPosition(store));
  const { fault, ...rows } = await store.compareRows(progress.at);
  progress.end();
  if (!fault) return { ...found, valid: true, rows };
  const { table, object, id, what } = fault;
  const message = `the row of ${object} ${id} in table ${table}: ${what}`;
  return { ...found, valid: false, rows, first_bad: { code: 'row_mismatch', message, table, object, id } };
}

async function lastPosition(store: Store): Promise<number> {
  const tip = await store.tip({ of: 'all' });
  return tip === undefined ? 0 : (position(tip) ?? 0);
}

/** Event bodies can be intact and still be stored under another position or task. */
async function withColumns(store: Store, report: EventsReport, total: number): Promise<EventsReport> {
  const progress = createProgress('checking columns', total);
  const found = await store.columnFault(progress.at);
  progress.end();
  if (!found) return report;
  const { event_id, column } = found;
  const message = `event ${event_id}: its body is intact, and its ${column} in the database disagrees with it or with its neighbours`;
  return { ...report, valid: false, firstBad: { code: 'columns_mismatch', event_id, message } };
}
