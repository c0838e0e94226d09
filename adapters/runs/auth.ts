/**
 * Who is there: `Bearer <key_id>:<secret>`, the raw pair. The two halves of a key of this house are joined again; any other
 * token goes by the name of its holder. An unknown name and a wrong secret are the same no.
 */
import type { IncomingMessage } from 'node:http';
import type { Actor, Authenticate, Fault } from '../../src/index.ts';
import { isFault, RunsRefusal } from './refusal.ts';
import { isObject } from './sensitive.ts';

const PAIR = /^bearer +([A-Za-z0-9._@-]{1,200}):([A-Za-z0-9._~+/=-]+)$/i;

export async function admit(request: IncomingMessage, authenticate: Authenticate): Promise<Actor> {
  const given = request.headersDistinct.authorization ?? [];
  if (given.length === 0) throw new RunsRefusal('AUTH_HEADER_MISSING');
  const [, keyId, secret] = (given.length === 1 && PAIR.exec(given[0]!.trim())) || [];
  if (!keyId || !secret) throw new RunsRefusal('AUTH_HEADER_MALFORMED');
  const actor = (await holder(`${keyId}_${secret}`, authenticate)) ?? (await named(keyId, secret, authenticate));
  if (!actor) throw new RunsRefusal('AUTH_KEY_INVALID');
  return { ...actor, door: 'runs' };
}

async function named(keyId: string, secret: string, authenticate: Authenticate): Promise<Actor | undefined> {
  const actor = await holder(secret, authenticate);
  return actor?.id === keyId ? actor : undefined;
}

async function holder(token: string, authenticate: Authenticate): Promise<Actor | undefined> {
  try {
    return await authenticate(token);
  } catch (thrown) {
    if (!isFault(thrown, 'unauthenticated')) throw thrown;
    const { details } = thrown as Fault;
    if (isObject(details) && details.reason === 'revoked') throw new RunsRefusal('AUTH_KEY_REVOKED');
    return undefined;
  }
}
