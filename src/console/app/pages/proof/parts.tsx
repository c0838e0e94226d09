/** Small parts that the list of receipts and one receipt share. */
import { bag, str } from '../../rows.ts';
import { Badge } from '../../ui.tsx';

export type Bag = Readonly<Record<string, unknown>>;

export interface ReceiptRow {
  readonly id: string;
  readonly issued_at?: string;
  readonly created_at: string;
  readonly wire: { readonly payload: Bag };
}

export const MARKS = { ok: '✓', bad: '✕', unknown: '–' } as const;

export function Outcome({ receipt }: { readonly receipt: Bag }) {
  const status = str(bag(receipt.lifecycle).final_state);
  return (
    <Badge tone={/succe|compl|ok/i.test(status) ? 'good' : status ? 'bad' : ''}>
      {status.toLowerCase() || 'ended'}
    </Badge>
  );
}

/** Browsers have their cryptography for pages over HTTPS and of this machine only. */
export const hasCrypto = globalThis.crypto?.subtle !== undefined;

export function NoCrypto() {
  return (
    <p class="warn">
      This browser checks nothing on a page that came over plain HTTP from another machine. Open the console over HTTPS,
      or check with <code>tollbridge verify</code>.
    </p>
  );
}

export function listOf(value: unknown): readonly Bag[] {
  return Array.isArray(value) ? (value as readonly Bag[]) : [];
}
