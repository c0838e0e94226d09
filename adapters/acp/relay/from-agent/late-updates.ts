/**
 * Updates about a turn that is over. They are forwarded to the editor unchanged; the receipt is sealed, so they are recorded
 * beside it as a note, one for each burst and not one for each chunk.
 */

import type { JsonObject } from '../../../../src/index.ts';
import { asText } from '../../../../src/index.ts';
import type { Notification } from '../frames/frame.ts';
import type { Passing } from '../frames/passthrough.ts';
import type { SessionKey } from '../from-editor/session-keys.ts';
import { SYSTEM_ACTOR } from './approved-acts.ts';

export interface Late {
  reported(sessionKey: SessionKey, frame: Notification, update: JsonObject): void;
  /** Writes all notes and accepts no more. */
  close(): Promise<void>;
}

/** Updates that belong to a turn; all others may arrive at any time. */
const OF_A_TURN = /^(agent_message_chunk|agent_thought_chunk|tool_call|tool_call_update|plan|plan_update)$/;
const BURST_MS = 1_000;

export function createLate(passing: Pick<Passing, 'note'>): Late {
  const bursts = new Map<string, { frame: Notification; count: number; timer: NodeJS.Timeout }>();
  let writing: Promise<void> = Promise.resolve();
  let closed = false;

  function write(wireId: string): void {
    const burst = bursts.get(wireId);
    if (!burst) return;
    clearTimeout(burst.timer);
    bursts.delete(wireId);
    const ext = { acp: { late: true, count: burst.count } };
    writing = writing.then(() => passing.note(burst.frame, SYSTEM_ACTOR, ext));
  }

  return {
    reported({ wireId }, frame, update) {
      if (closed || !OF_A_TURN.test(asText(update.sessionUpdate))) return;
      const burst = bursts.get(wireId);
      if (burst) burst.count += 1;
      else bursts.set(wireId, { frame, count: 1, timer: setTimeout(() => write(wireId), BURST_MS) });
    },
    async close() {
      closed = true;
      for (const wireId of [...bursts.keys()]) write(wireId);
      await writing;
    },
  };
}
