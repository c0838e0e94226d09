/**
 * Waiting for a peer between two looks at its task: until it calls, where it can and we are told where it would reach us, and
 * until it is time to look otherwise. A promise to call that was not kept is not relied on again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fact } from '../../src/index.ts';
import type { BackendDeps, PeerSettings } from './client-config.ts';
import type { Connection } from './client-connect.ts';
import { type Hook, hooksAt } from './client-push.ts';

export interface Waiting {
  /** Asks the peer to call about its task. Once; true when it has just agreed: what came before that it did not say. */
  listenFor(taskId: string): Promise<boolean>;
  /** Resolves when it has called, or it is time to look, or nobody waits any more. `byCall`: it is enough to wait for calls. */
  until(signal: AbortSignal, byCall: boolean): Promise<'called' | 'time'>;
  /** It moved and did not say so. */
  unannounced(): void;
  /** Its calls since we last asked, for the record. */
  calls(): readonly Fact[];
  close(): void;
}

export interface WaitingDeps {
  readonly settings: PeerSettings;
  readonly deps: BackendDeps;
  readonly connection: Connection;
  /** Ours; the peer keeps one address for it, however often we ask. */
  readonly taskId: string;
}

export function createWaiting({ settings, deps, connection, taskId: ours }: WaitingDeps): Waiting {
  let hook: Hook | undefined;
  let promised = false;
  let theirs = '';
  let came: string[] = [];
  let woken = new AbortController();

  return {
    async listenFor(taskId) {
      const { http } = deps;
      if (hook || !http || !settings.publicUrl || !connection.card.capabilities?.pushNotifications) return false;
      hook = hooksAt(http).open(({ id }) => {
        came.push(id);
        woken.abort();
      });
      hook.expect(taskId);
      theirs = taskId;
      const { path, token, credentials } = hook;
      const url = `${settings.publicUrl}${path}`;
      const authentication = { scheme: 'Bearer', credentials };
      const config = { tenant: '', id: `tollbridge-${ours}`, taskId, url, token, authentication };
      try {
        const signal = AbortSignal.timeout(settings.requestMs);
        await connection.client.createTaskPushNotificationConfig(config, { signal });
        promised = true;
      } catch (cause) {
        deps.log.warn({ err: cause, peer: settings.name }, 'a peer will not call; it is asked from time to time');
      }
      return promised;
    },
    async until(signal, byCall) {
      const ms = promised && byCall ? settings.pushPollMs : settings.pollMs;
      if (came.length === 0) {
        woken = new AbortController();
        await sleep(ms, undefined, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => {});
      }
      return came.length > 0 ? 'called' : 'time';
    },
    unannounced() {
      if (promised)
        deps.log.warn({ peer: settings.name }, 'a peer moved without calling; it is asked from time to time');
      promised = false;
    },
    calls() {
      const heard = came;
      came = [];
      return heard.map((delivery_id) => ({
        event: 'connector.delivery_received',
        payload: { provider: 'a2a.push', delivery_id, peer: settings.name, task_id: theirs },
      }));
    },
    close: () => hook?.close(),
  };
}
