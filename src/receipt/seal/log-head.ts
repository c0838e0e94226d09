/** A signed statement of how many events the log holds and of their common root. Each head names the one before it. */
import type { ReceiptSignature } from '../../model/receipt.ts';
import type { Signer } from '../../ports/index.ts';
import type { SignatureState } from '../verify/signatures.ts';
import { hashOf } from './canonical-json.ts';
import type { Jwks } from './public-keys.ts';
import { headSignature } from './tree-head.ts';

export type LogHead = {
  readonly tree: 'events';
  readonly size: number;
  readonly root: string;
  readonly at: string;
  /** Leaf 0 and the last leaf. */
  readonly first_event_id: string;
  readonly last_event_id: string;
  /** Hash of the statement signed before this one. */
  readonly previous: string | null;
  readonly signature: ReceiptSignature;
};

export type LogStatement = Omit<LogHead, 'signature'>;

export function signLogHead(statement: LogStatement, signer: Signer): LogHead {
  return { ...statement, signature: signer.sign(logHeadHash(statement)) };
}

/** The hash that is signed. `object` keeps a signature over a log head from ever passing as one over anything else. */
export function logHeadHash({ tree, size, root, at, first_event_id, last_event_id, previous }: LogStatement): string {
  return hashOf({ object: 'event_tree_head', tree, size, root, at, first_event_id, last_event_id, previous });
}

export function verifyLogHead(head: LogHead, keys: Jwks, trustAnchor?: string): SignatureState {
  return headSignature(head, logHeadHash, keys, trustAnchor);
}

/** Checks only that the value has the members of a log head, not its signature. */
export function isLogHead(value: unknown): value is LogHead {
  if (typeof value !== 'object' || value === null) return false;
  const { tree, size, root, at, first_event_id, last_event_id, previous, signature } = value as Partial<LogHead>;
  const texts = [root, at, first_event_id, last_event_id].every((member) => typeof member === 'string');
  const signed = typeof signature === 'object' && signature !== null && typeof signature.signature === 'string';
  const follows = previous === null || typeof previous === 'string';
  return tree === 'events' && Number.isSafeInteger(size) && (size as number) >= 0 && texts && signed && follows;
}
