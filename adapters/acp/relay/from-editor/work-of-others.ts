/**
 * Work that another process accepted for the agent behind this relay, from a client at one of its doors: found in the session,
 * and taken up here, where the agent is.
 */
import { type Actor, asFault, type Bridge, type Logger } from '../../../../src/index.ts';
import { within } from '../../shapes.ts';
import type { SessionKey } from './session-keys.ts';

export interface WorkOfOthers {
  /** Looks for work in this session from now on. */
  watch(sessionKey: SessionKey): void;
  close(): void;
}

export interface WorkOfOthersDeps {
  readonly bridge: Bridge;
  readonly person: Actor;
  readonly name: string;
  readonly log: Logger;
}

export function createWorkOfOthers({ bridge, person, name, log }: WorkOfOthersDeps): WorkOfOthers {
  const closing = new AbortController();
  const watched = new Set<string>();

  async function follow(sessionId: string): Promise<void> {
    const from = { stream: { of: 'session', id: sessionId } as const, after: 'now' as const };
    for await (const { event, payload, task_id } of bridge.follow(person, from, closing.signal)) {
      if (event !== 'task.submitted' || payload.agent !== name || !task_id) continue;
      // The turns of this editor name the agent's session.
      if (within(payload.task, 'metadata', 'acp', 'session_id') !== undefined) continue;
      await bridge
        .submit({ kind: 'task.resume', actor: person, body: { task_id } })
        // It began or ended meanwhile, or was accepted in this process.
        .catch((cause) => log.info({ err: asFault(cause), task: task_id }, 'work of another client was not taken up'));
    }
  }

  return {
    watch({ sessionId }) {
      if (watched.has(sessionId)) return;
      watched.add(sessionId);
      follow(sessionId).catch((cause) => {
        if (!closing.signal.aborted) log.warn({ err: asFault(cause) }, 'a session can no longer be followed');
      });
    },
    close: () => closing.abort(),
  };
}
