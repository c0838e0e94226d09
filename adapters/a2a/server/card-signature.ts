/**
 * Signatures of a card. Readers agree on JWS over RFC 8785, but not on which members are signed: the SDKs decode the card first
 * and drop what is empty or unknown to them, other programs take the JSON as it was sent. So a card is signed once for each
 * reading, with one key; a reader needs one signature that holds. Sent and verified bytes are the same until the card changes.
 */
import { type AgentCard, canonicalizeAgentCard } from '@a2a-js/sdk';
import { canonicalJson, type Deps, type JsonObject } from '../../../src/index.ts';
import { legacyText } from './card-0.3.ts';

export interface CardSigner {
  readonly sign: NonNullable<Deps['sign']>;
  /** Where the public keys are. */
  readonly jku: string;
}

export function signed(card: JsonObject, signer: CardSigner | undefined): JsonObject {
  const { signatures: _before, ...rest } = card;
  if (!signer) return rest;
  // The SDK's type has the members of its decoded form; it decodes the JSON form itself.
  const decoded = canonicalizeAgentCard(rest as unknown as AgentCard);
  const texts = new Set([decoded, ...('url' in rest ? [legacyText(rest)] : []), canonicalJson(rest)]);
  return { ...rest, signatures: [...texts].map((text) => jws(text, signer)) };
}

/** A detached JWS. */
function jws(text: string, { sign, jku }: CardSigner): JsonObject {
  const payload = base64url(text);
  // The header is signed and names the key, so the key must be known first; after a rotation in between it is tried again.
  for (let kid = sign(payload).key_id; ; ) {
    const header = base64url(JSON.stringify({ alg: 'EdDSA', typ: 'JOSE', kid, jku }));
    const made = sign(`${header}.${payload}`);
    if (made.key_id === kid) {
      const signature = Buffer.from(made.signature.replace(/^base64:/, ''), 'base64').toString('base64url');
      return { protected: header, signature };
    }
    kid = made.key_id;
  }
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
