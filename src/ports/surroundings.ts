/** Clock, ids, keys and the process log: ports, so that a replay can answer from the record. */
import type { ReceiptSignature } from '../model/receipt.ts';

export interface Clock {
  /** RFC 3339, UTC, milliseconds. */
  now(): string;
  /** From now on times are those of another clock, which is this much ahead: all processes on a log in a database go by the database's. */
  correct?(aheadMs: number): void;
}

export interface Ids {
  /** `task` → `task_01J…`; never repeats. */
  next(prefix: string): string;
}

export interface Signer {
  readonly keyId: string;
  /** The key in use at that time; the current key when no other was. */
  keyIdAt?(at: string): string;
  /** Signs the text `sha256:<hex>`. */
  sign(hash: string): ReceiptSignature;
  /** Keyed digest of a text that may hold a secret: comparable in this installation, meaningless elsewhere. `hmac-sha256:<hex>`. */
  mac(text: string): string;
}

export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
