/** Checks whether the port's certificate can be used, when it expires, and whether its key is private. */
import { stat } from 'node:fs/promises';
import { asFault } from '../../model/faults.ts';
import type { Config } from '../../runtime/config/config.ts';
import { readTls } from '../../runtime/tls-files.ts';
import { isLoopback } from '../../transport/http/origin.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

const SOON_MS = 14 * 24 * 3600 * 1000;

export async function lookAtTls({
  tls,
  host,
  publicUrl,
}: Pick<Config, 'tls' | 'host' | 'publicUrl'>): Promise<readonly Finding[]> {
  if (!tls) {
    if (isLoopback(host) || publicUrl?.startsWith('https:')) return [];
    return [
      warn(
        'tls',
        `${host} can be reached by others over plain HTTP`,
        'set listen.tls, or put a proxy that ends TLS in front',
      ),
    ];
  }
  const { mode = 0 } = (await stat(tls.key).catch(() => undefined)) ?? {};
  const open = (mode & 0o077) === 0 ? [] : [bad('tls', `${tls.key} can be read by others`, `chmod 600 ${tls.key}`)];
  try {
    return [...open, ...lifeOf((await readTls(tls)).expires, tls.cert)];
  } catch (thrown) {
    const { message, details } = asFault(thrown);
    const fix = details?.fix;
    return [...open, bad('tls', message, typeof fix === 'string' ? fix : 'correct listen.tls in tollbridge.yaml')];
  }
}

function lifeOf(expires: Date, cert: string): readonly Finding[] {
  const left = expires.getTime() - Date.now();
  const day = expires.toISOString().slice(0, 10);
  if (left <= 0)
    return [bad('tls', `the certificate in ${cert} expired on ${day}`, 'renew it; saving the file is enough')];
  if (left < SOON_MS)
    return [warn('tls', `the certificate in ${cert} expires on ${day}`, 'renew it; saving the file is enough')];
  return [ok('tls', `the certificate holds until ${day}`)];
}
