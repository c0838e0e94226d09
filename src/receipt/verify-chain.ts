/**
 * Checking an exported archive: receipts as JSON lines, oldest first, the chains of several workspaces interleaved.
 * Names the first record that is wrong and what was done to it. Needs the file and public keys, nothing else.
 */
import { type BadRecord, bad, type Link, linkOf, linkTrouble, missing } from './chain-links.ts';
import { appendLeaf, EMPTY_TREE, rootOf, type Tree } from './merkle.ts';
import { type Jwks, readKeys } from './public-keys.ts';
import { type TreeHead, verifyTreeHead } from './tree-head.ts';
import { readReceipt, type SignatureReason, signatureChecks, signatureReason } from './verify.ts';

export interface ChainOptions {
  readonly keys: Jwks;
  /** Signed over all receipts of all chains; with it a missing tail is seen. */
  readonly treeHead?: TreeHead;
  /** A key id: no other key counts. */
  readonly trustAnchor?: string;
  /** The archive should hold this chain only. */
  readonly chain?: string;
  readonly allowUnsigned?: boolean;
}

export interface ChainReport {
  readonly valid: boolean;
  /** Sound records read before the first bad one. */
  readonly records: number;
  readonly chains: readonly { readonly id: string; readonly length: number; readonly head: string }[];
  /** Whether the last record is known to be the last: only a tree head over exactly these records says so. */
  readonly end: 'complete' | 'unknown' | 'missing';
  readonly firstBad?: BadRecord;
}

export async function verifyChain(
  lines: Iterable<unknown> | AsyncIterable<unknown>,
  options: ChainOptions,
): Promise<ChainReport> {
  const book = new Map<string, { length: number; head: string }>();
  const seen = new Map<string, Link>();
  const keys = readKeys(options.keys);
  let tree: Tree = EMPTY_TREE;
  let rootAtHead = options.treeHead?.size === 0 ? rootOf(tree) : undefined;
  let line = 0;
  let suspect: Link | undefined;

  const report = (end: ChainReport['end'], firstBad?: BadRecord): ChainReport => ({
    valid: !firstBad,
    records: tree.size,
    chains: [...book].map(([id, { length, head }]) => ({ id, length, head })),
    end,
    ...(firstBad && { firstBad }),
  });

  if (options.treeHead) {
    const state = verifyTreeHead(options.treeHead, options.keys, options.trustAnchor);
    if (state !== 'ok') return report('unknown', headTrouble(state));
  }

  for await (const document of lines) {
    line += 1;
    if (typeof document === 'string' && document.trim() === '') continue;
    if (suspect) {
      // All that is left to learn: does the record it should follow come later, or not at all?
      const read = readReceipt(document);
      if (typeof read !== 'string' && read.actual === suspect.previous) {
        return report('unknown', bad(suspect, 'reordered', `it stands before the record it follows (line ${line})`));
      }
      continue;
    }
    const link = soundRecord(document, line, options, keys);
    if ('code' in link) return report('unknown', link);
    const chain = book.get(link.chain);
    const trouble = linkTrouble(link, chain, seen);
    if (trouble === 'gap') {
      suspect = link;
      continue;
    }
    if (trouble) return report('unknown', trouble);
    seen.set(link.hash, link);
    book.set(link.chain, { length: (chain?.length ?? 0) + 1, head: link.hash });
    tree = appendLeaf(tree, link.hash).tree;
    if (tree.size === options.treeHead?.size) rootAtHead = rootOf(tree);
  }

  if (suspect) return report('unknown', missing(suspect, book.get(suspect.chain)?.length ?? 0));
  if (!options.treeHead) return report('unknown');
  if (rootAtHead === undefined) return report('missing', cutOff(line, tree.size, options.treeHead));
  if (rootAtHead !== options.treeHead.root) return report('unknown', otherTree(options.treeHead));
  return report(tree.size === options.treeHead.size ? 'complete' : 'unknown');
}

/** The record by itself: readable, unchanged, signed by a key we may trust. */
function soundRecord(
  document: unknown,
  line: number,
  options: ChainOptions,
  keys: ReturnType<typeof readKeys>,
): Link | BadRecord {
  const read = readReceipt(document);
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
