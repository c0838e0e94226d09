/**
 * `tollbridge mcp logout <server>`: ends a sign-in. The authorization server is asked to revoke the tokens, and they are removed from the
 * vault; a gateway that runs notices within seconds.
 */
import { keepingIn, revoke } from '../../../../adapters/mcp/index.ts';
import { createSecrets, createSecretWriter, fileVault } from '../../../auth/vaults.ts';
import { systemClock } from '../../../core/clock.ts';
import { createRedactor } from '../../../core/redaction/redact.ts';
import { Fault } from '../../../model/faults.ts';
import { own } from '../../../model/values/own.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { configFrom } from '../../context.ts';
import { terminalText } from '../../output/terminal-text.ts';
import { entryOf, upstreamOf, type WhoseSignIn } from './login.ts';

export async function logout(server: string, options: WhoseSignIn): Promise<void> {
  const { vaults, tools } = await configFrom(options);
  const { url, sign_in } = upstreamOf(server, own(tools, server)?.mcp);
  const entry = entryOf(server, sign_in, options);
  const redactor = createRedactor();
  const locations = { vaults, env: process.env, learn: redactor.learn };
  const writer = createSecretWriter({ ...locations, clock: systemClock });
  const log = createLogger(redactor);
  const keeping = keepingIn(entry, { secret: createSecrets(locations), ...writer, log });
  const found = await keeping.read();
  if (!found?.tokens)
    throw new Fault('not_found', `there is no sign-in at ${server}${options.as ? ` of ${options.as}` : ''}`);
  const revoked = await keeping.alone(async () => {
    const { vault } = fileVault(vaults, process.env, undefined);
    await vault.remove(entry);
    return await revoke(new URL(url as string), found, sign_in.client_id).catch(() => false);
  });
  const rest = revoked
    ? 'Its authorization server has revoked the tokens.'
    : 'Its authorization server did not revoke the tokens: they stay valid until they expire.';
  process.stdout.write(terminalText(`Signed out at ${server}. ${rest}\n`));
}
