/** The log as a replay writes it: every event names the event it repeats, and has the recorded actor. */

import type { CoreEvent, EventDraft } from '../../model/events.ts';
import type { ReplayMark, Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { Clock } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';
import type { Plan } from './plan.ts';

export interface MarkedLog extends Log {
  /** Sets the recorded event being replayed. Events written from here on repeat it or those after the last one. */
  now(event: CoreEvent): void;
  isRepeated(event: CoreEvent): boolean;
  /** Resolves once this recorded event has been repeated. */
  repeated(event: CoreEvent): Promise<void>;
  /** The question opened last. */
  lastAsk(): string;
  /** Recorded events that have not been repeated yet, in order. */
  left(): Iterable<CoreEvent>;
  /** The last recorded event that has been repeated. */
  furthest(): CoreEvent | undefined;
  /** Recorded time: the time of the event repeated last. */
  readonly clock: Clock;
}

export function markingLog(log: Log, task: Task, source: Task, plan: Plan): MarkedLog {
  const overrides = new Map(plan.applied.map((applied) => [applied.dependency.event_id, applied]));
  const unmatched = new Set(plan.replayed);
  let waiters: (() => void)[] = [];
  let ask = '';
  let last = 0;
  let reached = 0;
  let furthest: CoreEvent | undefined;
  let recordedAt = source.started_at ?? source.created_at;

  function originalOf(event: EventDraft, taken: readonly CoreEvent[]): CoreEvent | undefined {
    // A `replay.event_replayed` names the event it stands for.
    const named = event.payload.original as JsonObject | undefined;
    if (event.event === 'replay.event_replayed' && named?.id === plan.checkpoint?.id) return plan.checkpoint;
    const name = nameIn(event.payload);
    const same = (original: CoreEvent) =>
      original.sequence > reached &&
      original.event === event.event &&
      nameIn(original.payload) === name &&
      !taken.includes(original);
    const wanted = event.event === 'replay.event_replayed' ? ({ id }: CoreEvent) => id === named?.id : same;
    for (const original of unmatched) if (wanted(original)) return original;
    return undefined;
  }

  function mark(event: EventDraft, original: CoreEvent | undefined): EventDraft {
    const override = original && overrides.get(original.id);
    const replay: ReplayMark = {
      source_task_id: source.id,
      replay_task_id: task.id,
      original_event_id: original?.id ?? null,
      mode: plan.request.mode,
      ...(override && { override_key: override.key, receipt_delta_id: override.delta.delta_id }),
    };
    return { ...event, ...(original && { actor: original.actor ?? null }), replayed: true, replay };
  }

  return {
    ...log,
    // Repeated values were fitted to events when they were recorded.
    fit: (value) => ({ value, artifacts: [] }),
    fitMembers: (value) => ({ value, artifacts: [] }),
    fitMessage: (value) => ({ value, artifacts: [] }),
    async commit(unit) {
      // A commit may be decided more than once; only the written attempt has repeated events.
      let taken: CoreEvent[] = [];
      let opened = '';
      const committed = await log.commit({
        ...unit,
        decide(at) {
          taken = [];
          const draft = unit.decide(at);
          const events = draft.events.map((event) => {
            const original = originalOf(event, taken);
            if (original) taken.push(original);
            if (event.event === 'vendor.tollbridge.ask_opened') opened = asText((event.payload.ask as JsonObject).id);
            return mark(event, original);
          });
          return { ...draft, events };
        },
      });
      for (const original of taken) {
        unmatched.delete(original);
        if (original.sequence > (furthest?.sequence ?? 0)) furthest = original;
      }
      recordedAt = taken.at(-1)?.created_at ?? recordedAt;
      ask = opened || ask;
      const woken = waiters;
      waiters = [];
      for (const wake of woken) wake();
      return committed;
    },
    now(event) {
      reached = last;
      last = event.sequence;
      recordedAt = event.created_at;
      // Skipped events are never matched later; keeping them would make a long replay slow.
      for (const original of unmatched) {
        if (original.sequence > reached) break;
        unmatched.delete(original);
      }
    },
    isRepeated: (event) => !unmatched.has(event),
    async repeated(event) {
      while (unmatched.has(event)) await new Promise<void>((resolve) => waiters.push(resolve));
    },
    lastAsk: () => ask,
    left: () => unmatched,
    furthest: () => furthest,
    clock: { now: () => recordedAt },
  };
}

/** The name that distinguishes events of one kind: the call, the message, the model call, the file. */
export function nameIn(payload: JsonObject): unknown {
  const member = (object: string, name: string) => (payload[object] as JsonObject | null | undefined)?.[name];
  return (
    payload.tool_call_id ??
    member('action', 'tool_call_id') ??
    payload.message_id ??
    member('message', 'id') ??
    member('span', 'call_id') ??
    member('artifact', 'id') ??
    null
  );
}
