/** Whose signature a receipt carries, which keys count, and from when until when. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Receipt } from '../../../../src/model/receipt.ts';
import { hashOf } from '../../../../src/receipt/seal/canonical-json.ts';
import { openKeyring } from '../../../../src/receipt/seal/keys.ts';
import type { Jwks } from '../../../../src/receipt/seal/public-keys.ts';
import { receiptHash } from '../../../../src/receipt/seal/receipt-hash.ts';
import { verifyReceipt } from '../../../../src/receipt/verify/verify.ts';
import { edited, receiptIssuer } from '../../../support/receipts/issued.ts';

const { base, clock, keyring, outsider, gateway, issued } = await receiptIssuer();

describe('signatures and keys', () => {
  test('none at all proves nothing about the issuer', () => {
    const { signatures: _, ...unsigned } = issued();
    const keys = keyring.jwks();
    expect(verifyReceipt(unsigned, { keys })).toMatchObject({
      valid: false,
      reason: 'signature_absent',
      details: { signatures: 'absent' },
    });
    expect(verifyReceipt(unsigned, { keys, allowUnsigned: true }).valid).toBe(true);
  });

  test('an unknown key, an unknown algorithm, a garbled signature', () => {
    const receipt = issued();
    const keys = keyring.jwks();
    expect(verifyReceipt(receipt, { keys: outsider.jwks() })).toMatchObject({ valid: false, reason: 'key_unknown' });
    const other = edited(receipt, (r) => (r.signatures![0]!.algorithm = 'rsa'));
    expect(verifyReceipt(other, { keys })).toMatchObject({ valid: false, reason: 'signature_unsupported' });
    for (const text of ['base64:AAAA', 'none', `base64:${'A'.repeat(86)}==`]) {
      const garbled = edited(receipt, (r) => (r.signatures![0]!.signature = text));
      expect(verifyReceipt(garbled, { keys })).toMatchObject({ valid: false, reason: 'signature_invalid' });
    }
    const bare = edited(
      receipt,
      (r) => (r.signatures![0]!.signature = r.signatures![0]!.signature.replace('base64:', '')),
    );
    expect(verifyReceipt(bare, { keys }).valid).toBe(true);
  });

  test('a key put under the name of another is found out', () => {
    const theirs = outsider.jwks().keys[0]!;
    const keys: Jwks = { keys: [{ ...theirs, kid: keyring.signer().keyId }] };
    const forged = edited(issued(), (r) => {
      r.cost.total = 5;
      r.chain.receipt_hash = receiptHash(r);
      r.signatures = [{ ...outsider.signer().sign(r.chain.receipt_hash), key_id: keyring.signer().keyId }];
    });
    expect(verifyReceipt(forged, { keys })).toMatchObject({ valid: false, reason: 'key_swapped' });
    // Nor does the real key beside it make the name good again, in either order.
    expect(verifyReceipt(issued(), { keys: { keys: [...keys.keys, ...keyring.jwks().keys] } }).reason).toBe(
      'key_swapped',
    );
    expect(verifyReceipt(issued(), { keys: { keys: [...keyring.jwks().keys, ...keys.keys] } }).reason).toBe(
      'key_swapped',
    );
  });

  test('a witness we do not know takes nothing away; a false one does', () => {
    const witnessed = edited(issued(), (r) => r.signatures!.push(outsider.signer().sign(r.chain.receipt_hash)));
    const keys = keyring.jwks();
    expect(verifyReceipt(witnessed, { keys })).toMatchObject({
      valid: true,
      details: { signatures: [{ status: 'ok' }, { status: 'key_unknown' }] },
    });
    const both = { keys: [...keys.keys, ...outsider.jwks().keys] };
    expect(verifyReceipt(witnessed, { keys: both }).valid).toBe(true);
    const lying = edited(issued(), (r) => r.signatures!.push(outsider.signer().sign(hashOf('other'))));
    expect(verifyReceipt(lying, { keys: both })).toMatchObject({ valid: false, reason: 'signature_invalid' });
  });

  test('an anchor trusts one key, or a receipt the chain must reach', () => {
    const runtime = gateway();
    const [one, two, three] = [runtime.issue('ws').receipt, runtime.issue('ws').receipt, runtime.issue('ws').receipt];
    const keys = keyring.jwks();
    const anchored = (trustAnchor: string, more = {}) => verifyReceipt(three, { keys, trustAnchor, ...more });
    expect(anchored(keyring.signer().keyId).valid).toBe(true);
    expect(anchored(outsider.signer().keyId)).toMatchObject({ valid: false, reason: 'key_untrusted' });
    expect(anchored(three.chain.receipt_hash).details.trust_anchor).toBe('reached');
    expect(anchored(two.chain.receipt_hash).valid).toBe(true);
    expect(anchored(one.chain.receipt_hash, { earlier: [one, two] }).valid).toBe(true);
    expect(anchored(one.chain.receipt_hash)).toMatchObject({
      valid: false,
      reason: 'chain_mismatch',
      details: { trust_anchor: 'not_reached' },
    });
    const broken = [one, edited(two, (r) => (r.cost.total = 5))];
    expect(anchored(one.chain.receipt_hash, { earlier: broken }).valid).toBe(false);
  });

  test('a change of key keeps old receipts good, and dates count', async () => {
    clock.now = '2026-11-16T09:30:00.000Z';
    const rotating = await openKeyring({ dir: join(base, 'rotating'), now: () => clock.now });
    const runtime = gateway(rotating);
    const before = runtime.issue('ws').receipt;
    clock.now = '2026-11-16T10:30:00.000Z';
    await rotating.rotate();
    const after = runtime.issue('ws').receipt;
    const keys = rotating.jwks();
    const check = (receipt: Receipt, atTime?: string) => verifyReceipt(receipt, { keys, ...(atTime && { atTime }) });
    expect(check(before).valid).toBe(true);
    expect(check(after).valid).toBe(true);
    expect(before.signatures![0]!.key_id).not.toBe(after.signatures![0]!.key_id);
    expect(check(before, '2026-11-16T09:45:00Z').valid).toBe(true);
    expect(check(before, '2026-11-16T11:00:00Z')).toMatchObject({ valid: false, reason: 'key_expired' });
    expect(check(after, '2026-11-16T09:45:00Z')).toMatchObject({ valid: false, reason: 'key_expired' });
    expect(check(before, 'no time at all')).toMatchObject({ valid: false, reason: 'key_expired' });
    clock.now = '2026-11-16T09:30:00.000Z';
  });

  test('a receipt built before a change of key names the key that signed it', () => {
    const issuer = { id: 'g', kind: 'harness', public_key_id: 'ed25519:old' } as const;
    expect(issued({ issuer }).issuer.public_key_id).toBe(keyring.signer().keyId);
  });
});
