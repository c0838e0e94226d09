/**
 * The record as answers: what the gate decided, what tools returned, when a question was taken up. Each answer waits
 * until the walk through the record has come to it, so that a replay happens in the order of what it repeats.
 */

import type { Decision, ToolResult } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { AskRecord } from '../model/asks.ts';
import type { CoreEvent } from '../model/events.ts';
import type { AskOpenedPayload } from '../model/payloads.ts';
import type { JsonObject } from '../model/schema.ts';
import { askKey } from './projector.ts';

export interface Recorded {
  /** True when the gate has something more to say about this call. */
  hasRuling(callId: string): boolean;
  /** Allowed, or approved and taken up: from then on it ran. */
  ran(callId: string): boolean;
  /** What the gate says next about a call, once it is let out. */
  ruling(callId: string): Promise<Decision>;
  result(callId: string): Promise<ToolResult>;
  /** The next question people were asked about a call, or under a key. */
  asked(key: string): AskRecord | undefined;
  /** Resolves when whoever asked goes on with the answer. */
  taken(askId: string): Promise<void>;

  rule(callId: string): void;
  finish(callId: string, result: ToolResult): void;
  take(askId: string): void;
}

export function readRecord(events: readonly CoreEvent[]): Recorded {
  const rulings = new Map<string, Decision[]>();
  const asked = new Map<string, AskRecord[]>();
  const ran = new Set<string>();
  const approved = new Map<string, string>();
  for (const event of events) {
    const { payload } = event;
    const about = decisionOn(event);
    if (about) {
      const { call, decision } = about;
      rulings.set(call, [...(rulings.get(call) ?? []), decision]);
      if (decision.verdict === 'allow' || decision.verdict === 'modify') ran.add(call);
      else ran.delete(call);
    }
    if (event.event === 'vendor.tollbridge.ask_opened') {
      const { ask } = payload as unknown as AskOpenedPayload;
      asked.set(askKey(ask), [...(asked.get(askKey(ask)) ?? []), ask]);
    }
    if (event.event === 'tool.approved') approved.set(asText(payload.ask_id), asText(payload.tool_call_id));
    if (event.event === 'vendor.tollbridge.ask_used') {
      const call = approved.get(asText(payload.ask_id));
      if (call) ran.add(call);
    }
  }
  const decisions = mailboxes<Decision>();
  const results = mailboxes<ToolResult>();
  const takings = mailboxes<undefined>();
  return {
    hasRuling: (callId) => (rulings.get(callId)?.length ?? 0) > 0,
    ran: (callId) => ran.has(callId),
    ruling: decisions.take,
    result: results.take,
    asked: (key) => asked.get(key)?.shift(),
    taken: takings.take,
    rule(callId) {
      const next = rulings.get(callId)?.shift();
      if (next) decisions.put(callId, next);
    },
    finish: results.put,
    take: (askId) => takings.put(askId, undefined),
  };
}

/** Letters by address, in order, whether the reader or the letter comes first. */
function mailboxes<T>() {
  const letters = new Map<string, T[]>();
  const readers = new Map<string, ((letter: T) => void)[]>();
  return {
    put(address: string, letter: T): void {
      const reader = readers.get(address)?.shift();
      if (reader) reader(letter);
      else letters.set(address, [...(letters.get(address) ?? []), letter]);
    },
    take(address: string): Promise<T> {
      const waiting = letters.get(address);
      if (waiting?.length) return Promise.resolve(waiting.shift() as T);
      return new Promise((resolve) => readers.set(address, [...(readers.get(address) ?? []), resolve]));
    },
  };
}

/** The decision an event holds, if it is about a call. */
export function decisionOn(event: CoreEvent | undefined): { call: string; decision: Decision } | undefined {
  if (event?.event !== 'vendor.tollbridge.decided') return undefined;
  const { action, decision } = event.payload as unknown as { action: JsonObject; decision: Decision };
  return typeof action?.tool_call_id === 'string' ? { call: action.tool_call_id, decision } : undefined;
}
