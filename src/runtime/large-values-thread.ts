/** The thread that redacts large values. Knows the secrets it was sent, and answers in the order of the requests. */
import { parentPort } from 'node:worker_threads';
import { createRedactor } from '../core/redaction/redact.ts';
import type { Json } from '../model/schema.ts';
import type { Cleaned, RedactionOrder } from './large-values.ts';

const redactor = createRedactor();

parentPort?.on('message', ({ id, json, secrets }: RedactionOrder) => {
  for (const secret of secrets) redactor.learn(secret);
  const { value, marks } = redactor.redact(JSON.parse(json) as Json);
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  parentPort?.postMessage({ id, bytes, marks } satisfies Cleaned, [bytes.buffer]);
});
