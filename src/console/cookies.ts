/** Which requests count as the console's own: cookie, proof, host and origin together. Pure. */
import type { IncomingMessage } from 'node:http';
import { timesSent } from '../transport/http/headers.ts';

/** The page sends the second secret of its session in this header; a page of another origin cannot, without a preflight we refuse. */
export const PROOF_HEADER = 'x-tollbridge-console';

/** Cookies do not tell ports apart, so the name does: two gateways on one host keep their sessions apart. */
export function cookieName(host: string | undefined): string {
  return `tollbridge-console-${/:(\d+)$/.exec(host ?? '')?.[1] ?? 'default'}`;
}

export function cookieOf({ headers }: IncomingMessage): string | undefined {
  const name = cookieName(headers.host);
  const values = (headers.cookie ?? '').split(';').flatMap((part) => {
    const [left = '', right = ''] = part.trim().split('=', 2);
    return left === name ? [right] : [];
  });
  // Two cookies of one name: one of them was set by another page of this host.
  return values.length === 1 ? values[0] : undefined;
}

/** The browser says which page a request comes from; only our own may use the session. */
export function isOwnPage(request: IncomingMessage): boolean {
  const { headers } = request;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  if (headers.origin === undefined) return true;
  return /^https?:\/\/(.+)$/i.exec(headers.origin)?.[1]?.toLowerCase() === headers.host?.toLowerCase();
}

export function proofOf(request: IncomingMessage): string | undefined {
  const header = request.headers[PROOF_HEADER];
  return typeof header === 'string' && timesSent(request, PROOF_HEADER) === 1 ? header : undefined;
}

export function setCookie(host: string | undefined, value: string, secure: boolean, seconds: number): string {
  const parts = [
    `${cookieName(host)}=${value}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${seconds}`,
    ...(secure ? ['Secure'] : []),
  ];
  return parts.join('; ');
}
