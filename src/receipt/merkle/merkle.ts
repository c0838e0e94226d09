/**
 * The growing edge of the Merkle tree over all receipts (RFC 6962 hashing: leaves and nodes have different prefixes). Appending
 * needs only the roots of the perfect subtrees, left to right: one per set bit of the size.
 */
import { hash } from 'node:crypto';
import { Fault } from '../../model/faults.ts';
import type { ChainHead, TreeNode } from '../../ports/index.ts';

export type Tree = ChainHead['tree'];

export const EMPTY_TREE: Tree = { size: 0, frontier: [] };

/** Appends a receipt hash; returns the new tree, and the nodes that are now complete and will never change. */
export function appendLeaf(tree: Tree, receiptHash: string): { tree: Tree; nodes: readonly TreeNode[] } {
  const frontier = [...tree.frontier];
  const nodes: TreeNode[] = [];
  let index = tree.size;
  let level = 0;
  let node = leafHash(receiptHash);
  nodes.push({ level, index, hash: node });
  while (index % 2 === 1) {
    const left = frontier.pop();
    if (left === undefined) throw new Fault('internal', `a tree of ${tree.size} receipts came without its frontier`);
    node = nodeHash(left, node);
    index = (index - 1) / 2;
    level += 1;
    nodes.push({ level, index, hash: node });
  }
  frontier.push(node);
  return { tree: { size: tree.size + 1, frontier }, nodes };
}

/** The root of the whole tree; for an empty tree, the hash of the empty string. */
export function rootOf(tree: Tree): string {
  return foldPeaks(tree.frontier);
}

/** Perfect subtrees, left to right, joined from the right. */
export function foldPeaks(peaks: readonly string[]): string {
  let root = peaks.at(-1);
  if (root === undefined) return `sha256:${hash('sha256', '', 'hex')}`;
  for (let at = peaks.length - 2; at >= 0; at -= 1) root = nodeHash(peaks[at]!, root);
  return root;
}

/** The leaf is the 32 bytes of the receipt's hash, so that anyone with the receipt can compute it. */
export function leafHash(receiptHash: string): string {
  putHash(LEAF, 1, receiptHash);
  return `sha256:${hash('sha256', LEAF, 'hex')}`;
}

export function nodeHash(left: string, right: string): string {
  putHash(NODE, 1, left);
  putHash(NODE, 33, right);
  return `sha256:${hash('sha256', NODE, 'hex')}`;
}

/** The same for hashes as 32 bytes in a binary string. */
export function nodeBytes(left: string, right: string): string {
  NODE.write(left, 1, 32, 'latin1');
  NODE.write(right, 33, 32, 'latin1');
  return hash('sha256', NODE, 'binary');
}

/** Converts 32 bytes in a binary string to the `sha256:<hex>` text used in documents. */
export function spelled(bytes: string): string {
  return `sha256:${Buffer.from(bytes, 'latin1').toString('hex')}`;
}

// Scratch space: hashing is synchronous and copies, so one buffer of each kind serves all calls.
const LEAF = Buffer.alloc(33);
const NODE = Buffer.alloc(65, 1);

function putHash(buffer: Buffer, at: number, text: string): void {
  // Writing stops at the first character that is no hex digit, so 32 bytes written are 64 digits read.
  if (text.length !== 71 || !text.startsWith('sha256:') || buffer.write(text.slice(7), at, 32, 'hex') !== 32) {
    throw new Fault('invalid_request', `${JSON.stringify(text)} is not a SHA-256 hash`);
  }
}
