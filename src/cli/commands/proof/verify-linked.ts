/** Verifies links between two gateways: the receipts of one export, followed into the export of the other. */
import { createReadStream, existsSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { CoreEvent } from '../../../model/events.ts';
import { decodeCborSequence } from '../../../receipt/export/cbor.ts';
import { eventLeaf } from '../../../receipt/merkle/event-hash.ts';
import type { Jwks } from '../../../receipt/seal/public-keys.ts';
import {
  checkLinks,
  type LinkCheck,
  type LinkedReceipt,
  linksOf,
  type OtherReceipt,
} from '../../../receipt/verify/linked.ts';
import { readReceipt, verifyReceipt } from '../../../receipt/verify/verify.ts';
import { trouble } from '../../output/error-output.ts';
import { NAMES } from './archive.ts';

export interface LinkCounts {
  readonly linked: number;
  readonly mismatch: number;
  readonly not_available: number;
  readonly checks: readonly LinkCheck[];
}

/** `keys`: those of the other gateway; absent: the ones beside its receipts. */
export async function followLinks(path: string, other: string, keys?: string): Promise<LinkCounts> {
  const own = (await documentsIn(path)).flatMap((document) => {
    const read = readReceipt(document);
    return typeof read === 'string' ? [] : [read.receipt];
  });
  const found = await othersIn(other, keys ?? join(directoryOf(other), NAMES.keys));
  const events = await eventsNamed(own, directoryOf(other));
  const checks = checkLinks(own, { receipts: found, eventHash: (id) => events.get(id) });
  const count = (state: LinkCheck['state']) => checks.filter((check) => check.state === state).length;
  return {
    linked: count('linked'),
    mismatch: count('mismatch'),
    not_available: count('not_available'),
    checks,
  };
}

async function othersIn(path: string, keyFile: string): Promise<readonly OtherReceipt[]> {
  const keys = await readKeys(keyFile);
  return (await documentsIn(path)).flatMap((document): OtherReceipt[] => {
    const read = readReceipt(document);
    if (typeof read === 'string') return [];
    const { valid, reason } = verifyReceipt(document, { keys });
    return [{ receipt: read.receipt, ...(!valid && { trouble: reason ?? 'unknown' }) }];
  });
}

async function readKeys(file: string): Promise<Jwks> {
  try {
    const keys = JSON.parse(await readFile(file, 'utf8')) as Jwks;
    if (Array.isArray(keys?.keys)) return keys;
  } catch (cause) {
    throw trouble(
      'not_found',
      `the other gateway's keys cannot be read: ${file}`,
      'name them with --linked-keys FILE',
      cause,
    );
  }
  throw trouble(
    'invalid_request',
    `${file} holds no "keys"`,
    'name the keys.json that export wrote with --linked-keys FILE',
  );
}

async function documentsIn(path: string): Promise<readonly unknown[]> {
  if (!existsSync(path)) throw trouble('not_found', `${path} is not there`, 'name an export, or a file of receipts');
  const file = statSync(path).isDirectory() ? join(path, NAMES.receipts) : path;
  if (/\.json$/i.test(file)) return [await readFile(file, 'utf8')];
  if (/\.cbor$/i.test(file)) return [...decodeCborSequence(await readFile(file))];
  const lines: string[] = [];
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY }))
    if (line !== '') lines.push(line);
  return lines;
}

/** Hashes of the caller events that our receipts name, where the other export has its events. */
async function eventsNamed(own: readonly LinkedReceipt[], dir: string): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set(
    own.flatMap(linksOf).flatMap(({ direction, event_id }) => (direction === 'caller' ? [event_id] : [])),
  );
  const found = new Map<string, string>();
  const file = join(dir, NAMES.events);
  if (wanted.size === 0 || !existsSync(file)) return found;
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const event = parsed(line);
    const hash = event && wanted.has(event.id) ? eventLeaf(event) : undefined;
    if (event && hash) found.set(event.id, hash);
  }
  return found;
}

function parsed(line: string): CoreEvent | undefined {
  try {
    return JSON.parse(line) as CoreEvent;
  } catch {
    return undefined;
  }
}

function directoryOf(path: string): string {
  return existsSync(path) && statSync(path).isDirectory() ? path : dirname(path);
}
