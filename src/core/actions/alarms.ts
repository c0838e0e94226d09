/**
 * Detects an act that is reported as run although it was not allowed: the agent did not obey, or never asked. Whatever protocol the
 * report came in, the alarm is raised here, in the commit that records the report. It stops nothing.
 */

import { outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { Fact } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import type { AlarmPayload } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { Json } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { RefusedCall, ReportedAct } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';
import type { Endings } from '../tasks/end-task.ts';
import { inTask } from '../tasks/lifecycle.ts';
import { goOnWith } from '../waiting.ts';

export interface Judged {
  /** The fact reports that an act ran which was not allowed. */
  readonly alarm?: EventDraft | undefined;
  /** The fact reports a refused call as failed, as agents do: the refusal is its outcome. */
  readonly refused?: boolean;
}

export interface Alarms {
  /**
   * Interprets a fact by the decisions on record. Synchronous where the task's account is in memory. `before`: events of the same
   * report, which the account does not contain yet.
   */
  judged(task: Task, fact: Fact, before: readonly EventDraft[]): Judged | undefined | Promise<Judged | undefined>;
}

const ENDS = new Set(['tool.completed', 'tool.failed']);

export function createAlarms(endings: Pick<Endings, 'refusal'>, log: Pick<Log, 'clean'>): Alarms {
  /** The act of the call, if the same report contains its request. */
  function reportedIn(before: readonly EventDraft[], callId: string): ReportedAct | undefined {
    const request = before.find(({ event, payload }) => event === 'tool.requested' && payload.tool_call_id === callId);
    if (!request) return undefined;
    const { name, input = {} } = request.payload;
    // Redacted as in the log, because the refused act is compared in that form.
    return { tool: asText(name), input: log.clean({ input }).input as Json };
  }

  return {
    judged(task, { event, payload }, before) {
      const callId = payload.tool_call_id;
      const ends = ENDS.has(event);
      if (typeof callId !== 'string' || !(ends || event === 'vendor.tollbridge.side_effect')) return undefined;
      const ran = !ends || outcomeOfEnd(event, payload) === 'succeeded';
      return goOnWith(endings.refusal(task.id, callId, reportedIn(before, callId)), (refusal) => {
        if (refusal && ran) return { alarm: alarm(task, callId, event, refusal) };
        // A call under another id is not the refused call, but a call that failed.
        return refusal?.state === 'refused' && refusal.refused_call_id === undefined ? REFUSED : undefined;
      });
    },
  };
}

const REFUSED: Judged = { refused: true };

function alarm(task: Task, callId: string, reported: string, refusal: RefusedCall): EventDraft {
  const payload: AlarmPayload = {
    alarm: 'ran_though_refused',
    tool_call_id: callId,
    ...refusal,
    reported,
    message: `${refusal.name} ${STATES[refusal.state]} and is reported as run`,
  };
  return { event: 'vendor.tollbridge.alarm', payload: payload, ...inTask(task) };
}

const STATES: Readonly<Record<RefusedCall['state'], string>> = {
  refused: 'was refused',
  deferred: 'was put off',
  waiting_for_approval: 'was waiting for an approval',
  rewritten: 'was allowed with other arguments only,',
  approved_but_not_begun: 'was approved after the agent had received a refusal',
};
