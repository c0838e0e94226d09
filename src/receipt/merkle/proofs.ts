/**
 * Proofs over a tree of receipts or events: that a leaf is in it, and that a later tree only added to an earlier one. Building
 * reads a logarithmic number of stored nodes in one lookup; checking needs only the proof.
 */
import { Fault } from '../../model/faults.ts';
import type { TreeNode } from '../../ports/index.ts';
import { foldPeaks, leafHash, nodeHash } from './merkle.ts';

export type NodeLookup = (
  wanted: readonly { readonly level: number; readonly index: number }[],
) => Promise<readonly TreeNode[]>;

export type InclusionProof = {
  readonly index: number;
  readonly size: number;
  /** Sibling hashes from the leaf upwards. */
  readonly path: readonly string[];
};
export interface ConsistencyProof {
  readonly from: number;
  readonly to: number;
  readonly path: readonly string[];
}

/** Leaves `start` up to, not including, `end`. */
type Span = readonly [start: number, end: number];

export async function inclusionProof(index: number, size: number, lookup: NodeLookup): Promise<InclusionProof> {
  if (!isCount(index) || !isCount(size) || index >= size) {
    throw new Fault('invalid_request', `there is no leaf ${index} in a tree of ${size}`);
  }
  return { index, size, path: await hashes(siblings(index, [0, size]), lookup) };
}

export async function consistencyProof(from: number, to: number, lookup: NodeLookup): Promise<ConsistencyProof> {
  if (!isCount(from) || !isCount(to) || from > to) {
    throw new Fault('invalid_request', `a tree of ${to} leaves cannot follow one of ${from}`);
  }
  return { from, to, path: from === 0 ? [] : await hashes(additions(from, [0, to], true), lookup) };
}

/** The compact form the tree had at an earlier size. */
export async function frontierAt(size: number, lookup: NodeLookup): Promise<readonly string[]> {
  const wanted = peaksOf([0, size]);
  const found = size > 0 ? await lookup(wanted) : [];
  return wanted.map(({ level, index }) => {
    const node = found.find((each) => each.level === level && each.index === index);
    if (!node) throw new Fault('internal', `the tree has lost node ${index} of level ${level}`);
    return node.hash;
  });
}

/** Whether the proof leads from this receipt to this root. */
export function verifyInclusion(receiptHash: string, proof: InclusionProof, root: string): boolean {
  return isHash(receiptHash) && verifyLeaf(leafHash(receiptHash), proof, root);
}

/** The same for a leaf; for an event that is its `eventLeaf`. */
export function verifyLeaf(leaf: string, proof: InclusionProof, root: string): boolean {
  const { index, size } = proof;
  if (!isCount(index) || !isCount(size) || index >= size || ![leaf, ...proof.path].every(isHash)) return false;
  const rest = [...proof.path];
  const climb = (at: number, width: number): string | undefined => {
    if (width === 1) return leaf;
    const split = half(width);
    const sibling = rest.pop();
    if (sibling === undefined) return undefined;
    const below = at < split ? climb(at, split) : climb(at - split, width - split);
    if (below === undefined) return undefined;
    return at < split ? nodeHash(below, sibling) : nodeHash(sibling, below);
  };
  return climb(index, size) === root && rest.length === 0;
}

/** Whether every leaf of the tree with the first root is at the same index in the tree with the second root. */
export function verifyConsistency(proof: ConsistencyProof, fromRoot: string, toRoot: string): boolean {
  const { from, to } = proof;
  if (!isCount(from) || !isCount(to) || from > to || !proof.path.every(isHash)) return false;
  if (from === 0) return proof.path.length === 0 && fromRoot === foldPeaks([]) && (to > 0 || toRoot === fromRoot);
  const rest = [...proof.path];
  // Both roots are rebuilt from the same pieces; `own` says the piece is the earlier tree itself, which needs no proof.
  const climb = (old: number, width: number, own: boolean): readonly [string, string] | undefined => {
    if (old === width && own) return isHash(fromRoot) ? [fromRoot, fromRoot] : undefined;
    const piece = rest.pop();
    if (piece === undefined) return undefined;
    if (old === width) return [piece, piece];
    const split = half(width);
    const below = old <= split ? climb(old, split, own) : climb(old - split, width - split, false);
    if (!below) return undefined;
    const [before, after] = below;
    return old <= split ? [before, nodeHash(after, piece)] : [nodeHash(piece, before), nodeHash(piece, after)];
  };
  const roots = climb(from, to, true);
  return roots !== undefined && roots[0] === fromRoot && roots[1] === toRoot && rest.length === 0;
}

function siblings(index: number, [start, end]: Span): Span[] {
  if (end - start === 1) return [];
  const middle = start + half(end - start);
  return index < middle
    ? [...siblings(index, [start, middle]), [middle, end]]
    : [...siblings(index, [middle, end]), [start, middle]];
}

function additions(old: number, [start, end]: Span, own: boolean): Span[] {
  if (old === end - start) return own ? [] : [[start, end]];
  const split = half(end - start);
  const middle = start + split;
  return old <= split
    ? [...additions(old, [start, middle], own), [middle, end]]
    : [...additions(old - split, [middle, end], false), [start, middle]];
}

async function hashes(spans: readonly Span[], lookup: NodeLookup): Promise<string[]> {
  const peaks = spans.map(peaksOf);
  const found = new Map<string, string>();
  const wanted = peaks.flat();
  for (const node of wanted.length > 0 ? await lookup(wanted) : []) found.set(`${node.level}/${node.index}`, node.hash);
  return peaks.map((each) =>
    foldPeaks(
      each.map(({ level, index }) => {
        const hash = found.get(`${level}/${index}`);
        if (!hash) throw new Fault('internal', `the tree has lost node ${index} of level ${level}`);
        return hash;
      }),
    ),
  );
}

/** The perfect subtrees a span is made of, left to right. A span always starts on a boundary of its largest one. */
function peaksOf([start, end]: Span): { level: number; index: number }[] {
  const peaks: { level: number; index: number }[] = [];
  for (let at = start; at < end; ) {
    let [width, level] = [1, 0];
    while (width * 2 <= end - at) [width, level] = [width * 2, level + 1];
    peaks.push({ level, index: at / width });
    at += width;
  }
  return peaks;
}

/** The largest power of two below the width: where a tree splits. Plain arithmetic, for sizes beyond 32 bits. */
function half(width: number): number {
  let split = 1;
  while (split * 2 < width) split *= 2;
  return split;
}

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0;
const isHash = (value: unknown) => typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value);
