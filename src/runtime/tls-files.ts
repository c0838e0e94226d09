/**
 * The certificate and the key of the port, from files. Both are read and tried together before they are used: a key
 * that does not belong to its certificate, or a file that cannot be read, is a fault that names the file and never
 * shows its content. Changed files are read again; if they cannot be used that is reported, and the pair in use stays.
 */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { Fault } from '../model/faults.ts';
import { watchPaths } from '../policy/rules/watch.ts';
import type { Closable, Logger } from '../ports/index.ts';

/** As the configuration names them, with absolute paths. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Seconds for which browsers stay with https; 0 sends no HSTS header. */
  readonly hstsSeconds: number;
}

/** The pair a listener uses. */
export interface TlsPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly minVersion: TlsFiles['minVersion'];
  readonly expires: Date;
}

export async function readTls({ cert, key, minVersion }: TlsFiles): Promise<TlsPair> {
  const pair = { cert: await read('cert', cert), key: await read('key', key), minVersion };
  const expires = expiryOf(cert, pair.cert);
  try {
    createSecureContext(pair);
  } catch (cause) {
    throw unusable(cause, cert, key);
  }
  return { ...pair, expires };
}

async function read(member: 'cert' | 'key', path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'is not there' : code === 'EACCES' ? 'may not be read' : `cannot be read (${code})`;
    throw fault(`listen.tls.${member}: ${path} ${why}`, 'correct the path, or let this user read the file');
  }
}

/** Of the first certificate in the file, which is the one presented. */
function expiryOf(path: string, pem: Buffer): Date {
  try {
    return new Date(new X509Certificate(pem).validTo);
  } catch {
    throw fault(`listen.tls.cert: ${path} holds no certificate`, 'name a PEM file with the certificate and its chain');
  }
}

/** OpenSSL's message names no secret, but says little; the code tells which file it was. */
function unusable(cause: unknown, cert: string, key: string): Fault {
  const { code = '' } = cause as { code?: string };
  if (code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH' || code === 'ERR_OSSL_X509_KEY_TYPE_MISMATCH') {
    return fault(
      `listen.tls: the key in ${key} does not belong to the certificate in ${cert}`,
      'name the key it was made with',
    );
  }
  if (/PASSWORD|BAD_DECRYPT|INTERRUPTED|PROCESSING_ERROR/i.test(code)) {
    return fault(
      `listen.tls.key: ${key} is locked with a passphrase`,
      'store the key without one, readable by this user only',
    );
  }
  return fault(`listen.tls: ${cert} and ${key} cannot be used (${code || 'unknown'})`, 'both have to be PEM files');
}

function fault(message: string, fix: string): Fault {
  return new Fault('invalid_request', message, { details: { fix } });
}

/** Watches the files of the pair in use. `use` is called with each usable pair after the first. */
export function watchTls(files: TlsFiles, use: (pair: TlsPair) => void, log: Logger): Closable {
  const watched = watchPaths({
    paths: [files.cert, files.key],
    debounceMs: 100,
    onEvent: async () => {
      try {
        const pair = await readTls(files);
        use(pair);
        log.info(
          { cert: files.cert, expires: pair.expires.toISOString() },
          'new connections use the changed certificate',
        );
      } catch (cause) {
        log.error({ err: cause }, 'the changed certificate cannot be used; the one in use stays');
      }
    },
  });
  return { close: async () => watched.close() };
}
