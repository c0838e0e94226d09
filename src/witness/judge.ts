/**
 * Whether a head may follow the last one a witness has: the same log, only longer. Needs the two heads and a proof, and
 * nothing else.
 */

import { type ConsistencyProof, verifyConsistency } from '../receipt/merkle/proofs.ts';
import { isLogHead, type LogHead, verifyLogHead } from '../receipt/seal/log-head.ts';
import type { Jwks } from '../receipt/seal/public-keys.ts';

type Judgement =
  | { readonly fits: true; readonly known: boolean }
  | { readonly fits: false; readonly code: Refusal; readonly message: string };
type Refusal = 'invalid' | 'proof_required' | 'rolled_back' | 'forked';

export function judge(last: LogHead | undefined, head: unknown, keys: Jwks, proof?: ConsistencyProof): Judgement {
  if (!isLogHead(head)) return no('invalid', 'this is not the head of a log');
  const state = verifyLogHead(head, keys);
  if (state !== 'ok') return no('invalid', `the signature of the head is ${state}`);
  if (!last) return { fits: true, known: false };
  if (head.size < last.size) {
    return no('rolled_back', `the head counts ${head.size} events; the one of ${last.at} counted ${last.size}`);
  }
  if (head.size === last.size) {
    if (head.root === last.root) return { fits: true, known: true };
    return no('forked', `the head and the one of ${last.at} count ${head.size} events each, and not the same ones`);
  }
  if (!proof)
    return no('proof_required', `prove that the log of ${head.size} events goes on from that of ${last.size}`);
  if (proof.from === last.size && proof.to === head.size && verifyConsistency(proof, last.root, head.root)) {
    return { fits: true, known: false };
  }
  return no('forked', `the log of ${head.size} events does not go on from the one of ${last.at}, of ${last.size}`);
}

function no(code: Refusal, message: string): Judgement {
  return { fits: false, code, message };
}
