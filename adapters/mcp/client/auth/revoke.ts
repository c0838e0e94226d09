/** Asks the authorization server that issued tokens to revoke them (RFC 7009), so that a copy of them is worth nothing either. */
import { discoverAuthorizationServerMetadata } from '@modelcontextprotocol/client';
import { own } from '../../../../src/index.ts';
import { createOrigins } from './origins.ts';
import type { KeptSignIn } from './sign-in.ts';

/** False where that cannot be done: the tokens then stay valid until they expire. */
export async function revoke(
  server: URL,
  { tokens, clients, issuer: signedInAt }: KeptSignIn,
  clientId?: string,
): Promise<boolean> {
  const issuer = tokens?.issuer ?? signedInAt;
  if (!tokens || !issuer) return false;
  const origins = createOrigins({ server, pinned: async () => issuer, person: false });
  const metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn: origins.fetch });
  const { revocation_endpoint: endpoint } = (metadata ?? {}) as { revocation_endpoint?: unknown };
  const client = clientId ?? own(clients ?? {}, issuer)?.client_id;
  if (typeof endpoint !== 'string' || client === undefined) return false;
  const held = [
    ['refresh_token', tokens.refresh_token],
    ['access_token', tokens.access_token],
  ] as const;
  let all = true;
  for (const [kind, token] of held) {
    if (token === undefined) continue;
    const form = new URLSearchParams({ token, token_type_hint: kind, client_id: client });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const { ok } = await origins.fetch(endpoint, { method: 'POST', headers, body: form.toString() });
    all &&= ok;
  }
  return all;
}
