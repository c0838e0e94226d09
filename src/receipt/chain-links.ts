/** How receipts of a chain hang together, and what must have been done to them when they do not. */
import type { Receipt } from '../model/receipt.ts';

/** What was done to a record, in one word. */
export type ChainCode =
  | 'edited'
  | 'not_a_receipt'
  | 'signature_invalid'
  | 'signature_absent'
  | 'signature_unsupported'
  | 'key_swapped'
  | 'key_unknown'
  | 'key_expired'
  | 'key_untrusted'
  | 'duplicated'
  | 'reordered'
  | 'deleted'
  | 'spliced'
  | 'truncated'
  | 'tree_mismatch'
  | 'tree_head_invalid';

export interface BadRecord {
  /** 1-based line of the archive; one past the last when records are missing at the end, 0 when no line is to blame. */
  readonly line: number;
  readonly receipt_id?: string;
  readonly chain?: string;
  readonly code: ChainCode;
  /** For people. */
  readonly message: string;
}
export interface Link {
  readonly line: number;
  readonly id: string;
  readonly chain: string;
  readonly hash: string;
  readonly previous: string | null;
  /** Receipts of replays do not say their place. */
  readonly index: number | undefined;
}

export function linkOf(receipt: Receipt, hash: string, line: number): Link {
  const chain = receipt.metadata?.chain as { id?: unknown; index?: unknown } | undefined;
  return {
    line,
    id: receipt.receipt_id,
    chain: typeof chain?.id === 'string' ? chain.id : receipt.identifiers.workspace_ref,
    hash,
    previous: receipt.chain.previous_receipt_hash,
    index: typeof chain?.index === 'number' ? chain.index : undefined,
  };
}

/** The record in its place. `gap`: what it follows has not been seen, and may yet come. */
export function linkTrouble(
  link: Link,
  chain: { length: number; head: string } | undefined,
  seen: ReadonlyMap<string, Link>,
): BadRecord | 'gap' | undefined {
  const expected = chain?.length ?? 0;
  const fits = link.previous === (chain?.head ?? null);
  if (fits && (link.index === undefined || link.index === expected)) return undefined;
  const twin = seen.get(link.hash);
  if (twin) return bad(link, 'duplicated', `it repeats line ${twin.line}`);
  if (fits) return bad(link, 'spliced', `it says it is number ${link.index} of its chain and stands at ${expected}`);
  if (link.previous === null) return bad(link, 'spliced', `it starts the chain ${link.chain} a second time`);
  const before = seen.get(link.previous);
  if (before && before.chain !== link.chain) {
    return bad(link, 'spliced', `it follows line ${before.line}, a record of the chain ${before.chain}`);
  }
  if (before) return bad(link, 'spliced', `it follows line ${before.line}, which another record already follows`);
  if (link.index !== undefined && link.index <= expected && expected > 0) {
    return bad(
      link,
      'spliced',
      'it follows a record of another chain: nothing is missing before it, yet it does not fit',
    );
  }
  return 'gap';
}

/** What it follows never came. */
export function missing(link: Link, expected: number): BadRecord {
  const count = link.index === undefined ? undefined : link.index - expected;
  const many = count === undefined ? 'one or more records' : count === 1 ? 'one record' : `${count} records`;
  return bad(link, 'deleted', `${many} of its chain before it ${count === 1 ? 'is' : 'are'} missing`);
}

export function bad(link: Link, code: ChainCode, what: string): BadRecord {
  const message = `line ${link.line}, receipt ${link.id}: ${what}`;
  return { line: link.line, receipt_id: link.id, chain: link.chain, code, message };
}
