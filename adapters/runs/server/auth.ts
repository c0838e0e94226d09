/**
 * Authenticates `Bearer <key_id>:<secret>`, the raw pair. The two halves of a Tollbridge key are joined again; for any other
 * token the key id names its holder. An unknown name and a wrong secret get the same refusal.
 */
import type { IncomingMessage } from 'node:http';
import { type Actor, type Authenticate, type Fault, isObject, type LoginSource } from '../../../src/index.ts';
import { addressOf } from '../../../src/transport/http/bearer.ts';
import { isFault, RunsRefusal } from './refusal.ts';

const KEY_ID = /^tbk_[0-9a-f]{16}$/;
const PAIR = /^bearer +([A-Za-z0-9._@-]{1,200}):([A-Za-z0-9._~+/=-]+)$/i;

export async function admit(request: IncomingMessage, authenticate: Authenticate): Promise<Actor> {
  const headers = request.headersDistinct.authorization ?? [];
  if (headers.length === 0) throw new RunsRefusal('AUTH_HEADER_MISSING');
  const [, keyId, secret] = (headers.length === 1 && PAIR.exec(headers[0]!.trim())) || [];
  if (!keyId || !secret) throw new RunsRefusal('AUTH_HEADER_MALFORMED');
  const at = addressOf(request);
  const actor = KEY_ID.test(keyId)
    ? await holder(`${keyId}_${secret}`, authenticate, at)
    : await named(keyId, secret, authenticate, at);
  if (!actor) throw new RunsRefusal('AUTH_KEY_INVALID');
  return { ...actor, door: 'runs' };
}

/** The key id only repeats the holder's name and proves nothing. For a principal of an OAuth issuer it is the subject alone. */
async function named(
  keyId: string,
  secret: string,
  authenticate: Authenticate,
  at: LoginSource,
): Promise<Actor | undefined> {
  const actor = await holder(secret, authenticate, at);
  return actor?.id === keyId || actor?.id.endsWith(`#${keyId}`) ? actor : undefined;
}

async function holder(token: string, authenticate: Authenticate, at: LoginSource): Promise<Actor | undefined> {
  try {
    return await authenticate(token, at);
  } catch (thrown) {
    if (!isFault(thrown, 'unauthenticated')) throw thrown;
    const { details } = thrown as Fault;
    if (isObject(details) && details.reason === 'revoked') throw new RunsRefusal('AUTH_KEY_REVOKED');
    return undefined;
  }
}
