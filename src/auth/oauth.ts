/**
 * Access tokens of an OAuth2 authorization server: signed by a key it publishes, with us as audience, not expired. A
 * token for another audience is refused however well it is signed, and so is every algorithm that is not on our list.
 */

import { hash } from 'node:crypto';
import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import { LruMap } from '../model/values/lru-map.ts';
import type { Clock } from '../ports/index.ts';
import { clientOf, subjectOf } from './principals.ts';

export interface OAuthOptions {
  readonly issuer: string;
  /** The audience tokens must have: us. */
  readonly audience: string | readonly string[];
  /** URL of the issuer's key set, or the keys themselves. */
  readonly jwks: string | { readonly keys: readonly object[] };
  /** Claims that name the tenant and the workspaces; absent means the token is not bound to any. */
  readonly tenantClaim?: string;
  readonly workspacesClaim?: string;
  /** Scopes every token must carry. */
  readonly requiredScopes?: readonly string[];
  readonly clockToleranceSeconds?: number;
}

export const ALGORITHMS: readonly string[] = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

export type VerifyToken = (token: string) => Promise<Actor>;

interface Kept {
  readonly actor: Actor;
  readonly since: number;
  readonly until: number;
}

/**
 * A valid token is not verified again for a minute, and never past its expiry: a signature takes longer to check than
 * most requests take to answer. The issuer's keys are cached for longer than this anyway.
 */
const KEPT_MS = 60_000;
const MOST_KEPT = 10_000;
const TOLERANCE_S = 5;

/** The issuer's keys, with the library that uses them; both are loaded at the first use. */
export function issuerKeys({ jwks }: Pick<OAuthOptions, 'jwks'>) {
  let ready: Promise<{ readonly jose: typeof import('jose'); readonly keys: JWTVerifyGetKey }> | undefined;
  return () => {
    ready ??= import('jose').then((jose) => ({
      jose,
      keys:
        typeof jwks === 'string'
          ? jose.createRemoteJWKSet(new URL(jwks), { timeoutDuration: 5000 })
          : jose.createLocalJWKSet({ keys: [...jwks.keys] as never }),
    }));
    return ready;
  };
}

export function createOAuthVerifier(options: OAuthOptions, clock: Clock): VerifyToken {
  const load = issuerKeys(options);

  /** By the hash of the token: the credential itself is not kept. */
  const kept = new LruMap<string, Kept>(MOST_KEPT);

  function keep(name: string, actor: Actor, now: number, { exp = 0 }: JWTPayload): void {
    const ends = (exp + (options.clockToleranceSeconds ?? TOLERANCE_S)) * 1000;
    kept.set(name, { actor, since: now, until: Math.min(now + KEPT_MS, ends) });
  }

  return async (token) => {
    const at = clock.now();
    const now = Date.parse(at);
    const name = hash('sha256', token);
    const known = kept.get(name);
    // A clock that was set back may be before the token's first use.
    if (known && known.since <= now && now < known.until) return known.actor;
    kept.delete(name);
    const { jose, keys } = await load();
    let claims: JWTPayload;
    try {
      const verified = await jose.jwtVerify(token, keys, {
        issuer: options.issuer,
        audience: [options.audience].flat() as string[],
        algorithms: [...ALGORITHMS],
        requiredClaims: ['exp'],
        clockTolerance: options.clockToleranceSeconds ?? TOLERANCE_S,
        currentDate: new Date(at),
      });
      claims = verified.payload;
    } catch (cause) {
      if (isOutage(cause)) throw new Fault('unavailable', 'the keys of the token issuer cannot be fetched', { cause });
      throw new Fault('unauthenticated', reasonOf(cause), { cause });
    }
    const actor = actorOf(claims, options);
    keep(name, actor, now, claims);
    return actor;
  };
}

function actorOf(claims: JWTPayload, options: OAuthOptions): Actor {
  const who = principalIn(claims, options.issuer);
  if (!who) throw new Fault('unauthenticated', 'the token names no one');
  const scopes = words(claims.scope ?? claims.scp);
  const missing = (options.requiredScopes ?? []).filter((scope) => !scopes.includes(scope));
  if (missing.length > 0) {
    // Lets doors tell the caller which scopes to request.
    const details = { required_scopes: options.requiredScopes as readonly string[] };
    throw new Fault('unauthenticated', `the token lacks the scope ${missing.join(' ')}`, { details });
  }
  return { ...who, scopes, ...limitsIn(claims, options) };
}

/** The tenant and the workspaces that a token is bound to, where the configuration names claims for them. */
export function limitsIn(
  claims: JWTPayload,
  { tenantClaim, workspacesClaim }: Pick<OAuthOptions, 'tenantClaim' | 'workspacesClaim'>,
): Pick<Actor, 'tenant_id' | 'workspaces'> {
  const tenant = tenantClaim ? text(claims[tenantClaim]) : undefined;
  if (tenantClaim && !tenant) throw new Fault('unauthenticated', 'the token names no tenant');
  const workspaces = workspacesClaim ? words(claims[workspacesClaim]) : undefined;
  return { ...(tenant && { tenant_id: tenant }), ...(workspaces && { workspaces }) };
}

/**
 * Issuer and subject, never the client alone: all users of one app would be one principal. A token without a subject of
 * its own was issued to a program, and stands for no person.
 */
function principalIn(claims: JWTPayload, issuer: string): Pick<Actor, 'id' | 'kind'> | undefined {
  const client = text(claims.client_id) ?? text(claims.azp);
  const subject = text(claims.sub);
  if (subject && subject !== client) return { id: subjectOf(issuer, subject), kind: 'person' };
  return client ? { id: clientOf(issuer, client), kind: 'service' } : undefined;
}

/** An unreachable issuer is not the caller's mistake; the token is still refused. */
export function isOutage(cause: unknown): boolean {
  const code = (cause as { code?: string }).code ?? '';
  return code === 'ERR_JWKS_TIMEOUT' || code === 'ERR_JOSE_GENERIC' || cause instanceof TypeError;
}

/** The reason, without any content of the token. */
export function reasonOf(cause: unknown): string {
  const { code, claim } = cause as { code?: string; claim?: string };
  if (code === 'ERR_JWT_EXPIRED') return 'the token has expired';
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED') return `the token's ${claim ?? 'claim'} is not acceptable here`;
  if (code === 'ERR_JWKS_NO_MATCHING_KEY') return 'the token is signed with an unknown key';
  if (code === 'ERR_JOSE_ALG_NOT_ALLOWED') return 'the token is not signed with an accepted algorithm';
  return 'the token is not valid';
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function words(value: unknown): string[] {
  if (Array.isArray(value)) return value.filter((word): word is string => typeof word === 'string');
  return typeof value === 'string' ? value.split(' ').filter((word) => word !== '') : [];
}
