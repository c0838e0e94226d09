/** Proofs over the tree of receipts (RFC 6962), checked with the browser's own hash: a receipt is in it, and it only grew. */
import { bytesOf, sha, text } from '../../../examples/verify/verify.js';

export interface Head {
  readonly size: number;
  readonly root: string;
  readonly at: string;
  readonly signature: { readonly key_id: string; readonly signature: string };
}
export interface Inclusion {
  readonly index: number;
  readonly size: number;
  readonly path: readonly string[];
}
export interface Consistency {
  readonly from: number;
  readonly to: number;
  readonly path: readonly string[];
}

const isHash = (value: unknown) => typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value);
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const node = async (left: string, right: string): Promise<string> =>
  text(await sha(Uint8Array.of(1), bytesOf(left), bytesOf(right)));
/** The leaves left of the middle: the largest power of two that leaves some on the right. */
const half = (width: number) => 2 ** Math.floor(Math.log2(width - 1));

export async function isIncluded(receiptHash: string, proof: Inclusion, root: string): Promise<boolean> {
  const { index, size, path } = proof;
  if (!isCount(index) || !isCount(size) || index >= size || ![receiptHash, ...path].every(isHash)) return false;
  const rest = [...path];
  const climb = async (at: number, width: number): Promise<string | undefined> => {
    if (width === 1) return text(await sha(Uint8Array.of(0), bytesOf(receiptHash))) as string;
    const sibling = rest.pop();
    const split = half(width);
    const below = at < split ? await climb(at, split) : await climb(at - split, width - split);
    if (sibling === undefined || below === undefined) return undefined;
    return at < split ? await node(below, sibling) : await node(sibling, below);
  };
  return (await climb(index, size)) === root && rest.length === 0;
}

/** Whether every receipt of the earlier tree is in its place in the later one. */
export async function isGrown(proof: Consistency, fromRoot: string, toRoot: string): Promise<boolean> {
  const { from, to, path } = proof;
  if (!isCount(from) || !isCount(to) || from > to || ![fromRoot, toRoot, ...path].every(isHash)) return false;
  if (from === 0) return path.length === 0;
  const rest = [...path];
  const climb = async (old: number, width: number, own: boolean): Promise<readonly [string, string] | undefined> => {
    if (old === width && own) return [fromRoot, fromRoot];
    const piece = rest.pop();
    if (piece === undefined) return undefined;
    if (old === width) return [piece, piece];
    const split = half(width);
    const below = old <= split ? await climb(old, split, own) : await climb(old - split, width - split, false);
    if (!below) return undefined;
    const [before, after] = below;
    return old <= split ? [before, await node(after, piece)] : [await node(piece, before), await node(piece, after)];
  };
  const roots = await climb(from, to, true);
  return roots?.[0] === fromRoot && roots[1] === toRoot && rest.length === 0;
}
