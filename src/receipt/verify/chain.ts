/**
 * Checks an exported archive: receipts as JSON lines, oldest first, the chains of several workspaces interleaved. Names the first
 * bad record and the kind of tampering. Needs only the file and public keys. Keeps the end of each chain and no record: when one
 * is out of place, the archive is read a second time to classify it.
 */

import { appendLeaf, EMPTY_TREE, rootOf, type Tree } from '../merkle/merkle.ts';
import type { ReceiptFormat } from '../schemas/format.ts';
import { type Jwks, readKeys } from '../seal/public-keys.ts';
import { type TreeHead, verifyTreeHead } from '../seal/tree-head.ts';
import {
  type BadRecord,
  bad,
  type ChainLink,
  type Earlier,
  isInOrder,
  linkOf,
  linkTrouble,
  missing,
} from './chain-links.ts';
import { readReceipt, type SignatureReason, signatureChecks, signatureReason } from './verify.ts';

export interface ChainOptions {
  readonly keys: Jwks;
  /** Signed over all receipts of all chains; makes a missing tail visible. */
  readonly treeHead?: TreeHead;
  /** A key id: signatures by any other key do not count. */
  readonly trustAnchor?: string;
  /** The archive should hold this chain only. */
  readonly chain?: string;
  readonly allowUnsigned?: boolean;
  /** The known versions of the format; by default all of ours. */
  readonly formats?: readonly ReceiptFormat[];
}

export interface ChainReport {
  readonly valid: boolean;
  /** Sound records read before the first bad one. */
  readonly records: number;
  readonly chains: readonly { readonly id: string; readonly length: number; readonly head: string }[];
  /** Whether the last record is known to be the last: only a tree head over exactly these records proves it. */
  readonly end: 'complete' | 'unknown' | 'missing';
  readonly firstBad?: BadRecord;
}

/** An array of records, or a function that starts reading them from the beginning at each call. */
export type Records = readonly unknown[] | (() => Iterable<unknown> | AsyncIterable<unknown>);

export async function verifyChain(records: Records, options: ChainOptions): Promise<ChainReport> {
  const lines = typeof records === 'function' ? records : () => records;
  const chains = new Map<string, { length: number; head: string }>();
  const keys = readKeys(options.keys);
  let tree: Tree = EMPTY_TREE;
  let rootAtHead = options.treeHead?.size === 0 ? rootOf(tree) : undefined;
  let line = 0;
  let suspect: ChainLink | undefined;

  const report = (end: ChainReport['end'], firstBad?: BadRecord): ChainReport => ({
    valid: !firstBad,
    records: tree.size,
    chains: [...chains].map(([id, { length, head }]) => ({ id, length, head })),
    end,
    ...(firstBad && { firstBad }),
  });

  if (options.treeHead) {
    const state = verifyTreeHead(options.treeHead, options.keys, options.trustAnchor);
    if (state !== 'ok') return report('unknown', headTrouble(state));
  }

  for await (const document of lines()) {
    line += 1;
    if (typeof document === 'string' && document.trim() === '') continue;
    if (suspect) {
      // The one open question: does the record's predecessor come later, or not at all?
      const read = readReceipt(document, options.formats);
      if (typeof read !== 'string' && read.actual === suspect.previous) {
        return report('unknown', bad(suspect, 'reordered', `it stands before the record it follows (line ${line})`));
      }
      continue;
    }
    const link = soundRecord(document, line, options, keys);
    if ('code' in link) return report('unknown', link);
    const chain = chains.get(link.chain);
    if (!isInOrder(link, chain)) {
      const trouble = linkTrouble(link, chain, await earlierThan(link, lines(), options.formats));
      if (trouble !== 'gap') return report('unknown', trouble);
      suspect = link;
      continue;
    }
    chains.set(link.chain, { length: (chain?.length ?? 0) + 1, head: link.hash });
    tree = appendLeaf(tree, link.hash).tree;
    if (tree.size === options.treeHead?.size) rootAtHead = rootOf(tree);
  }

  if (suspect) return report('unknown', missing(suspect, chains.get(suspect.chain)?.length ?? 0));
  if (!options.treeHead) return report('unknown');
  if (rootAtHead === undefined) return report('missing', cutOff(line, tree.size, options.treeHead));
  if (rootAtHead !== options.treeHead.root) return report('unknown', otherTree(options.treeHead));
  return report(tree.size === options.treeHead.size ? 'complete' : 'unknown');
}

/** Among the records before this one, the one it repeats and the one it says it follows. */
async function earlierThan(
  { line: end, hash, previous }: ChainLink,
  lines: Iterable<unknown> | AsyncIterable<unknown>,
  formats: ChainOptions['formats'],
): Promise<Earlier> {
  let [line, twin, followed] = [0, undefined as ChainLink | undefined, undefined as ChainLink | undefined];
  for await (const document of lines) {
    line += 1;
    if (line === end) break;
    const read = readReceipt(document, formats);
    if (typeof read === 'string') continue;
    if (read.actual === hash) twin = linkOf(read.receipt, read.actual, line);
    if (read.actual === previous) followed = linkOf(read.receipt, read.actual, line);
  }
  return { twin, followed };
}

/** Checks the record by itself: readable, unchanged, signed by a trusted key. */
function soundRecord(
  document: unknown,
  line: number,
  options: ChainOptions,
  keys: ReturnType<typeof readKeys>,
): ChainLink | BadRecord {
  const read = readReceipt(document, options.formats);
  if (typeof read === 'string') {
    return { line, code: 'not_a_receipt', message: `line ${line} is not a receipt: ${read}` };
  }
  const { receipt, actual } = read;
  const link = linkOf(receipt, actual, line);
  if (actual !== receipt.chain.receipt_hash) {
    return bad(link, 'edited', 'its content does not match its hash');
  }
  const reason = signatureReason(signatureChecks(receipt, options, keys), options);
  if (reason) return bad(link, reason, SAYING[reason]);
  if (options.chain !== undefined && link.chain !== options.chain) {
    return bad(link, 'spliced', `it belongs to the chain ${link.chain}, not to ${options.chain}`);
  }
  return link;
}

const SAYING: Readonly<Record<SignatureReason, string>> = {
  signature_invalid: 'its signature does not fit it: the record or the signature was changed',
  signature_absent: 'it has no signature',
  signature_unsupported: 'it is signed in a way that cannot be checked here',
  key_swapped: 'the key under its key id is not the key that id was made from',
  key_unknown: 'it is signed with a key that is not among the given keys',
  key_expired: 'it is signed with a key that was not in use at that time',
  key_untrusted: 'it is not signed with the trusted key',
};

function cutOff(line: number, size: number, head: TreeHead): BadRecord {
  const message = `the archive ends after ${size} records; the tree head of ${head.at} counts ${head.size}`;
  return { line: line + 1, code: 'truncated', message };
}

function otherTree(head: TreeHead): BadRecord {
  const message = `the first ${head.size} records are each sound, but are not the ones the tree head of ${head.at} was signed over, in that order`;
  return { line: 0, code: 'tree_mismatch', message };
}

function headTrouble(state: string): BadRecord {
  return { line: 0, code: 'tree_head_invalid', message: `the tree head cannot be trusted: its signature is ${state}` };
}
