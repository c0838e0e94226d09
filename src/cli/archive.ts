/**
 * Files that leave the house: receipts, the public keys that check them, a signed end, events. Written as they are read,
 * so that a long log needs no more memory than a short one. What is written here is what `verify` reads.
 */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Stream } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Signer, Store, StoredReceipt } from '../ports.ts';
import { canonicalJson } from '../receipt/canonical-json.ts';
import { encodeCbor } from '../receipt/cbor.ts';
import type { Jwks } from '../receipt/public-keys.ts';
import { signTreeHead } from '../receipt/tree-head.ts';

export const NAMES = {
  receipts: 'receipts.jsonl',
  archive: 'receipts.cbor',
  keys: 'keys.json',
  head: 'tree-head.json',
  events: 'events.jsonl',
} as const;

export interface Source {
  readonly store: Pick<Store, 'receipts' | 'tree' | 'read'>;
  readonly keys: Jwks;
  readonly signer: Signer;
  readonly now: string;
}

/** The receipts in the order they were sealed, the public keys, and a signed head that says where it ends. */
export async function writeReceipts(dir: string, { store, keys, signer, now }: Source, cbor = false): Promise<number> {
  await mkdir(dir, { recursive: true });
  const tree = await store.tree();
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

/** All of them up to a size of the tree, oldest first. */
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

export async function writeEvents(dir: string, store: Pick<Store, 'read'>, stream: Stream): Promise<number> {
  await mkdir(dir, { recursive: true });
  const file = writing(join(dir, NAMES.events));
  let count = 0;
  for await (const event of store.read({ stream })) {
    await file.write(`${JSON.stringify(event)}\n`);
    count += 1;
  }
  await file.end();
  return count;
}

function writing(path: string) {
  const file = createWriteStream(path);
  // Told by `finished`; without a listener it would be the end of the process.
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
