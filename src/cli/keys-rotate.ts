/** `tollbridge keys rotate`: a new key for receipts. What the old one signed can be checked for good. */
import { join } from 'node:path';
import { systemClock } from '../core/clock.ts';
import { openKeyring } from '../receipt/keys.ts';
import { type CommonOptions, configFrom, requireUsable } from './context.ts';

export async function rotateKey(options: CommonOptions & { readonly json?: boolean }): Promise<void> {
  const { dataDir } = await configFrom(options);
  await requireUsable(dataDir);
  const keyring = await openKeyring({ dir: join(dataDir, 'keys'), now: () => systemClock.now() });
  const retired = keyring.signer().keyId;
  await keyring.rotate();
  const current = keyring.signer().keyId;
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ retired, current, keys: keyring.jwks().keys })}\n`
      : `Receipts are signed with ${current} from now on.\n${retired} is retired; what it signed can still be checked.\n`,
  );
}
