/** Receipts where they are kept: one by its own or its task's id, or all of them. Everything is computed anew. */
import { own } from '../model/own.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Store, StoredReceipt } from '../ports.ts';
import type { TreeHead } from '../receipt/tree-head.ts';
import { verifyChain } from '../receipt/verify-chain.ts';
import { createStoredVerifier } from '../receipt/verify-stored.ts';
import { trouble } from './complaint.ts';
import { type LogBook, lookInto } from './context.ts';
import { findTask } from './find.ts';
import { createProgress } from './progress.ts';
import type { Verified, VerifyOptions } from './verify.ts';
import { WHY } from './verify-files.ts';

export async function verifyInLog(what: string, options: VerifyOptions): Promise<Verified> {
  if (looksLikeFile(what)) {
    throw trouble(
      'not_found',
      `there is no file ${what}`,
      'give a file, a directory, the id of a task or receipt, or "all"',
    );
  }
  return await lookInto(options, (book) => (what === 'all' ? everything(book, options) : oneOf(book, what, options)));
}

function looksLikeFile(what: string): boolean {
  return /[/\\]|\.(jsonl?|cbor)$/.test(what);
}

async function oneOf({ store, keys }: LogBook, id: string, { trust }: VerifyOptions): Promise<Verified> {
  const stored = await storedFor(store, id);
  const report = await createStoredVerifier({ store, keys: () => keys })(stored, {
    ...(trust && { trustAnchor: trust }),
  });
  const signed = (stored.receipt.signatures ?? []).map(({ key_id }) => key_id);
  if (report.valid) return { valid: true, records: 1, keys: signed };
  const reason = report.reason ?? 'unknown';
  const why = reason === 'schema_invalid' ? `is not a receipt: ${report.details.schema}` : (own(WHY, reason) ?? reason);
  return {
    valid: false,
    records: 0,
    keys: signed,
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

async function everything({ store, keys }: LogBook, { trust }: VerifyOptions): Promise<Verified> {
  const { size } = await store.tree();
  const head = await lastHead(store);
  const progress = createProgress('checking receipts', size);
  let count = 0;
  const documents = async function* () {
    for (let after = -1; ; ) {
      const page = await store.receipts({ after, limit: 500 });
      for (const { receipt } of page) {
        count += 1;
        progress.at(count);
        yield receipt;
      }
      const last = page.at(-1);
      if (!last) return;
      after = last.position;
    }
  };
  const report = await verifyChain(documents(), {
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
  return { valid: true, records: count, end: 'complete', keys: ids };
}

/** The last one that was signed while the receipts grew; what came after it is counted by the log itself. */
async function lastHead(store: Store): Promise<TreeHead | undefined> {
  const tip = await store.tip({ of: 'resource', object: 'receipt_tree', id: 'receipts' });
  const event = tip ? await store.event(tip) : undefined;
  return (event?.payload as JsonObject | undefined)?.head as unknown as TreeHead | undefined;
}
