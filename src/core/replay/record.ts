/**
 * The record as answers: decisions of the gate, results of tools, the moment an approval was spent. Each answer waits until the
 * walk through the record has reached it, so that a replay keeps the recorded order.
 */

import type { Decision, ToolResult } from '../../model/actions.ts';
import type { AskRecord } from '../../model/asks.ts';
import type { CoreEvent } from '../../model/events.ts';
import { asText } from '../../model/values/as-text.ts';
import { askKey } from '../events/projections/asks.ts';

export interface Recorded {
  /** True when the record has another decision on this call. */
  hasDecision(callId: string): boolean;
  /** Allowed, or approved and the approval spent: from then on it ran. */
  ran(callId: string): boolean;
  /** The next recorded decision on a call, once the walk has reached it. */
  decision(callId: string): Promise<Decision>;
  result(callId: string): Promise<ToolResult>;
  /** The next recorded question about a call, or under a key. The same one until it is `opened`. */
  asked(key: string): AskRecord | undefined;
  opened(key: string): void;
  /** Questions are numbered from one, in the order they were asked. */
  numberOf(askId: string): number;
  /** Resolves when the asker goes on with the answer. */
  taken(askId: string): Promise<void>;

  rule(callId: string): void;
  finish(callId: string, result: ToolResult): void;
  take(askId: string): void;
}

export function readRecord(events: readonly CoreEvent[]): Recorded {
  const recorded = new Map<string, Decision[]>();
  const asked = new Map<string, AskRecord[]>();
  const ran = new Set<string>();
  const approved = new Map<string, string>();
  const numbers = new Map<string, number>();
  for (const event of events) {
    const about = decisionOn(event);
    if (about) {
      const { call, decision } = about;
      recorded.set(call, [...(recorded.get(call) ?? []), decision]);
      if (decision.verdict === 'allow' || decision.verdict === 'modify') ran.add(call);
      else ran.delete(call);
    }
    if (event.event === 'vendor.tollbridge.ask_opened') {
      const { ask } = event.payload;
      asked.set(askKey(ask), [...(asked.get(askKey(ask)) ?? []), ask]);
      numbers.set(ask.id, numbers.size + 1);
    }
    if (event.event === 'tool.approved') approved.set(asText(event.payload.ask_id), asText(event.payload.tool_call_id));
    if (event.event === 'vendor.tollbridge.ask_used') {
      const call = approved.get(event.payload.ask_id);
      if (call) ran.add(call);
    }
  }
  const decisions = queues<Decision>();
  const results = queues<ToolResult>();
  const takings = queues<undefined>();
  return {
    hasDecision: (callId) => (recorded.get(callId)?.length ?? 0) > 0,
    ran: (callId) => ran.has(callId),
    decision: decisions.take,
    result: results.take,
    asked: (key) => asked.get(key)?.[0],
    opened: (key) => void asked.get(key)?.shift(),
    numberOf: (askId) => numbers.get(askId) ?? 0,
    taken: takings.take,
    rule(callId) {
      const next = recorded.get(callId)?.shift();
      if (next) decisions.put(callId, next);
    },
    finish: results.put,
    take: (askId) => takings.put(askId, undefined),
  };
}

/** Queues by key, in order, whether the reader or the item comes first. */
function queues<T>() {
  const items = new Map<string, T[]>();
  const readers = new Map<string, ((item: T) => void)[]>();
  return {
    put(key: string, item: T): void {
      const reader = readers.get(key)?.shift();
      if (reader) reader(item);
      else items.set(key, [...(items.get(key) ?? []), item]);
    },
    take(key: string): Promise<T> {
      const waiting = items.get(key);
      if (waiting?.length) return Promise.resolve(waiting.shift() as T);
      return new Promise((resolve) => readers.set(key, [...(readers.get(key) ?? []), resolve]));
    },
  };
}

/** The decision in an event, if it is about a call. */
export function decisionOn(event: CoreEvent | undefined): { call: string; decision: Decision } | undefined {
  if (event?.event !== 'vendor.tollbridge.decided') return undefined;
  const { action, decision } = event.payload;
  return action.tool_call_id ? { call: action.tool_call_id, decision } : undefined;
}
