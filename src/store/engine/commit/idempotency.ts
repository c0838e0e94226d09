/** The first answer to each idempotency key. Keeps a digest of the request, never the request: it may hold secrets. */
import { hash } from 'node:crypto';
import { Fault } from '../../../model/faults.ts';
import type { Json } from '../../../model/schema.ts';
import type { StoredAnswer } from '../database.ts';

export function answerTo(digest: string, result: Json | undefined): StoredAnswer {
  return { digest, result: result === undefined ? null : JSON.stringify(result) };
}

export function digestOf(body: string): string {
  return hash('sha256', body);
}

/** The first answer, when this is the same request again. */
export function answerAgain(first: StoredAnswer, digest: string): Json | undefined {
  if (first.digest === digest) return first.result === null ? undefined : (JSON.parse(first.result) as Json);
  throw new Fault('idempotency_key_reused', 'this idempotency key was used for a different request');
}
