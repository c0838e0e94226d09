/** Time, names, keys and the log of the house: ports, so that a replay can answer from the record. */
import type { ReceiptSignature } from '../model/receipt.ts';

export interface Clock {
  /** RFC 3339, UTC, milliseconds. */
  now(): string;
}

export interface Ids {
  /** `task` → `task_01J…`; never the same twice. */
  next(prefix: string): string;
}

export interface Signer {
  readonly keyId: string;
  /** Signs the text `sha256:<hex>`. */
  sign(hash: string): ReceiptSignature;
  /** Keyed digest of what may hold a secret: comparable here, meaningless elsewhere. `hmac-sha256:<hex>`. */
  mac(text: string): string;
}

export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
