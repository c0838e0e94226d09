import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TreeNode } from '../../../src/ports/index.ts';
import { batchRoot } from '../../../src/receipt/export/batch-root.ts';
import { appendLeaf, EMPTY_TREE, rootOf, type Tree } from '../../../src/receipt/merkle/merkle.ts';
import {
  consistencyProof,
  inclusionProof,
  type NodeLookup,
  verifyConsistency,
  verifyInclusion,
} from '../../../src/receipt/merkle/proofs.ts';
import { hashBytes } from '../../../src/receipt/seal/canonical-json.ts';

const LARGEST = 70;
const leaf = (n: number) => hashBytes(String(n));

/** All trees up to the largest, and a store that counts how many nodes are asked of it. */
function grow(size = LARGEST) {
  const nodes = new Map<string, TreeNode>();
  const trees: Tree[] = [EMPTY_TREE];
  for (let n = 0; n < size; n += 1) {
    const grown = appendLeaf(trees[n]!, leaf(n));
    trees.push(grown.tree);
    for (const node of grown.nodes) {
      expect(nodes.has(`${node.level}/${node.index}`)).toBe(false);
      nodes.set(`${node.level}/${node.index}`, node);
    }
  }
  const asked: number[] = [];
  const lookup: NodeLookup = async (wanted) => {
    asked.push(wanted.length);
    return wanted.flatMap(({ level, index }) => nodes.get(`${level}/${index}`) ?? []);
  };
  return { roots: trees.map(rootOf), trees, lookup, asked };
}

const flipped = (hash: string) => hash.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));

describe('the tree', () => {
  test('its roots are those of RFC 6962, computed elsewhere', () => {
    const { roots } = grow(7);
    expect(roots[0]).toBe('sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(roots[1]).toBe('sha256:13a77175e35eb1d9da91ee14df0d7772cea71289800206e2b45c882ecb06efbf');
    expect(roots[2]).toBe('sha256:bbb441530bdded54e6e2bfcdc829819ff39b30768eb9f023071dffc16b410f10');
    expect(roots[3]).toBe('sha256:8be871f13785b4c81a1700459c76ac2b3ae2caebb7876c376e223c6adff98c47');
    expect(roots[7]).toBe('sha256:5653c4ab2514ccd6ea4f0159702d2aba901f2562aa75abcff5a19e344bee038f');
  });

  test('it keeps one root per set bit of its size', () => {
    expect(grow(64).trees[64]!.frontier).toHaveLength(1);
    expect(grow(63).trees[63]!.frontier).toHaveLength(6);
  });

  test('appending leaves the tree before as it was', () => {
    const { trees } = grow(3);
    const before = JSON.stringify(trees[3]);
    appendLeaf(trees[3]!, leaf(3));
    expect(JSON.stringify(trees[3])).toBe(before);
  });

  test('what is no hash is refused, and so is a frontier that does not fit', () => {
    for (const text of [
      'sha256:00',
      `sha256:${'g'.repeat(64)}`,
      `sha512:${'0'.repeat(64)}`,
      `sha256:${'0'.repeat(63)}x`,
    ]) {
      expect(() => appendLeaf(EMPTY_TREE, text)).toThrow(/not a SHA-256 hash/);
    }
    expect(() => appendLeaf({ size: 1, frontier: [] }, leaf(0))).toThrow(/frontier/);
  });
});

describe('inclusion', () => {
  test('every receipt of every tree can be proved in it, with one short question to the store', async () => {
    const { roots, lookup, asked } = grow();
    for (let size = 1; size <= LARGEST; size += 1) {
      for (let index = 0; index < size; index += 1) {
        const proof = await inclusionProof(index, size, lookup);
        expect(verifyInclusion(leaf(index), proof, roots[size]!)).toBe(true);
      }
    }
    expect(Math.max(...asked)).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(LARGEST)));
  });

  test('no proof survives a changed byte, another place or another tree', async () => {
    const { roots, lookup } = grow();
    for (let size = 1; size <= LARGEST; size += 1) {
      const index = (size * 7) % size;
      for (const at of [0, index, size - 1]) {
        const proof = await inclusionProof(at, size, lookup);
        const root = roots[size]!;
        expect(verifyInclusion(leaf(at + 1), proof, root)).toBe(false);
        expect(verifyInclusion(leaf(at), proof, flipped(root))).toBe(false);
        proof.path.forEach((hash, step) => {
          expect(verifyInclusion(leaf(at), { ...proof, path: proof.path.with(step, flipped(hash)) }, root)).toBe(false);
        });
        expect(verifyInclusion(leaf(at), { ...proof, path: [...proof.path, leaf(0)] }, root)).toBe(false);
        if (size > 1) {
          expect(verifyInclusion(leaf(at), { ...proof, path: proof.path.slice(1) }, root)).toBe(false);
          expect(verifyInclusion(leaf(at), { ...proof, index: (at + 1) % size }, root)).toBe(false);
        }
      }
    }
  });

  test('every digit of a proof matters', async () => {
    const { roots, lookup } = grow();
    const proof = await inclusionProof(41, 70, lookup);
    fc.assert(
      fc.property(
        fc.nat(proof.path.length - 1),
        fc.integer({ min: 7, max: 70 }),
        fc.integer({ min: 1, max: 15 }),
        (step, at, by) => {
          const hash = proof.path[step]!;
          const digit = ((Number.parseInt(hash[at]!, 16) + by) % 16).toString(16);
          const path = proof.path.with(step, hash.slice(0, at) + digit + hash.slice(at + 1));
          expect(verifyInclusion(leaf(41), { ...proof, path }, roots[70]!)).toBe(false);
        },
      ),
    );
  });

  test('nonsense is no proof', () => {
    const root = leaf(0);
    expect(verifyInclusion('x', { index: 0, size: 1, path: [] }, root)).toBe(false);
    expect(verifyInclusion(leaf(0), { index: 1, size: 1, path: [] }, root)).toBe(false);
    expect(verifyInclusion(leaf(0), { index: -1, size: 1, path: [] }, root)).toBe(false);
    expect(verifyInclusion(leaf(0), { index: 0, size: 2, path: ['x'] }, root)).toBe(false);
    expect(verifyInclusion(leaf(0), { index: 0, size: 2 ** 52, path: [] }, root)).toBe(false);
  });

  test('a receipt that is not there, or a node that is lost, is a fault', async () => {
    await expect(inclusionProof(3, 3, grow(3).lookup)).rejects.toThrow(/no leaf 3 in a tree of 3/);
    await expect(inclusionProof(0, 3, async () => [])).rejects.toThrow(/lost node/);
  });
});

describe('consistency', () => {
  test('every tree can be proved to continue every earlier one', async () => {
    const { roots, lookup, asked } = grow();
    for (let to = 0; to <= LARGEST; to += 1) {
      for (let from = 0; from <= to; from += 1) {
        const proof = await consistencyProof(from, to, lookup);
        expect(verifyConsistency(proof, roots[from]!, roots[to]!)).toBe(true);
      }
    }
    expect(Math.max(...asked)).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(LARGEST)) + 1);
  });

  test('no proof survives a changed byte or another tree', async () => {
    const { roots, lookup } = grow();
    for (let to = 1; to <= LARGEST; to += 1) {
      for (const from of new Set([1, Math.ceil(to / 2), to])) {
        const proof = await consistencyProof(from, to, lookup);
        const [before, after] = [roots[from]!, roots[to]!];
        expect(verifyConsistency(proof, flipped(before), after)).toBe(false);
        expect(verifyConsistency(proof, before, flipped(after))).toBe(false);
        expect(verifyConsistency({ ...proof, path: [...proof.path, leaf(0)] }, before, after)).toBe(false);
        proof.path.forEach((hash, step) => {
          expect(verifyConsistency({ ...proof, path: proof.path.with(step, flipped(hash)) }, before, after)).toBe(
            false,
          );
        });
        if (proof.path.length > 0) {
          expect(verifyConsistency({ ...proof, path: proof.path.slice(1) }, before, after)).toBe(false);
        }
      }
    }
  });

  test('a tree that shrank cannot be proved', async () => {
    await expect(consistencyProof(4, 3, grow(4).lookup)).rejects.toThrow(/cannot follow/);
    expect(verifyConsistency({ from: 4, to: 3, path: [] }, leaf(0), leaf(0))).toBe(false);
    expect(verifyConsistency({ from: 0, to: 3, path: [] }, leaf(0), leaf(1))).toBe(false);
  });
});

test('published batches: three leaves, two, one, none', () => {
  const [a, b, c] = ['a', 'b', 'c'].map(hashBytes) as [string, string, string];
  expect(batchRoot([])).toBe('sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  expect(batchRoot([a])).toBe('sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb');
  expect(batchRoot([a, b])).toBe('sha256:f1feb246fb28009817820ecfc57459f6d23e1651df291c69a24d5e6fd4746782');
  expect(batchRoot([a, b, c])).toBe('sha256:0aa7b1836001394e169e541c8874d8055cb696b648f50850c07c950bca0499cf');
});
