/** The first answer to each idempotency key. Keeps a digest of the request, never the request: it may hold secrets. */
import { hash } from 'node:crypto';
import { Fault } from '../../../model/faults.ts';
import type { Json } from '../../../model/schema.ts';
import type { Connection } from '../connection.ts';

export interface Remembered {
  readonly digest: string;
  readonly result: Json | undefined;
}
export interface Idempotency {
  find(scope: string): Remembered | undefined;
}

export function createIdempotency(connection: Connection): Idempotency {
  const select = connection.prepare('SELECT digest, result FROM idempotency WHERE scope = ?');
  return {
    find(scope) {
      const found = select.get([scope]) as [string, string | null] | undefined;
      return found && { digest: found[0], result: found[1] === null ? undefined : (JSON.parse(found[1]) as Json) };
    },
  };
}

export function digestOf(body: string): string {
  return hash('sha256', body);
}

/** The first answer, when this is the same request again. */
export function answerAgain(first: Remembered, digest: string): Json | undefined {
  if (first.digest === digest) return first.result;
  throw new Fault('idempotency_key_reused', 'this idempotency key was used for a different request');
}
