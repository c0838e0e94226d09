/**
 * Every version of the receipt format that can be verified. A version stays here for good, so that a receipt that was valid when
 * it was issued stays valid. A new version is a file beside this one and a line below.
 */
import { Fault } from '../../model/faults.ts';
import { receipt20260425 } from './2026-04-25.ts';
import type { ReceiptFormat } from './format.ts';

export const RECEIPT_FORMATS: readonly ReceiptFormat[] = [receipt20260425];

/** The format a document names, or a fault that says which ones there are. */
export function formatOf(document: unknown, formats: readonly ReceiptFormat[]): ReceiptFormat {
  const schema = (document as { schema?: unknown } | null | undefined)?.schema;
  const found = formats.find((format) => format.schema === schema);
  if (found) return found;
  const known = formats.map((format) => format.schema).join(', ');
  if (typeof schema !== 'string') throw new Fault('invalid_request', `receipt: it names no schema; known are ${known}`);
  throw new Fault(
    'unsupported_version',
    `receipt: its schema ${JSON.stringify(schema)} is not known here; known are ${known}`,
  );
}
