/** The environment of a child that a command wraps: everything but our variables and those our vaults read. */
import type { VaultSource } from '../auth/vaults.ts';
import { inheritedEnvironment } from '../transport/process/environment.ts';

export function environmentInFront(vaults: readonly VaultSource[]): Record<string, string> {
  return inheritedEnvironment({
    prefixes: vaults.flatMap((vault) => (vault.provider === 'env' ? [vault.prefix] : [])),
    names: vaults.flatMap((vault) =>
      vault.provider === 'file' && 'passphraseEnv' in vault.key ? [vault.key.passphraseEnv] : [],
    ),
  });
}
