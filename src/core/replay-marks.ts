/** The log as a replay writes it: every event names the one it repeats, and whoever did it then is who did it. */
import { asText } from '../model/as-text.ts';
import type { CoreEvent, EventDraft } from '../model/events.ts';
import type { ReplayMark, Task } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Log } from './log.ts';
import type { Plan } from './replay-plan.ts';

export interface MarkedLog extends Log {
  /** The recorded event being lived through. What is written from here on repeats it or what came after the last one. */
  now(event: CoreEvent): void;
  isRepeated(event: CoreEvent): boolean;
  /** Resolves once this recorded event has been repeated. */
  repeated(event: CoreEvent): Promise<void>;
  /** The question opened last. */
  lastAsk(): string;
}

export function markingLog(log: Log, task: Task, source: Task, plan: Plan): MarkedLog {
  const overrides = new Map(plan.applied.map((applied) => [applied.dependency.event_id, applied]));
  const unmatched = new Set(plan.lived);
  let waiters: (() => void)[] = [];
  let ask = '';
  let last = 0;
  let reached = 0;

  function originalOf(event: EventDraft, taken: readonly CoreEvent[]): CoreEvent | undefined {
    // What is only noted says which event it notes.
    const named = event.payload.original as JsonObject | undefined;
    const same = (original: CoreEvent) =>
      original.sequence > reached &&
      original.event === event.event &&
      callOf(original.payload) === callOf(event.payload) &&
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
    // What is repeated was made to fit when it was recorded.
    fit: (value) => ({ value, artifacts: [] }),
    fitMembers: (value) => ({ value, artifacts: [] }),
    fitMessage: (value) => ({ value, artifacts: [] }),
    async commit(unit) {
      // A commit may be decided more than once; only the one that was written has repeated anything.
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
      for (const original of taken) unmatched.delete(original);
      ask = opened || ask;
      const woken = waiters;
      waiters = [];
      for (const wake of woken) wake();
      return committed;
    },
    now(event) {
      reached = last;
      last = event.sequence;
      // What was left behind is not coming back; looking through it again would make a long replay slow.
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
  };
}

function callOf(payload: JsonObject): unknown {
  return payload.tool_call_id ?? (payload.action as JsonObject | undefined)?.tool_call_id ?? null;
}
