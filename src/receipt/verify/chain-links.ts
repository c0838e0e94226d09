/** How receipts of a chain follow each other, and which kind of tampering explains it when they do not. */
import type { ReadableReceipt } from '../schemas/format.ts';

/** The kind of tampering, in one word. */
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
  /** 1-based line of the archive; one past the last when records are missing at the end, 0 when no line is at fault. */
  readonly line: number;
  readonly receipt_id?: string;
  readonly chain?: string;
  readonly code: ChainCode;
  /** For display. */
  readonly message: string;
}
export interface ChainLink {
  readonly line: number;
  readonly id: string;
  readonly chain: string;
  readonly hash: string;
  readonly previous: string | null;
  /** Undefined for receipts of replays, which do not state their position. */
  readonly index: number | undefined;
}

export function linkOf(receipt: ReadableReceipt, hash: string, line: number): ChainLink {
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

/** Whether the record continues its chain. */
export function isInOrder(link: ChainLink, chain: { length: number; head: string } | undefined): boolean {
  return link.previous === (chain?.head ?? null) && (link.index === undefined || link.index === (chain?.length ?? 0));
}

/** Earlier records that explain a misplaced one: the record it repeats, and the record it says it follows. */
export interface Earlier {
  readonly twin: ChainLink | undefined;
  readonly followed: ChainLink | undefined;
}

/** Checks the record's position. `gap`: its predecessor has not been seen, and may still come. */
export function linkTrouble(
  link: ChainLink,
  chain: { length: number; head: string } | undefined,
  { twin, followed: before }: Earlier,
): BadRecord | 'gap' {
  const expected = chain?.length ?? 0;
  if (twin) return bad(link, 'duplicated', `it repeats line ${twin.line}`);
  if (link.previous === (chain?.head ?? null)) {
    return bad(link, 'spliced', `it says it is number ${link.index} of its chain and stands at ${expected}`);
  }
  if (link.previous === null) return bad(link, 'spliced', `it starts the chain ${link.chain} a second time`);
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

/** The predecessor never came. */
export function missing(link: ChainLink, expected: number): BadRecord {
  const count = link.index === undefined ? undefined : link.index - expected;
  const many = count === undefined ? 'one or more records' : count === 1 ? 'one record' : `${count} records`;
  return bad(link, 'deleted', `${many} of its chain before it ${count === 1 ? 'is' : 'are'} missing`);
}

export function bad(link: ChainLink, code: ChainCode, what: string): BadRecord {
  const message = `line ${link.line}, receipt ${link.id}: ${what}`;
  return { line: link.line, receipt_id: link.id, chain: link.chain, code, message };
}
