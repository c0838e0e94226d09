/** Refused logins: a gateway that others can reach needs a way to tell callers apart, and a failed login is recorded. */
import type { ApiKeys } from '../../auth/api-keys.ts';
import type { FailedLoginNote } from '../../auth/failed-logins.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { CoreRuntime } from '../assemble.ts';
import type { Config } from '../config/config.ts';

/**
 * A token that was printed on this machine proves nothing to a caller on another; such callers need credentials of
 * their own.
 */
export async function requireAuthOffLoopback({ host, oauth }: Config, keys: Pick<ApiKeys, 'list'>): Promise<void> {
  if (oauth) return;
  if ((await keys.list()).some(({ state }) => state === 'active')) return;
  throw new Fault(
    'permission_denied',
    `${host} can be reached by others and there is no way to tell who they are: make a key with "tollbridge keys create NAME --scope ...", or configure auth.oauth, or listen on 127.0.0.1`,
  );
}

export async function noteFailedLogin(log: CoreRuntime['log'], { doors, ...failed }: FailedLoginNote): Promise<void> {
  const event: EventDraft = {
    event: 'vendor.tollbridge.login_failed',
    resource: { object: 'door', id: doors[0] ?? 'unknown' },
    payload: { doors, ...failed },
  };
  await log.commit({ decide: () => ({ events: [event] }) });
}
