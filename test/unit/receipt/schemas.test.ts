/** A verifier dispatches on what a receipt says it is: a new version is one more entry, and an old receipt stays valid for good. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Receipt } from '../../../src/model/receipt.ts';
import type { ReceiptFormat } from '../../../src/receipt/schemas/format.ts';
import { RECEIPT_FORMATS } from '../../../src/receipt/schemas/index.ts';
import { verifyChain } from '../../../src/receipt/verify/chain.ts';
import { verifyReceipt } from '../../../src/receipt/verify/verify.ts';
import { receiptIssuer } from '../../support/receipts/issued.ts';

/** A version nobody published: other names, and its hash is over the plain text of one member. */
const madeUp: ReceiptFormat = {
  schema: 'receipt-2099-01-01',
  read(document) {
    const { proof, body } = document as { proof: Pick<Receipt, 'chain' | 'signatures'>; body: Receipt };
    return {
      receipt: { ...body, ...proof },
      actual: `sha256:${createHash('sha256').update(JSON.stringify(body)).digest('hex')}`,
    };
  },
};

test('a version that is not known is a clear answer, and not a broken receipt', () => {
  const report = verifyReceipt({ schema: 'receipt-2099-01-01' }, { keys: { keys: [] } });
  expect(report).toEqual({
    valid: false,
    reason: 'schema_unknown',
    details: {
      schema: 'receipt: its schema "receipt-2099-01-01" is not known here; known are receipt-2026-04-25',
    },
  });
  expect(verifyReceipt({ schema: 7 }, { keys: { keys: [] } }).reason).toBe('schema_invalid');
  expect(verifyReceipt(null, { keys: { keys: [] } }).reason).toBe('schema_invalid');
});

test('one more version beside ours: a chain of both is checked, each by its own rule', async () => {
  const { gateway, keyring } = await receiptIssuer();
  const ours = gateway().issue('ws').receipt;
  const { chain: _, signatures: __, ...body } = gateway().issue('ws').receipt;
  const metadata = { chain: { id: 'ws', index: 1, scope: 'workspace' } };
  const next = { ...body, receipt_id: 'receipt_new', metadata };
  const hash = `sha256:${createHash('sha256').update(JSON.stringify(next)).digest('hex')}`;
  const document = {
    schema: 'receipt-2099-01-01',
    body: next,
    proof: {
      chain: { previous_receipt_hash: ours.chain.receipt_hash, receipt_hash: hash },
      signatures: [keyring.signer().sign(hash)],
    },
  };
  const options = { keys: keyring.jwks(), formats: [...RECEIPT_FORMATS, madeUp] };
  expect(await verifyChain([ours, document], options)).toMatchObject({ valid: true, records: 2 });
  expect(verifyReceipt(document, { ...options, previous: ours })).toMatchObject({
    valid: true,
    details: { chain: 'ok' },
  });
  const changed = { ...document, body: { ...next, receipt_id: 'receipt_other' } };
  expect((await verifyChain([ours, changed], options)).firstBad).toMatchObject({ code: 'edited', line: 2 });
  const without = await verifyChain([ours, document], { keys: keyring.jwks() });
  expect(without.firstBad?.message).toContain('its schema "receipt-2099-01-01" is not known here');
});

test('receipts issued before this version of the program are valid with it', async () => {
  const lines = readFileSync(new URL('../../../fixtures/receipts/archive.jsonl', import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');
  const keys = JSON.parse(readFileSync(new URL('../../../fixtures/receipts/keys.json', import.meta.url), 'utf8'));
  expect(await verifyChain(lines, { keys })).toMatchObject({ valid: true, records: lines.length });
});
