/** What a child is given that a command stands in front of: everything but our variables and those our vaults read. */
import type { VaultPlace } from '../auth/vaults.ts';
import { inheritedEnvironment } from '../wire/environment.ts';

export function environmentInFront(vaults: readonly VaultPlace[]): Record<string, string> {
  return inheritedEnvironment({
    prefixes: vaults.flatMap((vault) => (vault.provider === 'env' ? [vault.prefix] : [])),
    names: vaults.flatMap((vault) =>
      vault.provider === 'file' && 'passphraseEnv' in vault.key ? [vault.key.passphraseEnv] : [],
    ),
  });
}
