/**
 * Refuses to listen off loopback when every API key has expired: naming the expired keys explains more than reporting
 * none.
 */
import { openApiKeys } from '../../../auth/api-keys.ts';
import { systemClock } from '../../../core/clock.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { isLoopback } from '../../../transport/http/origin.ts';
import { withInstallation } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';

export async function refuseExpiredKeys(config: Config): Promise<void> {
  const { host, oauth } = config;
  if (isLoopback(host) || oauth) return;
  const keys = await withInstallation(config, ({ files }) => openApiKeys(files, systemClock).list());
  const expired = keys.filter(({ state }) => state === 'expired');
  if (expired.length === 0 || keys.some(({ state }) => state === 'active')) return;
  const which = expired.map(({ id, name, expires_at }) => `${id} (${name}) at ${expires_at}`).join(', ');
  throw trouble(
    'unauthenticated',
    `${host} can be reached by others and every API key has expired: ${which}`,
    'make a new one with "tollbridge keys create NAME --scope ... --expires 30d", or listen on 127.0.0.1',
  );
}
