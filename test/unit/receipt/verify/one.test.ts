/**
 * One receipt, checked with nothing but itself: every member is covered, and what cannot be known is said to be
 * unknown.
 */
import { describe, expect, test } from 'vitest';
import { storyEvidence } from '../../../../fixtures/receipts/story.ts';
import type { Receipt } from '../../../../src/model/receipt.ts';
import { batchRoot } from '../../../../src/receipt/export/batch-root.ts';
import { hashOf } from '../../../../src/receipt/seal/canonical-json.ts';
import { receiptHash } from '../../../../src/receipt/seal/receipt-hash.ts';
import { type TreeHead, verifyTreeHead } from '../../../../src/receipt/seal/tree-head.ts';
import { verifyReceipt } from '../../../../src/receipt/verify/verify.ts';
import { edited, receiptIssuer, rehashed } from '../../../support/receipts/issued.ts';

const { keyring, outsider, gateway, issued } = await receiptIssuer();

describe('one receipt', () => {
  test('sealed, it verifies', () => {
    const evidence = storyEvidence();
    const receipt = gateway().issue('ws', { evidence }).receipt;
    const keys = keyring.jwks();
    expect(verifyReceipt(receipt, { keys })).toEqual({
      valid: true,
      details: {
        schema: 'ok',
        hash: { expected: receipt.chain.receipt_hash, actual: receipt.chain.receipt_hash },
        chain: 'first',
        merkle: 'absent',
        signatures: [{ key_id: keyring.signer().keyId, status: 'ok' }],
      },
    });
    expect(verifyReceipt(JSON.stringify(receipt, null, 2), { keys }).valid).toBe(true);
  });

  test('every single member is covered', () => {
    const receipt = gateway().issue('ws', { evidence: storyEvidence() }).receipt;
    const paths = leaves(receipt).filter((path) => path[0] !== 'signatures');
    expect(paths.length).toBeGreaterThan(120);
    for (const path of paths) {
      const changed = edited(receipt, (copy) => change(copy, path));
      expect(verifyReceipt(changed, { keys: keyring.jwks() }).valid, path.join('/')).toBe(false);
    }
  });

  test('an edit is a wrong hash; an edit with a new hash is a wrong signature', () => {
    const keys = keyring.jwks();
    const changed = edited(issued(), (r) => (r.cost.total = 5));
    expect(verifyReceipt(changed, { keys })).toMatchObject({
      valid: false,
      reason: 'hash_mismatch',
      details: { hash: { expected: changed.chain.receipt_hash, actual: receiptHash(changed) } },
    });
    expect(verifyReceipt(rehashed(changed), { keys })).toMatchObject({ valid: false, reason: 'signature_invalid' });
  });

  test('a shape that is wrong comes first', () => {
    const keys = keyring.jwks();
    expect(verifyReceipt({}, { keys })).toMatchObject({ valid: false, reason: 'schema_invalid' });
    expect(verifyReceipt('not json', { keys }).details.schema).toBe('this is not JSON');
    expect(verifyReceipt({ ...issued(), extra: 1 }, { keys }).details.schema).toMatch(/has no member "extra"/);
    const twice = JSON.stringify(issued()).replace('{', '{"schema":"receipt-2026-04-25",');
    expect(verifyReceipt(twice, { keys }).details.schema).toMatch(/"schema" appears twice/);
    const odd = { ...issued(), metadata: { half: '\ud800' } };
    expect(verifyReceipt(odd, { keys })).toMatchObject({ valid: false, reason: 'schema_invalid' });
  });

  test('the chain: first, followed, unknown, broken', () => {
    const keys = keyring.jwks();
    const runtime = gateway();
    const [one, two] = [runtime.issue('ws').receipt, runtime.issue('ws').receipt];
    const chain = (receipt: Receipt, previous?: unknown) =>
      verifyReceipt(receipt, { keys, ...(previous !== undefined && { previous }) });
    expect(chain(one).details.chain).toBe('first');
    expect(chain(one, null).details.chain).toBe('first');
    expect(chain(two).details.chain).toBe('not_available');
    expect(chain(two).valid).toBe(true);
    expect(chain(two, one).details.chain).toBe('ok');
    expect(chain(two, one.chain.receipt_hash).details.chain).toBe('ok');
    for (const wrong of [null, two, edited(one, (r) => (r.cost.total = 5)), `sha256:${'0'.repeat(64)}`]) {
      expect(chain(two, wrong)).toMatchObject({
        valid: false,
        reason: 'chain_mismatch',
        details: { chain: 'mismatch' },
      });
    }
    expect(chain(one, two)).toMatchObject({ valid: false, reason: 'chain_mismatch' });
  });

  test('a root inside: unknown batch, own hash, right batch, wrong batch', () => {
    const signer = keyring.signer();
    const embed = (root: string) => {
      const { signatures: _, ...receipt } = edited(issued(), (r) => (r.chain.merkle_root = root));
      const hash = receiptHash(receipt as Receipt);
      return {
        ...receipt,
        chain: { ...receipt.chain, receipt_hash: hash },
        signatures: [signer.sign(hash)],
      } as Receipt;
    };
    const keys = keyring.jwks();
    const plain = issued();
    const leaf = plain.chain.receipt_hash;
    const leaves = [leaf, hashOf('another')];
    const receipt = embed(batchRoot(leaves));
    expect(verifyReceipt(receipt, { keys })).toMatchObject({ valid: true, details: { merkle: 'not_available' } });
    const right = { leaves, root: batchRoot(leaves) };
    expect(verifyReceipt(receipt, { keys, batch: right })).toMatchObject({ valid: true, details: { merkle: 'ok' } });
    for (const batch of [
      { leaves: [leaf], root: right.root },
      { leaves: [hashOf('another')], root: right.root },
      { leaves, root: leaf },
    ]) {
      expect(verifyReceipt(receipt, { keys, batch })).toMatchObject({ valid: false, reason: 'merkle_mismatch' });
    }
    const own = edited(plain, (r) => (r.chain.merkle_root = r.chain.receipt_hash));
    expect(verifyReceipt(own, { keys }).details.merkle).toBe('degenerate');
  });
});

describe('tree heads', () => {
  test('a head is bound to its size, root, time and key', () => {
    const runtime = gateway();
    runtime.issue('a');
    const head = runtime.treeHead();
    const keys = keyring.jwks();
    expect(verifyTreeHead(head, keys)).toBe('ok');
    expect(verifyTreeHead({ ...head, size: 2 }, keys)).toBe('invalid');
    expect(verifyTreeHead({ ...head, root: hashOf(1) }, keys)).toBe('invalid');
    expect(verifyTreeHead({ ...head, at: '2026-11-16T09:30:01.000Z' }, keys)).toBe('invalid');
    expect(verifyTreeHead(head, outsider.jwks())).toBe('key_unknown');
    expect(verifyTreeHead(head, keys, outsider.signer().keyId)).toBe('untrusted');
    expect(verifyTreeHead({ ...head, size: NaN }, keys)).toBe('invalid');
    expect(verifyTreeHead({} as TreeHead, keys)).toBe('invalid');
  });
});

/** Paths of all values that are no objects, keys and indexes alike. */
function leaves(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, member]) => leaves(member, [...path, key]));
}

function change(value: unknown, path: readonly string[]): void {
  const parent = path.slice(0, -1).reduce((at, key) => (at as Record<string, unknown>)[key], value) as Record<
    string,
    unknown
  >;
  const key = path.at(-1)!;
  const before = parent[key];
  if (typeof before === 'number') parent[key] = before + 1;
  else if (typeof before === 'boolean') parent[key] = !before;
  else if (before === null) parent[key] = `sha256:${'0'.repeat(64)}`;
  else parent[key] = `${before}x`;
}
