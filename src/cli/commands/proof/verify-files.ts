/** Verifies receipts in files: a directory written by export, lines of JSON, one document, or a CBOR archive. */

import { createReadStream, existsSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Fault } from '../../../model/faults.ts';
import { own } from '../../../model/values/own.ts';
import { decodeCborSequence } from '../../../receipt/export/cbor.ts';
import type { Jwks } from '../../../receipt/seal/public-keys.ts';
import type { TreeHead } from '../../../receipt/seal/tree-head.ts';
import { verifyChain } from '../../../receipt/verify/chain.ts';
import { readReceipt, verifyReceipt } from '../../../receipt/verify/verify.ts';
import { trouble } from '../../output/error-output.ts';
import { NAMES } from './archive.ts';
import type { Verified, VerifyOptions } from './verify.ts';
import { createCommitments, verifyEventFiles } from './verify-event-files.ts';
import { headsFrom } from './witness-heads.ts';

export async function verifyFiles(path: string, options: VerifyOptions): Promise<Verified> {
  const isDirectory = statSync(path).isDirectory();
  const dir = isDirectory ? path : dirname(path);
  const file = isDirectory ? receiptsIn(path) : path;
  const keys = await readJson<Jwks>(options.keys ?? join(dir, NAMES.keys), 'public keys', '--keys');
  if (!Array.isArray(keys?.keys) || !keys.keys.every(isObject)) {
    throw trouble(
      'invalid_request',
      'the key file holds no "keys"',
      'give the keys.json that export wrote, with --keys',
    );
  }
  const head = await treeHead(dir, options.head);
  const ids = keys.keys.map(({ kid }) => kid);
  if (/\.json$/i.test(file)) return one(await readFile(file, 'utf8'), keys, ids, options);
  const bytes = /\.cbor$/i.test(file) ? await readFile(file) : undefined;
  const documents = () => (bytes ? archive(bytes) : lines(file));
  const eventsFile = join(dir, NAMES.events);
  const commitments = existsSync(eventsFile) ? createCommitments() : undefined;
  const report = await verifyChain(commitments ? () => commitments.noting(documents()) : documents, {
    keys,
    ...(head && { treeHead: head }),
    ...(options.trust && { trustAnchor: options.trust }),
  });
  const { valid, records, end, firstBad } = report;
  if (firstBad || !commitments) return { valid, records, end, keys: ids, ...(firstBad && { first_bad: firstBad }) };
  const kept = await headsFrom(options.witness ?? []);
  const { firstBad: bad, ...events } = await verifyEventFiles(
    dir,
    () => lines(eventsFile),
    commitments,
    keys,
    options,
    kept,
  );
  const { valid: sound, ...found } = events;
  return { valid: sound, records, end, keys: ids, events: found, ...(bad && { first_bad: bad }) };
}

function one(text: string, keys: Jwks, ids: readonly string[], { trust }: VerifyOptions): Verified {
  const report = verifyReceipt(text, { keys, ...(trust && { trustAnchor: trust }) });
  if (report.valid) return { valid: true, records: 1, keys: ids };
  const read = readReceipt(text);
  const name = typeof read === 'string' ? 'this file' : `receipt ${read.receipt.receipt_id}`;
  const why = report.reason?.startsWith('schema_')
    ? `is not a receipt: ${report.details.schema}`
    : own(WHY, report.reason ?? '');
  const message = `${name} ${why ?? `is wrong: ${report.reason}`}`;
  return { valid: false, records: 0, keys: ids, first_bad: { code: report.reason ?? 'unknown', message } };
}

/** The first failed check, in words. */
export const WHY: Readonly<Record<string, string>> = {
  hash_mismatch: 'was changed: its content does not match its hash',
  chain_mismatch: 'does not follow the record before it',
  merkle_mismatch: 'is not where the tree of all receipts has it',
  events_mismatch: 'was sealed over other events than the log holds of its task',
  signature_absent: 'has no signature',
  signature_invalid: 'has a signature that does not fit: the record or the signature was changed',
  signature_unsupported: 'is signed in a way that cannot be checked here',
  key_unknown: 'is signed with a key that is not among the given keys',
  key_swapped: 'is signed with a key whose id was given to another key',
  key_expired: 'is signed with a key that was not in use at that time',
  key_untrusted: 'is not signed with the trusted key',
};

function receiptsIn(dir: string): string {
  const found = [NAMES.receipts, NAMES.archive].map((name) => join(dir, name)).find((path) => existsSync(path));
  if (found) return found;
  throw trouble('not_found', `there are no receipts in ${dir}`, `write some there: tollbridge export ${dir}`);
}

/** Opened when the first line is read: a readline interface that is not iterated at once loses lines. */
async function* lines(file: string): AsyncGenerator<string> {
  yield* createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
}

/** Bytes that are no archive become a record that is no receipt, and are reported as one. */
function* archive(bytes: Uint8Array): Generator<unknown, void, undefined> {
  try {
    yield* decodeCborSequence(bytes);
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown;
    yield thrown.message;
  }
}

async function treeHead(dir: string, file: string | undefined): Promise<TreeHead | undefined> {
  const path = file ?? join(dir, NAMES.head);
  if (file === undefined && !existsSync(path)) return undefined;
  const head = await readJson<TreeHead>(path, 'signed tree head', '--head');
  // An empty head file must not pass for a missing one.
  if (isObject(head)) return head;
  throw trouble('invalid_request', `${path} holds no signed tree head`, 'name another file with --head FILE');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

export async function readJson<T>(path: string, what: string, option: string): Promise<T> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw trouble(
      'not_found',
      `the ${what} cannot be read: ${path} is not there`,
      `name the file with ${option} FILE`,
      cause,
    );
  }
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw trouble(
      'invalid_request',
      `${path} is not JSON, so it holds no ${what}`,
      `name another file with ${option} FILE`,
      cause,
    );
  }
}
