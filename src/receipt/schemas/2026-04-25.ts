/** `receipt-2026-04-25`: closed at the top, hashed over everything but its own hash and the signatures. */
import { Receipt } from '../../model/receipt.ts';
import { check } from '../../model/validate.ts';
import { RECEIPT_SCHEMA } from '../../model/words.ts';
import { receiptHash } from '../seal/receipt-hash.ts';
import type { ReceiptFormat } from './format.ts';

export const receipt20260425: ReceiptFormat = {
  schema: RECEIPT_SCHEMA,
  read(document) {
    const receipt = check(Receipt, document, 'receipt');
    return { receipt, actual: receiptHash(receipt) };
  },
};
