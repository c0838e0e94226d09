/** `tollbridge export` and `tollbridge verify`: receipts out of the house, and proof that needs nothing from it. */
import { createReadStream } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Fault } from '../model/faults.ts';
import { canonicalJson } from '../receipt/canonical-json.ts';
import { signTreeHead } from '../receipt/tree-head.ts';
import { verifyChain } from '../receipt/verify-chain.ts';
import { type CommonOptions, visit } from './context.ts';

const NAMES = { receipts: 'receipts.jsonl', keys: 'keys.json', head: 'tree-head.json' };

/** Three files: the receipts in the order they were sealed, the public keys, and a signed head that says where it ends. */
export async function exportReceipts(dir: string, options: CommonOptions): Promise<void> {
  await visit(options, async ({ store, keyring }) => {
    await mkdir(dir, { recursive: true });
    const tree = await store.tree();
    const lines: string[] = [];
    for (let after = -1; lines.length < tree.size; ) {
      const page = await store.receipts({ after, limit: Math.min(500, tree.size - lines.length) });
      if (page.length === 0) throw new Fault('internal', `the store holds ${lines.length} of ${tree.size} receipts`);
      for (const { receipt } of page) lines.push(canonicalJson(receipt as never));
      after = page.at(-1)?.position ?? after;
    }
    const head = signTreeHead(tree, new Date().toISOString(), keyring.signer());
    await writeFile(join(dir, NAMES.receipts), lines.map((line) => `${line}\n`).join(''));
    await writeFile(join(dir, NAMES.keys), `${JSON.stringify(keyring.jwks(), null, 2)}\n`);
    await writeFile(join(dir, NAMES.head), `${JSON.stringify(head, null, 2)}\n`);
    process.stdout.write(
      `${lines.length} receipts, the public keys and a signed end written to ${dir}\nCheck them with: tollbridge verify ${dir}\n`,
    );
  });
}

export async function verifyFiles(
  dir: string,
  given: { readonly keys?: string; readonly head?: string },
): Promise<number> {
  const keys = JSON.parse(await readFile(given.keys ?? join(dir, NAMES.keys), 'utf8'));
  const head = await readFile(given.head ?? join(dir, NAMES.head), 'utf8').then(JSON.parse, () => undefined);
  const file = dir.endsWith('.jsonl') ? dir : join(dir, NAMES.receipts);
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
  const report = await verifyChain(lines, { keys, ...(head && { treeHead: head }) });
  if (report.firstBad) {
    process.stdout.write(`BAD  ${report.firstBad.message}\n`);
    return 1;
  }
  const end = report.end === 'unknown' ? '; no tree head was given, so a missing end would not be noticed' : '';
  process.stdout.write(
    `ok   ${report.records} ${report.records === 1 ? 'receipt' : 'receipts'}, nothing missing, nothing changed${end}\n`,
  );
  return 0;
}
