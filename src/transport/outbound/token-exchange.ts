/**
 * Token exchange (RFC 8693): an authorization server issues a token for an outside server in exchange for the access token with which a
 * caller authenticated here. The caller's own token goes to the configured token endpoint and nowhere else.
 */
import { createHash } from 'node:crypto';
import { type Actor, INCOMING_TOKEN } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import { NonEmpty } from '../../model/schema.ts';
import { type Static, Type } from '../../model/type.ts';
import { isObject } from '../../model/values/is-object.ts';
import { LruMap } from '../../model/values/lru-map.ts';
import type { Deps } from '../../ports/index.ts';
import { isLoopback } from '../http/origin.ts';
import { withoutCredentials } from './caller-credentials.ts';
import { type OutboundRules, requestOut } from './public-fetch.ts';

const Optional = Type.Optional;

export const Exchange = Type.Object(
  {
    token_endpoint: Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' }),
    client_id: Optional(NonEmpty),
    /** The name of a secret. */
    client_secret: Optional(NonEmpty),
    audience: Optional(NonEmpty),
    resource: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
    scope: Optional(NonEmpty),
  },
  {
    additionalProperties: false,
    description:
      "Each caller's own access token is exchanged (RFC 8693) for one for this server; the audience is the server's address unless it is named here.",
  },
);
export type ExchangeConfig = Static<typeof Exchange>;

export interface TokenExchange {
  /** The token for the outside server. */
  token(incoming: string): Promise<string>;
  /** The server did not accept the token: true when there is another one. */
  again(incoming: string, refused: string | undefined): Promise<boolean>;
}

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const JWT = 'urn:ietf:params:oauth:token-type:jwt';
const TIMEOUT_MS = 15_000;
const ANSWER_LIMIT = 1024 * 1024;
const MOST_KEPT = 10_000;
/** A token is not used in its last moments: the clock of the server may be ahead. */
const MARGIN_MS = 30_000;
/** For a token whose lifetime the authorization server does not say. */
const UNSAID_MS = 60_000;

interface Kept {
  readonly token: Promise<string>;
  until: number;
}

export function createTokenExchange(
  config: ExchangeConfig,
  server: string,
  { secret, learn, clock }: Pick<Deps, 'secret' | 'learn' | 'clock'>,
): TokenExchange {
  const endpoint = new URL(config.token_endpoint);
  if (endpoint.protocol !== 'https:' && !isLoopback(endpoint.hostname)) {
    throw new Fault('invalid_request', 'tokens are exchanged over https only', { param: '/exchange/token_endpoint' });
  }
  const rules: OutboundRules = { allow: [hostOf(endpoint)], insecure: false };
  /** By the hash of the caller's token. One request serves all calls that wait for it. */
  const kept = new LruMap<string, Kept>(MOST_KEPT);
  const now = () => Date.parse(clock.now());

  async function ask(incoming: string, entry: { until: number }): Promise<string> {
    const { client_id, client_secret, audience, scope } = config;
    const resource = config.resource ?? (audience === undefined ? server : undefined);
    const form = new URLSearchParams({
      grant_type: GRANT,
      subject_token: incoming,
      subject_token_type: ACCESS_TOKEN,
      requested_token_type: ACCESS_TOKEN,
      ...(audience !== undefined && { audience }),
      ...(resource !== undefined && { resource }),
      ...(scope !== undefined && { scope }),
      ...(client_id !== undefined && client_secret === undefined && { client_id }),
    });
    const basic =
      client_secret && `${encodeURIComponent(client_id ?? '')}:${encodeURIComponent(await secret(client_secret))}`;
    const answer = await requestOut(endpoint.href, rules, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        ...(basic && { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }),
      },
      body: form.toString(),
      timeoutMs: TIMEOUT_MS,
      limit: ANSWER_LIMIT,
    }).catch((cause) => {
      throw new Fault('upstream_unavailable', `the authorization server ${endpoint.host} cannot be reached`, { cause });
    });
    const { token, seconds } = issued(answer, endpoint.host, incoming);
    learn?.(token);
    entry.until = now() + (seconds === undefined ? UNSAID_MS : Math.max(0, seconds * 1000 - MARGIN_MS));
    return token;
  }

  async function token(incoming: string): Promise<string> {
    const key = createHash('sha256').update(incoming).digest('base64url');
    const known = kept.get(key);
    if (known && now() < known.until) return await known.token;
    const timing = { until: Number.POSITIVE_INFINITY };
    const entry: Kept = Object.assign(timing, { token: ask(incoming, timing) });
    kept.set(key, entry);
    entry.token.catch(() => kept.get(key) === entry && kept.delete(key));
    return await entry.token;
  }

  return {
    token,
    async again(incoming, refused) {
      const key = createHash('sha256').update(incoming).digest('base64url');
      const before = await kept.get(key)?.token.catch(() => undefined);
      if (before !== undefined && before === refused) kept.delete(key);
      return (await token(incoming)) !== refused;
    },
  };
}

/** The access token that the caller authenticated with. */
export function incomingToken(server: string, actor: Actor): string {
  const token = actor[INCOMING_TOKEN]?.();
  if (token !== undefined) return token;
  throw withoutCredentials(
    `${server} is used with a token that is exchanged for the caller's own, and ${actor.id} did not authenticate with an access token`,
  );
}

/** What a token lets its caller do, whenever it was issued: two tokens that differ in anything but time are told apart. */
export function authorityOf(token: string): string {
  const hashed = (text: string) => createHash('sha256').update(text).digest('base64url');
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) as object;
    const lasting = Object.entries(claims).filter(([name]) => !TIMES.has(name));
    return hashed(JSON.stringify(lasting.toSorted(([one], [other]) => (one < other ? -1 : 1))));
  } catch {
    return hashed(token);
  }
}
const TIMES = new Set(['exp', 'iat', 'nbf', 'jti', 'auth_time']);

function issued(
  { status, text }: { readonly status: number; readonly text: string },
  host: string,
  incoming: string,
): { readonly token: string; readonly seconds: number | undefined } {
  const body = parsed(text);
  if (status >= 400 && status < 500) {
    // The description is free text, and may repeat what was sent.
    const code = typeof body.error === 'string' && /^[a-z_]{1,40}$/.test(body.error) ? `: ${body.error}` : '';
    throw withoutCredentials(`the authorization server ${host} does not exchange the caller's token${code}`);
  }
  const { access_token: token, token_type: type, issued_token_type: kind, expires_in: seconds } = body;
  const usable =
    status === 200 &&
    typeof token === 'string' &&
    /^[\x21-\x7e]+$/.test(token) &&
    typeof type === 'string' &&
    type.toLowerCase() === 'bearer' &&
    (kind === undefined || kind === ACCESS_TOKEN || kind === JWT);
  if (!usable)
    throw new Fault('upstream_unavailable', `the authorization server ${host} answered without a usable token`);
  // A token for this gateway is worth something here: no other server may have it.
  if (token === incoming) throw withoutCredentials(`the authorization server ${host} returned the caller's own token`);
  return { token: token as string, seconds: typeof seconds === 'number' && seconds >= 0 ? seconds : undefined };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function hostOf({ hostname, port, protocol }: URL): string {
  const host = hostname.toLowerCase().replace(/^\[|\]$/g, '');
  return `${host}:${port || (protocol === 'https:' ? '443' : '80')}`;
}
