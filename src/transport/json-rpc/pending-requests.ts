/**
 * Matches JSON-RPC responses to pending requests. A response with an unknown id is not delivered; when the connection
 * is lost every pending request is rejected at once. Knows no protocol beyond JSON-RPC's ids.
 */
import { InFlightMap } from '../in-flight-map.ts';

export interface Pending {
  /** The response with this id. */
  wait(id: string, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>;
  /** True when a request was waiting for it. */
  deliver(message: unknown): boolean;
  /** Rejects every pending request. */
  fail(cause: Error): void;
  readonly size: number;
}

interface Waiting {
  resolve(message: Readonly<Record<string, unknown>>): void;
  reject(cause: Error): void;
}

export function createPending(): Pending {
  const waiting = new InFlightMap<string, Waiting>();
  return {
    wait(id, signal) {
      return new Promise((resolve, reject) => {
        const settle = () => {
          waiting.over(id);
          signal.removeEventListener('abort', late);
        };
        const late = () => {
          settle();
          reject(new Error('no answer in time'));
        };
        if (signal.aborted) return reject(new Error('no answer in time'));
        signal.addEventListener('abort', late, { once: true });
        waiting.begin(id, {
          resolve(message) {
            settle();
            resolve(message);
          },
          reject(cause) {
            settle();
            reject(cause);
          },
        });
      });
    },
    deliver(message) {
      if (typeof message !== 'object' || message === null || Array.isArray(message)) return false;
      const { id } = message as { id?: unknown };
      const found = typeof id === 'string' ? waiting.get(id) : undefined;
      found?.resolve(message as Record<string, unknown>);
      return found !== undefined;
    },
    fail(cause) {
      for (const each of waiting.all()) each.reject(cause);
    },
    get size() {
      return waiting.size;
    },
  };
}
