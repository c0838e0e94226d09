/** Reads signed heads of the log from witnesses: a file of them, or the record of another gateway. */
import { existsSync } from 'node:fs';
import { isLogHead, type LogHead } from '../../../receipt/seal/log-head.ts';
import type { KnownHead } from '../../../receipt/verify/events.ts';
import { requestOut } from '../../../transport/outbound/public-fetch.ts';
import { readHeads } from '../../../witness/record.ts';
import { trouble } from '../../output/error-output.ts';

const LONGEST = 64 * 1024 * 1024;

/** The heads of each witness, with its name: a file, or an address such as `https://witness.example/witness/heads`. */
export async function headsFrom(from: readonly string[]): Promise<readonly KnownHead[]> {
  const kept: KnownHead[] = [];
  for (const name of from) {
    const heads = isAddress(name) ? await headsAt(name) : await headsIn(name);
    kept.push(...heads.map((head) => ({ ...head, kept_by: name })));
  }
  return kept;
}

export function isAddress(name: string): boolean {
  return /^https?:\/\//i.test(name);
}

async function headsIn(path: string): Promise<readonly LogHead[]> {
  if (!existsSync(path))
    throw trouble('not_found', `there is no file ${path}`, 'name the file a witness keeps heads in');
  try {
    return await readHeads(path);
  } catch (cause) {
    throw trouble('invalid_request', (cause as Error).message, 'name the file a witness keeps heads in', cause);
  }
}

async function headsAt(url: string): Promise<readonly LogHead[]> {
  const token = process.env.TOLLBRIDGE_WITNESS_TOKEN;
  const { host, hostname } = new URL(url);
  const { status, text } = await requestOut(
    url,
    { allow: [host, hostname], insecure: false },
    { method: 'GET', headers: token ? { authorization: `Bearer ${token}` } : {}, timeoutMs: 30_000, limit: LONGEST },
  ).catch((cause: Error) => {
    throw trouble('unavailable', `the witness ${url} cannot be reached: ${cause.message}`, 'try it again later', cause);
  });
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (status !== 200) {
    throw trouble(
      'permission_denied',
      `the witness ${url} answered ${status}`,
      'put a key with the scope receipts:read into TOLLBRIDGE_WITNESS_TOKEN',
    );
  }
  return lines.map((line) => {
    const head: unknown = JSON.parse(line);
    if (isLogHead(head)) return head;
    throw trouble('invalid_request', `the witness ${url} sent what is not the head of a log`, 'check the address');
  });
}
