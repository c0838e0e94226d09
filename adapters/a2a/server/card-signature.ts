/**
 * Signatures of a card. Readers agree on JWS over RFC 8785, but not on which members are signed: the SDKs decode the card first
 * and drop what is empty or unknown to them, other programs take the JSON as it was sent. So a card is signed once for each
 * reading, with one key; a reader needs one signature that holds. Sent and verified bytes are the same until the card changes.
 */
import { type AgentCard, canonicalizeAgentCard } from '@a2a-js/sdk';
import { canonicalJson, type Deps, type JsonObject } from '../../../src/index.ts';
import { detachedJws } from '../../../src/transport/http/detached-jws.ts';
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
  return { ...rest, signatures: [...texts].map((text) => detachedJws(text, signer.sign, { jku: signer.jku })) };
}
