/** A detached JWS (RFC 7515, appendix F) by the gateway's own key, as A2A signs its cards. */
import type { Deps } from '../../ports/index.ts';

export function detachedJws(text: string, sign: NonNullable<Deps['sign']>, header: object = {}) {
  const payload = base64url(text);
  // The header is signed and names the key, so the key must be known first; after a rotation in between it is tried again.
  for (let kid = sign(payload).key_id; ; ) {
    const head = base64url(JSON.stringify({ alg: 'EdDSA', typ: 'JOSE', kid, ...header }));
    const made = sign(`${head}.${payload}`);
    if (made.key_id === kid) {
      const signature = Buffer.from(made.signature.replace(/^base64:/, ''), 'base64').toString('base64url');
      return { protected: head, signature };
    }
    kid = made.key_id;
  }
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
