/**
 * Writes export files: receipts, the public keys that verify them, a signed head, events. Written as they are read, so
 * that a long log needs no more memory than a short one. `verify` reads these files.
 */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { type Cursor, eventId, type Stream } from '../../../model/events.ts';
import { Fault } from '../../../model/faults.ts';
import type { ChainHead, Signer, Store, StoredReceipt } from '../../../ports/index.ts';
import { encodeCbor } from '../../../receipt/export/cbor.ts';
import { eventText, leafBytes } from '../../../receipt/merkle/event-hash.ts';
import { createGrowth } from '../../../receipt/merkle/log-tree.ts';
import { rootOf } from '../../../receipt/merkle/merkle.ts';
import { canonicalJson } from '../../../receipt/seal/canonical-json.ts';
import { lastLogHead } from '../../../receipt/seal/checkpoints.ts';
import { type LogHead, logHeadHash, signLogHead } from '../../../receipt/seal/log-head.ts';
import type { Jwks } from '../../../receipt/seal/public-keys.ts';
import { signTreeHead } from '../../../receipt/seal/tree-head.ts';
import { prunedPart } from '../../../receipt/verify/stored-events.ts';

export const NAMES = {
  receipts: 'receipts.jsonl',
  archive: 'receipts.cbor',
  keys: 'keys.json',
  head: 'tree-head.json',
  events: 'events.jsonl',
  logHead: 'log-head.json',
} as const;

export interface Source {
  readonly store: Pick<Store, 'receipts' | 'tree' | 'read' | 'logTree' | 'tip' | 'event'>;
  readonly keys: Jwks;
  readonly signer: Signer;
  readonly now: string;
}

/**
 * A consistent point of a log that is being written to: each receipt of the tree has its events up to `upTo`, and each
 * event there its receipt.
 */
export interface Moment {
  readonly tree: ChainHead['tree'];
  readonly upTo: Cursor | undefined;
}

export async function oneMoment(store: Pick<Store, 'tree' | 'tip'>): Promise<Moment> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const tree = await store.tree();
    const upTo = await store.tip({ of: 'all' });
    if ((await store.tree()).size === tree.size) return { tree, upTo };
  }
  throw new Fault('unavailable', 'receipts are written faster than a moment without one can be found');
}
const MOST_TRIES = 1_000;

/** The receipts in the order they were sealed, the public keys, and a signed head over their end. */
export async function writeReceipts(
  dir: string,
  { store, keys, signer, now }: Source,
  { cbor = false, moment }: { readonly cbor?: boolean; readonly moment?: Moment } = {},
): Promise<number> {
  await mkdir(dir, { recursive: true });
  const tree = moment?.tree ?? (await store.tree());
  const lines = writing(join(dir, NAMES.receipts));
  const archive = cbor ? writing(join(dir, NAMES.archive)) : undefined;
  let count = 0;
  for await (const { receipt } of storedReceipts(store, tree.size)) {
    await lines.write(`${canonicalJson(receipt as never)}\n`);
    await archive?.write(encodeCbor(receipt));
    count += 1;
  }
  await lines.end();
  await archive?.end();
  await writeFile(join(dir, NAMES.keys), `${JSON.stringify(keys, null, 2)}\n`);
  await writeFile(join(dir, NAMES.head), `${JSON.stringify(signTreeHead(tree, now, signer), null, 2)}\n`);
  return count;
}

/** All receipts up to a size of the tree, oldest first. */
export async function* storedReceipts(
  store: Pick<Store, 'receipts'>,
  size: number,
): AsyncGenerator<StoredReceipt, void, undefined> {
  let count = 0;
  for (let after = -1; count < size; ) {
    const page = await store.receipts({ after, limit: Math.min(500, size - count) });
    if (page.length === 0) throw new Fault('internal', `the store holds ${count} of ${size} receipts`);
    yield* page;
    count += page.length;
    after = page.at(-1)?.position ?? after;
  }
}

/**
 * The content of `log-head.json`: a head over all events, and the tree of the pruned ones, which the rest continues.
 */
export interface LogHeadFile {
  readonly head: LogHead;
  readonly pruned: { readonly first: number; readonly size: number; readonly frontier: readonly string[] };
}

/** The whole log with a signed head over it, or the events of one task, which its receipt covers. */
export async function writeEvents(dir: string, source: Source, stream: Stream, upTo?: Cursor): Promise<number> {
  await mkdir(dir, { recursive: true });
  const { store, signer, now } = source;
  const { grown: _, ...pruned } = await prunedPart(store);
  const tree = createGrowth(pruned.size, pruned.frontier);
  const file = writing(join(dir, NAMES.events));
  let count = 0;
  for await (const event of store.read({ stream, ...(upTo && { upTo }) })) {
    // In canonical form, so that a verifier can hash the line as it is.
    await file.write(`${eventText(event)}\n`);
    if (stream.of === 'all') tree.add(leafBytes(event));
    count += 1;
  }
  await file.end();
  if (stream.of !== 'all') {
    await rm(join(dir, NAMES.logHead), { force: true });
    return count;
  }
  const { first } = pruned;
  const [size, frontier, previous] = [tree.size(), tree.frontier(), await lastLogHead(store)];
  const statement = {
    tree: 'events',
    size,
    root: rootOf({ size, frontier }),
    at: now,
    first_event_id: eventId(first),
    last_event_id: eventId(first + size - 1),
    previous: previous ? logHeadHash(previous) : null,
  } as const;
  const written: LogHeadFile = { head: signLogHead(statement, signer), pruned };
  await writeFile(join(dir, NAMES.logHead), `${JSON.stringify(written, null, 2)}\n`);
  return count;
}

function writing(path: string) {
  const file = createWriteStream(path);
  // `finished` reports errors; without a listener an error would end the process.
  const done = finished(file);
  done.catch(() => {});
  return {
    async write(chunk: string | Uint8Array): Promise<void> {
      if (!file.write(chunk)) await Promise.race([once(file, 'drain'), done]);
    },
    async end(): Promise<void> {
      file.end();
      await done;
    },
  };
}
