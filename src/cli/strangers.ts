/** Before we listen where others are: keys that were good once explain more than that there are none. */
import { openApiKeys } from '../auth/api-keys.ts';
import type { Config } from '../config.ts';
import { systemClock } from '../core/clock.ts';
import { isLoopback } from '../wire/origin.ts';
import { trouble } from './complaint.ts';

export async function refuseExpiredKeys({ host, dataDir, oauth }: Config): Promise<void> {
  if (isLoopback(host) || oauth) return;
  const keys = await openApiKeys(dataDir, systemClock).list();
  const expired = keys.filter(({ state }) => state === 'expired');
  if (expired.length === 0 || keys.some(({ state }) => state === 'active')) return;
  const which = expired.map(({ id, name, expires_at }) => `${id} (${name}) at ${expires_at}`).join(', ');
  throw trouble(
    'unauthenticated',
    `${host} can be reached by others and every API key has expired: ${which}`,
    'make a new one with "tollbridge keys create NAME --scope ... --expires 30d", or listen on 127.0.0.1',
  );
}
