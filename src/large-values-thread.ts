/** The thread that cleans large values. Knows the secrets it was told, and answers in the order it was asked. */
import { parentPort } from 'node:worker_threads';
import { createRedactor } from './core/redact.ts';
import type { Cleaned, Order } from './large-values.ts';
import type { Json } from './model/schema.ts';

const redactor = createRedactor();

parentPort?.on('message', ({ id, json, secrets }: Order) => {
  for (const secret of secrets) redactor.learn(secret);
  const { value, marks } = redactor.redact(JSON.parse(json) as Json);
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  parentPort?.postMessage({ id, bytes, marks } satisfies Cleaned, [bytes.buffer]);
});
