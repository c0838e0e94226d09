/**
 * An act that was not let through and is reported as run all the same: the agent did not obey, or never asked. Whatever
 * protocol the report came in, it is raised here, in the commit that records the report. Raises nothing else and stops nothing.
 */
import { asText } from '../model/as-text.ts';
import type { Fact } from '../model/commands.ts';
import type { EventDraft } from '../model/events.ts';
import type { AlarmPayload } from '../model/payloads.ts';
import type { Task } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Refusal, ReportedAct } from '../ports.ts';
import type { Endings } from './endings.ts';
import { inTask } from './lifecycle.ts';
import type { Log } from './log.ts';
import { goOnWith } from './waiting.ts';

export interface Alarms {
  /**
   * The alarm this fact raises, if it does. At once where the task's account is at hand. `before`: events of the same
   * report, which no account knows yet.
   */
  raisedBy(
    task: Task,
    fact: Fact,
    before: readonly EventDraft[],
  ): EventDraft | undefined | Promise<EventDraft | undefined>;
}

/** Facts that say an act has happened. A failed call is none: agents report their refused calls that way. */
const RAN = new Set(['tool.completed', 'vendor.tollbridge.side_effect']);

export function createAlarms(endings: Pick<Endings, 'refusal'>, log: Pick<Log, 'clean'>): Alarms {
  /** What the call did, if it is told of in the same report. */
  function reportedIn(before: readonly EventDraft[], callId: string): ReportedAct | undefined {
    const request = before.find(({ event, payload }) => event === 'tool.requested' && payload.tool_call_id === callId);
    if (!request) return undefined;
    const { name, input = {} } = request.payload;
    // As it will stand in the log, because that is what was refused.
    return { tool: asText(name), input: log.clean({ input }).input as Json };
  }

  return {
    raisedBy(task, { event, payload }, before) {
      const callId = payload.tool_call_id;
      if (typeof callId !== 'string' || !RAN.has(event) || payload.status === 'error') return undefined;
      return goOnWith(endings.refusal(task.id, callId, reportedIn(before, callId)), (refusal) =>
        refusal ? alarm(task, callId, event, refusal) : undefined,
      );
    },
  };
}

function alarm(task: Task, callId: string, reported: string, refusal: Refusal): EventDraft {
  const payload: AlarmPayload = {
    alarm: 'ran_though_refused',
    tool_call_id: callId,
    ...refusal,
    reported,
    message: `${refusal.name} ${STATES[refusal.state]} and is reported as run`,
  };
  return { event: 'vendor.tollbridge.alarm', payload: payload as unknown as JsonObject, ...inTask(task) };
}

const STATES: Readonly<Record<Refusal['state'], string>> = {
  refused: 'was refused',
  deferred: 'was put off',
  waiting_for_approval: 'was waiting for an approval',
  rewritten: 'was allowed with other arguments only,',
  approved_but_not_begun: 'was approved after the agent had been told no',
};
