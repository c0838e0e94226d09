/** The health of what this process itself keeps: its log, and the key that signs receipts. */
import type { PartHealth } from '../../console/services.ts';
import { asFault } from '../../model/faults.ts';
import type { Store } from '../../ports/index.ts';
import type { Keyring } from '../../receipt/seal/keys.ts';

export function ownHealth(
  store: Pick<Store, 'trouble'>,
  keyring: Pick<Keyring, 'signer' | 'jwks'>,
): readonly PartHealth[] {
  const trouble = store.trouble();
  return [
    { kind: 'store', name: 'log', state: trouble === undefined ? 'ready' : 'unavailable', detail: trouble ?? null },
    { kind: 'signing key', ...keyHealth(keyring) },
  ];
}

/** A receipt that is signed now could be verified with the keys that are published now. */
function keyHealth(keyring: Pick<Keyring, 'signer' | 'jwks'>): Omit<PartHealth, 'kind'> {
  const unavailable = (name: string, detail: string) => ({ name, state: 'unavailable', detail });
  try {
    const { keyId } = keyring.signer();
    const published = keyring.jwks().keys.some(({ kid }) => kid === keyId);
    return published
      ? { name: keyId, state: 'ready', detail: null }
      : unavailable(keyId, 'it is not among the published keys, so nobody could verify a receipt');
  } catch (thrown) {
    return unavailable('none', asFault(thrown).message);
  }
}
