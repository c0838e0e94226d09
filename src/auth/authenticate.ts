/**
 * Who is there? One answer or a fault: a token that is nobody's, expired, revoked or unreadable is never someone by
 * default. Tokens are compared and forgotten; none is ever part of a message.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Actor } from '../model/actions.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { Authenticate, Clock } from '../ports.ts';
import { isApiKey, keyIdOf, openApiKeys } from './api-keys.ts';
import type { FailedLogins } from './failed-logins.ts';
import { createOAuthVerifier, type OAuthOptions } from './oauth.ts';

export interface AuthenticatorOptions {
  readonly clock: Clock;
  /** The token printed at start, for whoever may read this process's output. Good until the process ends. */
  readonly localToken?: string;
  /** Who holds that token. */
  readonly localActor?: Actor;
  /** API keys are looked up in the house that lives here. */
  readonly dataDir?: string;
  readonly oauth?: OAuthOptions;
  /** Failures are answered late and written down. Absent: they are only refused. */
  readonly failures?: Pick<FailedLogins, 'slow'>;
}

/**
 * Everything, and yet no person: the token stands in files and environments of programs, so what it proposes somebody else approves.
 */
const LOCAL: Actor = { id: 'local', kind: 'service', scopes: ['*'] };

export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  const { clock, localToken, localActor = LOCAL, dataDir, oauth, failures } = options;
  const local = localToken === undefined ? undefined : Buffer.from(localToken);
  const keys = dataDir === undefined ? undefined : openApiKeys(dataDir, clock);
  const verify = oauth && createOAuthVerifier(oauth, clock);

  /** A promise only where there is something to wait for. */
  function find(bearer: string): Actor | undefined | Promise<Actor | undefined> {
    if (local && isSame(Buffer.from(bearer), local)) return localActor;
    if (isApiKey(bearer)) return keys?.actor(bearer);
    return LOOKS_LIKE_JWT.test(bearer) ? verify?.(bearer) : undefined;
  }

  return async (bearer, at = {}) => {
    if (bearer === undefined || bearer === '') throw new Fault('unauthenticated', 'a bearer token is needed');
    try {
      return await recognise(bearer, at.door);
    } catch (thrown) {
      if (failures && at.address !== undefined && asFault(thrown).kind === 'unauthenticated') {
        await failures.slow({ door: at.door ?? 'unknown', address: at.address, key_id: keyIdOf(bearer) });
      }
      throw thrown;
    }
  };

  async function recognise(bearer: string, door: string | undefined): Promise<Actor> {
    if (bearer.length > LONGEST) throw new Fault('unauthenticated', 'the token is not valid');
    let actor: Actor | undefined;
    try {
      const found = find(bearer);
      actor = found instanceof Promise ? await found : found;
    } catch (thrown) {
      const fault = asFault(thrown);
      // Whatever broke while we looked, nobody was recognised.
      throw fault.kind === 'internal'
        ? new Fault('unavailable', 'tokens cannot be checked now', { cause: thrown })
        : fault;
    }
    // The system actor sees everything; no token speaks for it.
    if (!actor || actor.kind === 'system') throw new Fault('unauthenticated', 'the token is not valid');
    // A key for another door says nothing here, not even that it is one.
    if (actor.doors && door !== undefined && !actor.doors.includes(door)) {
      throw new Fault('unauthenticated', 'the token is not valid');
    }
    return actor;
  }
}

const LOOKS_LIKE_JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;
const LONGEST = 16 * 1024;

/** Takes as long for one that is nearly right as for one that is not; how long the right one is, is no secret. */
function isSame(given: Buffer, right: Buffer): boolean {
  return given.length === right.length && timingSafeEqual(given, right);
}
