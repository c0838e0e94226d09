/**
 * From a bearer token to an actor, or a fault: an unknown, expired, revoked or unreadable token never becomes a default
 * actor. Tokens are compared and forgotten, unless a server of the configuration exchanges them: then the actor of the request carries
 * its token. None is ever part of a message.
 */
import { timingSafeEqual } from 'node:crypto';
import { type Actor, INCOMING_TOKEN } from '../model/actions.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { Authenticate, Clock, PrivateFiles } from '../ports/index.ts';
import { isApiKey, keyIdOf, openApiKeys } from './api-keys.ts';
import { type ConsoleSessions, isConsoleToken } from './console-sessions.ts';
import type { FailedLogins } from './failed-logins.ts';
import { createOAuthVerifier, type OAuthOptions } from './oauth.ts';

export interface AuthenticatorOptions {
  readonly clock: Clock;
  /** The token printed at start, for readers of this process's output. Valid until the process ends. */
  readonly localToken?: string;
  /** The actor that token speaks for. */
  readonly localActor?: Actor;
  /** The data directory with the API keys, or the files that gateways share. */
  readonly files?: string | PrivateFiles;
  readonly oauth?: OAuthOptions;
  /** Whether actors carry the access token of their request, for servers that exchange it. */
  readonly exchanges?: () => boolean;
  /** Sessions of the console, whose tokens are made of two secrets. */
  readonly sessions?: Pick<ConsoleSessions, 'actor'>;
  /** Told of each use of an API key that was accepted. */
  readonly keyUsed?: (id: string) => void;
  /** Delays and records failures. Absent: they are only refused. */
  readonly failures?: Pick<FailedLogins, 'slow'>;
}

/**
 * All scopes, but not a person: the token is in files and environments of programs, so another principal has to approve
 * the acts it proposes.
 */
const LOCAL: Actor = { id: 'local', kind: 'service', scopes: ['*'] };

export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  const { clock, localToken, localActor = LOCAL, files, oauth, exchanges, sessions, failures, keyUsed } = options;
  const local = localToken === undefined ? undefined : Buffer.from(localToken);
  const keys = files === undefined ? undefined : openApiKeys(files, clock);
  const verify = oauth && createOAuthVerifier(oauth, clock);

  /** A promise only where there is something to wait for. */
  function find(bearer: string): Actor | undefined | Promise<Actor | undefined> {
    if (local && isSame(Buffer.from(bearer), local)) return localActor;
    if (isApiKey(bearer)) return keys?.actor(bearer);
    if (isConsoleToken(bearer)) return sessions?.actor(bearer);
    return LOOKS_LIKE_JWT.test(bearer) ? verify?.(bearer).then((actor) => carrying(actor, bearer)) : undefined;
  }

  function carrying(actor: Actor, token: string): Actor {
    return exchanges?.() ? { ...actor, [INCOMING_TOKEN]: () => token } : actor;
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
      // An internal error while checking authenticates no caller.
      throw fault.kind === 'internal'
        ? new Fault('unavailable', 'tokens cannot be checked now', { cause: thrown })
        : fault;
    }
    // The system actor sees everything; no token speaks for it.
    if (!actor || actor.kind === 'system') throw new Fault('unauthenticated', 'the token is not valid');
    // A key for another door is refused as an unknown one, so that the refusal does not confirm it.
    if (actor.doors && door !== undefined && !actor.doors.includes(door)) {
      throw new Fault('unauthenticated', 'the token is not valid');
    }
    const key = keyUsed && keyIdOf(bearer);
    if (key) keyUsed(key);
    return actor;
  }
}

const LOOKS_LIKE_JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;
const LONGEST = 16 * 1024;

/** Constant time for a given length; the length of the right token is no secret. */
function isSame(sent: Buffer, right: Buffer): boolean {
  return sent.length === right.length && timingSafeEqual(sent, right);
}
