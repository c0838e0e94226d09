/**
 * The proof that a request comes over the internal link: a token for one request to one replica, good for a few seconds and once. It
 * carries what only the first replica saw, the caller's address and the id of the request, and no authority of its own: the caller's
 * credentials are in the request, and the holder checks them itself.
 */
import { createHash, createSecretKey, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { jwtVerify, SignJWT } from 'jose';
import { Fault } from '../model/faults.ts';

/** Carries the token. A port that clients reach ignores it, and never passes it on. */
export const HOP_HEADER = 'tollbridge-hop';

export interface Hop {
  readonly from: string;
  readonly requestId: string;
  /** Of the caller; absent where the system did not say. */
  readonly address?: string;
}

export interface HopTokens {
  sign(hop: Hop, to: string, request: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): Promise<string>;
  /** Throws for every token that is not for this request at this replica, now, for the first time. */
  verify(token: string | undefined, request: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): Promise<Hop>;
}

export interface HopTokensOptions {
  /** This replica. */
  readonly id: string;
  /** Shared by the replicas of one installation. */
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** As long as a caller waits for a replica that does not answer. */
export const HOP_LIFETIME_S = 5;
/** Clocks of two machines may differ by this much. */
const TOLERANCE_S = 5;
const MOST_USED = 100_000;
const TYPE = 'tollbridge-hop+jwt';

export function createHopTokens({ id, secret, now }: HopTokensOptions): HopTokens {
  const key = createSecretKey(createHash('sha256').update(`internal link of replicas\n${secret}`).digest());
  /** Ids of tokens that were used, each with the time after which it is refused for its age. */
  const used = new Map<string, number>();

  function spend(tokenId: string, until: number): void {
    for (const [old, end] of used) {
      if (end > now()) break;
      used.delete(old);
    }
    if (used.has(tokenId)) throw refused('the token was used before');
    if (used.size >= MOST_USED) throw new Fault('unavailable', 'too many requests come over the internal link');
    used.set(tokenId, until);
  }

  return {
    async sign({ from, requestId, address }, to, request) {
      const seconds = Math.floor(now() / 1000);
      return await new SignJWT({ rid: requestId, req: digestOf(request), ...(address && { ip: address }) })
        .setProtectedHeader({ alg: 'HS256', typ: TYPE })
        .setIssuer(from)
        .setAudience(to)
        .setJti(randomUUID())
        .setIssuedAt(seconds)
        .setExpirationTime(seconds + HOP_LIFETIME_S)
        .sign(key);
    },
    async verify(token, request) {
      if (token === undefined) throw refused('there is no token');
      const { payload } = await jwtVerify(token, key, {
        algorithms: ['HS256'],
        typ: TYPE,
        audience: id,
        clockTolerance: TOLERANCE_S,
        currentDate: new Date(now()),
        maxTokenAge: HOP_LIFETIME_S,
        requiredClaims: ['iss', 'jti', 'exp', 'iat', 'rid', 'req'],
      }).catch(() => {
        // The library's words may repeat parts of the token.
        throw refused('the token is not valid here and now');
      });
      const { iss = '', jti = '', exp = 0, rid, req, ip } = payload;
      if (iss === id) throw refused('the request comes from this replica');
      if (req !== digestOf(request)) throw refused('the token is for another request');
      spend(jti, (exp + TOLERANCE_S) * 1000);
      return { from: iss, requestId: String(rid), ...(typeof ip === 'string' && { address: ip }) };
    },
  };
}

/** Method, address and credentials: with another caller's credentials the token is worth nothing. */
function digestOf({ method = '', url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): string {
  const { authorization = '', cookie = '' } = headers;
  const key = headers['x-api-key'] ?? '';
  const parts = [method, url, authorization, cookie, String(key)];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

function refused(why: string): Fault {
  return new Fault('unauthenticated', `a request over the internal link was refused: ${why}`);
}
