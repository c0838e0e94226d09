/**
 * Waits between two polls of a peer's task: until a notification, where the peer sends them and our URL is configured,
 * otherwise until the next poll is due. A peer that changed without the promised notification is no longer relied on.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal, type Fact } from '../../../src/index.ts';
import type { BackendDeps, PeerSettings } from './config.ts';
import type { PeerConnection } from './peer/connect.ts';
import type { Hook, Hooks } from './push-receiver.ts';

export interface Waiting {
  /** Registers for notifications about a task, once. True when the peer has just agreed: changes before that were not announced. */
  listenFor(taskId: string): Promise<boolean>;
  /** Resolves on a notification, when the next poll is due, or when the signal fires. `byCall`: waiting for notifications is enough. */
  until(signal: AbortSignal, byCall: boolean): Promise<'called' | 'time'>;
  /** The task changed without a notification. */
  unannounced(): void;
  /** The notifications since the last call, for the log. */
  calls(): readonly Fact[];
  close(): void;
}

export interface WaitingDeps {
  readonly settings: PeerSettings;
  readonly deps: BackendDeps;
  readonly connection: PeerConnection;
  /** Where the peer sends its notifications; absent: this process has no port. */
  readonly hooks: Hooks | undefined;
  /** Our task id; the peer keeps one registration for it, however often we register. */
  readonly taskId: string;
}

export function createWaiting({ settings, deps, connection, hooks, taskId: ours }: WaitingDeps): Waiting {
  let hook: Hook | undefined;
  let promised = false;
  let theirs = '';
  let came: string[] = [];
  let woken = new AbortController();

  return {
    async listenFor(taskId) {
      if (hook || !hooks || !settings.publicUrl || !connection.card.capabilities?.pushNotifications) return false;
      hook = hooks.open(({ id }) => {
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
        await sleep(ms, undefined, { signal: anySignal([signal, woken.signal]) }).catch(() => {});
      }
      return came.length > 0 ? 'called' : 'time';
    },
    unannounced() {
      if (promised)
        deps.log.warn({ peer: settings.name }, 'a peer moved without calling; it is asked from time to time');
      promised = false;
    },
    calls() {
      const received = came;
      came = [];
      return received.map((delivery_id) => ({
        event: 'connector.delivery_received',
        payload: { provider: 'a2a.push', delivery_id, peer: settings.name, task_id: theirs },
      }));
    },
    close: () => hook?.close(),
  };
}
