/**
 * `tollbridge verify`: receipts from files, which needs nothing but them and public keys, or from the log of this house.
 * A broken one is an answer: it is named, with what is wrong, and the exit code is 1.
 */
import { existsSync } from 'node:fs';
import type { CommonOptions } from './context.ts';
import { EXIT } from './exit-codes.ts';
import { counted, plain } from './plain.ts';
import { verifyFiles } from './verify-files.ts';
import { verifyInLog } from './verify-log.ts';

export interface VerifyOptions extends CommonOptions {
  readonly keys?: string;
  readonly head?: string;
  readonly trust?: string;
  readonly json?: boolean;
}

/** What came of it, the same for files and for the log. */
export interface Verified {
  readonly valid: boolean;
  /** Sound records before the first bad one. */
  readonly records: number;
  /** Whether the last one is known to be the last; a single receipt has no end. */
  readonly end?: 'complete' | 'unknown' | 'missing';
  readonly keys: readonly string[];
  readonly first_bad?: { readonly code: string; readonly message: string; readonly line?: number };
}

export async function verify(what: string, options: VerifyOptions): Promise<number> {
  const isFile = what !== 'all' && existsSync(what);
  const found = isFile ? await verifyFiles(what, options) : await verifyInLog(what, options);
  process.stdout.write(options.json ? `${JSON.stringify(found)}\n` : plain(said(found)));
  return found.valid ? EXIT.done : EXIT.no;
}

function said({ first_bad, records, end, keys }: Verified): string {
  if (first_bad) return `BAD  ${first_bad.message}\n`;
  const chain = end === undefined ? 'nothing changed' : 'nothing missing, nothing changed';
  const open = end === 'unknown' ? '; no tree head says where it ends, so a missing end would not be noticed' : '';
  return `ok   ${counted(records, 'receipt')}, ${chain}${open}\n     signed with ${keys.join(', ') || 'no key'}\n`;
}
