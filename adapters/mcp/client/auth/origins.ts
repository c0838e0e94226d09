/**
 * The origins that may receive our credentials for one server: the server's own, issuers that the configuration names, and the one
 * a person signed in at. A server's metadata may name any other; that origin gets no credentials and no request that carries any.
 * Every request goes through the outbound guard, and no redirect is followed.
 */

import type { FetchLike } from '@modelcontextprotocol/client';
import { asText, Fault } from '../../../../src/index.ts';
import { isLoopback } from '../../../../src/transport/http/origin.ts';
import { type OutboundRules, requestOut } from '../../../../src/transport/outbound/public-fetch.ts';

export interface OriginsOptions {
  readonly server: URL;
  /** Issuers that the configuration names. Where there are any, no other issuer is accepted. */
  readonly issuers?: readonly string[] | undefined;
  /** The issuer a person signed in at. */
  readonly pinned?: () => Promise<string | undefined>;
  /** A person sees the address before going there, and can decline. */
  readonly person: boolean;
}

export interface Origins {
  /** Throws unless this issuer may have our credentials; from then on its origin may be asked for tokens. */
  admit(issuer: string): Promise<void>;
  /** Throws unless a person may be sent to this address. */
  requireKnown(address: URL): Promise<void>;
  readonly fetch: FetchLike;
}

const TIMEOUT_MS = 15_000;
const ANSWER_LIMIT = 1024 * 1024;

export function createOrigins({ server, issuers, pinned, person }: OriginsOptions): Origins {
  const named = issuers && issuers.length > 0 ? issuers.map(plainIssuer) : undefined;
  /** The issuer of a sign-in that is under way. */
  let candidate: string | undefined;

  async function trusted(): Promise<ReadonlySet<string>> {
    const pin = named ? undefined : await pinned?.();
    const all = [...(named ?? []), pin, candidate].flatMap((issuer) => (issuer ? [originOf(issuer)] : []));
    return new Set([server.origin, ...all]);
  }

  async function admit(issuer: string): Promise<void> {
    const plain = plainIssuer(issuer);
    candidate = undefined;
    if (named) {
      if (!named.includes(plain)) throw untrustedOrigin(plain, `the configuration names ${named.join(', ')}`);
      return;
    }
    const pin = await pinned?.();
    if (pin !== undefined ? plainIssuer(pin) === plain : originOf(plain) === server.origin) return;
    if (!person) {
      throw untrustedOrigin(plain, pin === undefined ? 'the configuration names no issuer' : `we signed in at ${pin}`);
    }
    candidate = plain;
  }

  const guarded: FetchLike = async (input, init = {}) => {
    const url = new URL(asText(input));
    const method = (init.method ?? 'GET').toUpperCase();
    const known = (await trusted()).has(url.origin);
    // During a sign-in the metadata of a new issuer is read; such a request carries none of our credentials.
    if (!known && (method !== 'GET' || !person || named))
      throw untrustedOrigin(url.origin, 'it is not asked for anything');
    const near = known || (isLoopback(server.hostname) && isLoopback(url.hostname));
    const rules: OutboundRules = { allow: near ? [hostOf(url)] : [], insecure: false };
    const { body } = init;
    const answer = await requestOut(url.href, rules, {
      method,
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(body !== undefined && body !== null && { body: asText(body) }),
      timeoutMs: TIMEOUT_MS,
      limit: ANSWER_LIMIT,
    });
    const { status, headers, text } = answer;
    if (status >= 300 && status < 400) throw new Fault('upstream_unavailable', `${url.origin} sends us elsewhere`);
    return new Response(status === 204 || status === 304 ? null : text, { status, headers });
  };

  return {
    admit,
    fetch: guarded,
    async requireKnown(address) {
      if (!(await trusted()).has(address.origin)) throw untrustedOrigin(address.origin, 'people are not sent there');
    },
  };
}

function untrustedOrigin(where: string, why: string): Fault {
  const what = `${where} gets no credentials of ours: ${why}`;
  return new Fault('permission_denied', `${what}; add it to issuers of this server if it is its authorization server`);
}

/** With and without a slash at its end it is the same issuer. */
function plainIssuer(issuer: string): string {
  return issuer.replace(/\/$/, '');
}

function originOf(issuer: string): string {
  return URL.canParse(issuer) ? new URL(issuer).origin : 'null';
}

function hostOf({ hostname, port, protocol }: URL): string {
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  return `${host}:${port || (protocol === 'https:' ? '443' : '80')}`;
}

/** The metadata address in a challenge, where it is at the server's own origin. */
export function ownMetadata(challenge: string | undefined, server: URL): URL | undefined {
  const said = /\bresource_metadata="([^"]*)"/.exec(challenge ?? '')?.[1];
  const url = said !== undefined && URL.canParse(said) ? new URL(said) : undefined;
  return url?.origin === server.origin ? url : undefined;
}
