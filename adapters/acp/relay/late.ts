/**
 * What an agent tells of a turn that is over. It goes on to the editor as it came; the receipt is sealed, so it stands beside
 * it as a note, one for each burst and not one for each word.
 */

import type { JsonObject } from '../../../src/index.ts';
import { asText } from '../../../src/index.ts';
import { KEEPER } from './approvals.ts';
import type { Notification } from './frame.ts';
import type { Passing } from './passing.ts';
import type { Place } from './places.ts';

export interface Late {
  told(place: Place, frame: Notification, update: JsonObject): void;
  /** Everything noted so far is written down, and nothing is noted from now on. */
  close(): Promise<void>;
}

/** What belongs to a turn; everything else may be told at any time. */
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
    writing = writing.then(() => passing.note(burst.frame, KEEPER, ext));
  }

  return {
    told({ wireId }, frame, update) {
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
