import { createLocalJWKSet, flattenedVerify } from 'jose';
import { expect, test } from 'vitest';
import { canonicalJson } from '../src/receipt/canonical-json.ts';
import { openDoor } from './support/door.ts';

test('the A2A card inside ours is signed as A2A signs cards, with a key anyone can fetch', async () => {
  const door = await openDoor();
  const { body: card } = await door.call('GET', '/v1/agent-card');
  const { signatures, ...nested } = card.a2a_card;
  expect(signatures).toHaveLength(1);
  const [{ protected: header, signature }] = signatures;
  const said = JSON.parse(Buffer.from(header, 'base64url').toString());
  expect(said).toEqual({
    alg: 'EdDSA',
    typ: 'JOSE',
    kid: expect.any(String),
    jku: `${door.url}/.well-known/harn-receipt-keys.json`,
  });
  const keys = createLocalJWKSet((await door.call('GET', new URL(said.jku).pathname)).body);
  const verify = (document: object) =>
    flattenedVerify(
      { protected: header, signature, payload: Buffer.from(canonicalJson(document as never)).toString('base64url') },
      keys,
    );
  const { protectedHeader } = await verify(nested);
  expect(protectedHeader?.kid).toBe(card.signature.key_id);
  await expect(verify({ ...nested, url: 'https://evil.example' })).rejects.toThrow('signature verification failed');
});
