/**
 * Sign-in to the console at an OpenID provider: authorization code with PKCE. `nonce` and the PKCE verifier are made from `state` with
 * a key that only this gateway has, so they are in no page, and any process of the gateway can end what another began. A second
 * secret, which is in no address, ties the answer to the browser that began. A sign-in that fails any check opens no session.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { JWTPayload } from 'jose';
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/values/own.ts';
import type { Clock } from '../ports/index.ts';
import { ALGORITHMS, isOutage, issuerKeys, limitsIn, type OAuthOptions, reasonOf, words } from './oauth.ts';
import { subjectOf } from './principals.ts';

export type SignInRole = 'viewer' | 'approver' | 'admin';

export interface OidcSignInOptions {
  readonly clientId: string;
  /** Name of the client's secret; absent for a public client. */
  readonly secret?: string;
  /** Scopes to ask for, beside `openid`. */
  readonly scopes: readonly string[];
  /** The claim of the id token that names groups or roles; absent: the scopes that the provider says it granted count. */
  readonly rolesClaim?: string;
  /** The role here of each value of that claim. */
  readonly roles: Readonly<Record<string, SignInRole>>;
}

export interface ConsoleOidcDeps {
  readonly oauth: OAuthOptions & { readonly signIn: OidcSignInOptions };
  readonly clock: Clock;
  readonly secret: (name: string) => Promise<string>;
  /** With the gateway's own key: the same in each of its processes. */
  readonly mac: (text: string) => string;
}

interface OidcAnswer {
  readonly code: string;
  readonly state: string;
  /** The secret that `begin` gave to the page. */
  readonly binding: string;
  /** The issuer as the provider names itself in its answer. */
  readonly iss?: string | undefined;
}

export interface ConsoleOidc {
  /** For the button: whose sign-in it is. */
  readonly name: string;
  /** The provider's address to go to, and the secret that the page keeps until it is back. `origin`: of the page. */
  begin(origin: string): Promise<{ readonly location: string; readonly binding: string }>;
  /** The person who signed in. An answer is looked at once, whatever becomes of it. */
  end(answer: OidcAnswer, origin: string): Promise<Pick<Actor, 'id' | 'scopes' | 'tenant_id' | 'workspaces'>>;
}

const READ = ['tasks', 'sessions', 'events', 'receipts', 'artifacts', 'skills', 'quotas', 'workspaces', 'others'];
const VIEWER = READ.map((name) => `${name}:read`);
export const ROLE_SCOPES: Readonly<Record<SignInRole, readonly string[]>> = {
  viewer: VIEWER,
  approver: [...VIEWER, 'approvals:write', 'permission_rules:read', 'permission_rules:write'],
  admin: ['*'],
};
const STRONGEST: readonly SignInRole[] = ['admin', 'approver', 'viewer'];

const BEGUN_MS = 10 * 60_000;
/** Answers that were looked at, until they are too old anyway. The provider gives nothing for a code that was used. */
const MOST_USED = 10_000;
const BINDING = /^(\d{13})\.([\w-]{43})\.([\w-]{43})$/;
const TIMEOUT_MS = 10_000;
const LARGEST = 256 * 1024;

interface Begun {
  readonly nonce: string;
  readonly verifier: string;
  readonly origin: string;
}

interface Provider {
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly namesItself: boolean;
  readonly secretInBody: boolean;
}

export function createConsoleOidc({ oauth, clock, secret, mac }: ConsoleOidcDeps): ConsoleOidc {
  const { issuer, signIn } = oauth;
  if (!isSafe(issuer)) {
    throw new Fault(
      'invalid_request',
      `auth.oauth.sign_in: ${issuer} is no https address, so nobody can sign in there`,
    );
  }
  const used = new Map<string, number>();
  const keys = issuerKeys(oauth);
  let provider: Promise<Provider> | undefined;

  /** Kept once it could be read: an issuer moves its endpoints as rarely as its name. */
  async function discovered(): Promise<Provider> {
    provider ??= discover(issuer);
    try {
      return await provider;
    } catch (thrown) {
      provider = undefined;
      throw thrown;
    }
  }

  /** 32 bytes that nobody without the gateway's key can make. */
  function made(what: string, ...parts: readonly string[]): string {
    return hash('sha256', mac(JSON.stringify(['console sign-in', what, ...parts])), 'base64url');
  }

  function begunAs(state: string, origin: string): Begun {
    return { nonce: made('nonce', state, origin), verifier: made('verifier', state, origin), origin };
  }

  /** Each answer is looked at once. */
  function taken({ state, binding }: OidcAnswer, origin: string): Begun {
    const [, until = '', random = '', seal = ''] = BINDING.exec(binding) ?? [];
    const now = Date.parse(clock.now());
    const wanted = made('binding', state, origin, until, random);
    const ours = seal.length === wanted.length && timingSafeEqual(Buffer.from(seal), Buffer.from(wanted));
    if (!ours || Number(until) <= now || used.has(state)) {
      throw new Fault('unauthenticated', 'this sign-in was not begun in this browser, or too long ago: try again');
    }
    for (const [oldest, end] of used) {
      if (end > now && used.size < MOST_USED) break;
      used.delete(oldest);
    }
    used.set(state, Number(until));
    return begunAs(state, origin);
  }

  async function exchange(code: string, { verifier, origin }: Begun, at: Provider): Promise<TokenAnswer> {
    const password = signIn.secret === undefined ? undefined : await secret(signIn.secret);
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectFor(origin),
      client_id: signIn.clientId,
      code_verifier: verifier,
      ...(password !== undefined && at.secretInBody && { client_secret: password }),
    });
    const basic = password !== undefined && !at.secretInBody;
    const user = [signIn.clientId, password ?? ''].map(encodeURIComponent).join(':');
    const { status, json } = await readAnswer(at.token_endpoint, {
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        ...(basic && { authorization: `Basic ${Buffer.from(user).toString('base64')}` }),
      },
      body: body.toString(),
    });
    if (status >= 500) throw new Fault('unavailable', 'the sign-in provider failed; try again later');
    if (status !== 200 || typeof json.id_token !== 'string') {
      throw new Fault('unauthenticated', 'the sign-in provider did not accept this sign-in');
    }
    return { id_token: json.id_token, scope: json.scope };
  }

  async function claimsOf(token: string, { nonce }: Begun): Promise<JWTPayload> {
    const { jose, keys: published } = await keys();
    let claims: JWTPayload;
    try {
      const verified = await jose.jwtVerify(token, published, {
        issuer,
        audience: signIn.clientId,
        algorithms: [...ALGORITHMS],
        requiredClaims: ['exp', 'iat', 'sub', 'nonce'],
        clockTolerance: oauth.clockToleranceSeconds ?? 5,
        currentDate: new Date(clock.now()),
      });
      claims = verified.payload;
    } catch (cause) {
      if (isOutage(cause)) throw new Fault('unavailable', 'the keys of the token issuer cannot be fetched', { cause });
      throw new Fault('unauthenticated', reasonOf(cause), { cause });
    }
    if (claims.nonce !== nonce) throw new Fault('unauthenticated', 'the token is of another sign-in');
    // A token for several programs names the one it was issued to.
    const { azp } = claims;
    const several = Array.isArray(claims.aud) && claims.aud.length > 1;
    if (azp !== undefined ? azp !== signIn.clientId : several) {
      throw new Fault('unauthenticated', 'the token was issued to another program');
    }
    return claims;
  }

  return {
    name: new URL(issuer).host,
    async begin(origin) {
      const { authorization_endpoint } = await discovered();
      const [state, random] = [randomText(), randomText()];
      const until = String(Date.parse(clock.now()) + BEGUN_MS);
      const binding = [until, random, made('binding', state, origin, until, random)].join('.');
      const { nonce, verifier } = begunAs(state, origin);
      const location = new URL(authorization_endpoint);
      for (const [name, value] of Object.entries({
        response_type: 'code',
        client_id: signIn.clientId,
        redirect_uri: redirectFor(origin),
        scope: [...new Set(['openid', ...signIn.scopes])].join(' '),
        state,
        nonce,
        code_challenge: hash('sha256', verifier, 'base64url'),
        code_challenge_method: 'S256',
      })) {
        location.searchParams.set(name, value);
      }
      return { location: location.href, binding };
    },
    async end(answer, origin) {
      const mine = taken(answer, origin);
      const at = await discovered();
      // Another provider's answer, sent to us by a provider that both of us use.
      if (answer.iss === undefined ? at.namesItself : answer.iss !== issuer) {
        throw new Fault('unauthenticated', 'the answer is of another sign-in provider');
      }
      const { id_token, scope } = await exchange(answer.code, mine, at);
      const claims = await claimsOf(id_token, mine);
      const scopes = scopesOf(claims, scope);
      if (scopes.length === 0) {
        throw new Fault('permission_denied', 'this account has no role here: ask an operator of the gateway for one');
      }
      return { id: subjectOf(issuer, String(claims.sub)), scopes, ...limitsIn(claims, oauth) };
    },
  };

  /** With a claim for roles only that claim counts; a scope that the provider grants to everyone must not add to it. */
  function scopesOf(claims: JWTPayload, granted: unknown): string[] {
    const { rolesClaim, roles } = signIn;
    if (rolesClaim !== undefined) {
      const named = words(claimAt(claims, rolesClaim)).map((value) => own(roles, value));
      const role = STRONGEST.find((one) => named.includes(one));
      return role ? [...ROLE_SCOPES[role]] : [];
    }
    const scopes = words(granted ?? claims.scope ?? claims.scp);
    const missing = (oauth.requiredScopes ?? []).filter((one) => !scopes.includes(one));
    // Scopes of OpenID itself (`openid`, `profile`) allow nothing here.
    return missing.length > 0 ? [] : scopes.filter((one) => one === '*' || one.includes(':'));
  }
}

interface TokenAnswer {
  readonly id_token: string;
  readonly scope: unknown;
}

function randomText(): string {
  return randomBytes(32).toString('base64url');
}

/** Registered at the provider. */
function redirectFor(origin: string): string {
  return `${origin}/sign-in`;
}

/** A claim by its name, or by a path (`realm_access.roles`) where there is none of that name. */
function claimAt(claims: JWTPayload, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name.split('.').reduce<unknown>((value, part) => {
    const members = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
    return own(members, part);
  }, claims);
}

async function discover(issuer: string): Promise<Provider> {
  const { status, json } = await readAnswer(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, {});
  const { authorization_endpoint, token_endpoint, token_endpoint_auth_methods_supported: methods } = json;
  // A document that names another issuer is not this issuer's.
  if (status !== 200 || json.issuer !== issuer || !isSafe(authorization_endpoint) || !isSafe(token_endpoint)) {
    throw new Fault('unavailable', 'the sign-in provider does not say where to sign in (openid-configuration)');
  }
  return {
    authorization_endpoint,
    token_endpoint,
    namesItself: json.authorization_response_iss_parameter_supported === true,
    secretInBody: Array.isArray(methods) && !methods.includes('client_secret_basic'),
  };
}

/** Codes and secrets go there: over TLS, or to this machine. */
function isSafe(address: unknown): address is string {
  if (typeof address !== 'string' || !URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname));
}

async function readAnswer(
  url: string,
  init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string },
): Promise<{ readonly status: number; readonly json: Readonly<Record<string, unknown>> }> {
  try {
    const answer = await fetch(url, {
      ...init,
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await answer.text();
    const json: unknown = text.length > LARGEST ? undefined : JSON.parse(text);
    return { status: answer.status, json: typeof json === 'object' && json !== null ? { ...json } : {} };
  } catch (cause) {
    throw new Fault('unavailable', 'the sign-in provider cannot be reached; try again later', { cause });
  }
}
