/**
 * Large values are redacted on a thread of their own, so that other requests do not wait for it. The thread knows the
 * same secrets. Where there is no thread (from source), or it fails, they are redacted here.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { Redactor } from '../core/redaction/redact.ts';
import type { RedactionMark } from '../model/payloads.ts';
import type { Json } from '../model/schema.ts';

export interface LargeValues {
  /** The value's JSON without secrets, and where they were. */
  clean(value: Json): Promise<CleanJson>;
  close(): Promise<void>;
}

export interface CleanJson {
  readonly bytes: Uint8Array;
  readonly marks: readonly RedactionMark[];
}

/** One message to the thread: the secrets learned since the last one, and the value to redact. */
export interface RedactionOrder {
  readonly id: number;
  readonly json: string;
  readonly secrets: readonly string[];
}
export type Cleaned = CleanJson & { readonly id: number };

const THREAD = fileURLToPath(new URL('./large-values-thread.js', import.meta.url));

export function createLargeValues(redactor: Redactor): LargeValues {
  const waiting = new Map<number, (cleaned: CleanJson | undefined) => void>();
  let thread: { readonly worker: Worker; known: number } | undefined;
  let here = !existsSync(THREAD);
  let count = 0;

  function begin(): { worker: Worker; known: number } {
    const worker = new Worker(THREAD);
    worker.unref();
    worker.on('message', ({ id, bytes, marks }: Cleaned) => settle(id, { bytes, marks }));
    const over = () => {
      here = true;
      thread = undefined;
      for (const id of [...waiting.keys()]) settle(id, undefined);
    };
    worker.on('error', over);
    worker.on('exit', over);
    return { worker, known: 0 };
  }

  function settle(id: number, cleaned: CleanJson | undefined): void {
    waiting.get(id)?.(cleaned);
    waiting.delete(id);
  }

  function cleanHere(value: Json): CleanJson {
    const { value: clean, marks } = redactor.redact(value);
    return { bytes: Buffer.from(JSON.stringify(clean) ?? 'null'), marks };
  }

  return {
    async clean(value) {
      if (here) return cleanHere(value);
      thread ??= begin();
      const id = count++;
      const secrets = redactor.learned.slice(thread.known);
      thread.known = redactor.learned.length;
      const answered = new Promise<CleanJson | undefined>((resolve) => waiting.set(id, resolve));
      thread.worker.postMessage({ id, secrets, json: JSON.stringify(value) ?? 'null' } satisfies RedactionOrder);
      thread.worker.ref();
      const cleaned = await answered;
      if (waiting.size === 0) thread?.worker.unref();
      return cleaned ?? cleanHere(value);
    },
    async close() {
      here = true;
      await thread?.worker.terminate();
    },
  };
}
