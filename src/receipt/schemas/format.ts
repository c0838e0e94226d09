/** One version of the receipt format, as a verifier needs it. */
import type { Receipt } from '../../model/receipt.ts';

/** The members every version has, under whatever name: a format reads its own documents into these. */
export type ReadableReceipt = Pick<
  Receipt,
  'receipt_id' | 'subject' | 'issued_at' | 'identifiers' | 'replay_input' | 'chain' | 'signatures' | 'metadata'
>;

export interface ReceiptFormat {
  /** The value of the document's `schema` member. */
  readonly schema: string;
  /**
   * The receipt, and the hash its content gives by the rule of this version. Throws a sentence when the document is not a
   * receipt.
   */
  read(document: unknown): { readonly receipt: ReadableReceipt; readonly actual: string };
}
