/**
 * The consequences of an override in a recorded run. The use an agent made of a value cannot be observed, so everything it said or
 * did afterwards counts as dependent on it. Actions of others, and calls already in progress, do not.
 */

import type { CoreEvent } from '../../model/events.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { isReportable } from '../events/facts.ts';
import { type Applied, LIFECYCLE_TIMES } from './overrides.ts';

export interface Dependent {
  readonly event: CoreEvent;
  readonly index: number;
  readonly applied: Applied;
  readonly why: string;
}

/** The first recorded event that no longer follows from the answers, over all overrides. */
export function firstDependent(applied: readonly Applied[], events: readonly CoreEvent[]): Dependent | undefined {
  let first: Dependent | undefined;
  const evidence = evidenceOf(events);
  const calls = callsOf(events);
  for (const one of applied) {
    if (!givesAgentAnything(one, events)) continue;
    const at = events.findIndex(({ id }) => id === one.dependency.event_id);
    // The agent had already used the secret or read the clock when it reported this.
    const inUse = one.key.startsWith('secret:') || one.key.startsWith('time:');
    const about = aboutCall(events[at], calls);
    const follows = (event: CoreEvent, index: number) => {
      if (index < at || (index === at && !inUse)) return false;
      return isAgentOutput(event, evidence) || (about !== undefined && callOf(event) === about);
    };
    const index = events.findIndex(follows);
    const event = events[index];
    if (!event || (first && first.index <= index)) continue;
    const what = inUse ? 'was said with' : 'comes after the agent was given';
    first = { event, index, applied: one, why: `${event.event} (${event.id}) ${what} what ${one.key} replaces` };
  }
  return first;
}

/** False for values that only the receipt repeats, and for the agent's own output, which gives it no input. */
export function givesAgentAnything({ key, dependency, delta }: Applied, events: readonly CoreEvent[]): boolean {
  if (LIFECYCLE_TIMES.has(key)) return false;
  // An equal value is not another answer.
  if (delta.before_sha256 !== null && delta.before_sha256 === delta.after_sha256) return false;
  if (!key.startsWith('event:')) return true;
  const event = events.find(({ id }) => id === dependency.event_id);
  return event !== undefined && !ONLY_SAID.test(event.event) && !isEndOrReceipt(event.event);
}

/**
 * Output of the agent that is not returned to it. Its requests are not listed: decisions and results answered the original request.
 */
const ONLY_SAID =
  /^(agent\.(message|thought\w*)|artifact\.\w+|vendor\.tollbridge\.(message_delta|plan|usage|side_effect|note)|session\.message_appended|(?!vendor\.tollbridge\.)[a-z]{2,}\.[a-z0-9-]+\.[a-z0-9_.-]+)$/i;

function isEndOrReceipt(event: string): boolean {
  return /^(task\.(completed|failed|canceled)|receipt\.)/.test(event);
}

/** Whether the agent itself said or did this, and not its tools or people. */
export function isAgentOutput(event: CoreEvent, evidence: ReadonlyMap<string, unknown>): boolean {
  switch (event.event) {
    case 'tool.completed':
    case 'tool.failed':
    case 'agent.tool_use':
    case 'agent.tool_result':
      // A held call's result came from its tool and was recorded by us; every other result is the agent's report.
      return evidence.get(asText(event.payload.tool_call_id)) !== 'held';
    case 'vendor.tollbridge.ask_opened':
      return !event.payload.ask.tool_call_id;
    case 'vendor.tollbridge.decided': {
      const { tool_call_id, kind } = event.payload.action;
      return !tool_call_id && kind !== 'prompt';
    }
    case 'vendor.tollbridge.side_effect':
    case 'vendor.tollbridge.usage':
      return evidence.get(asText(event.payload.tool_call_id ?? event.payload.call_id ?? '')) !== 'held';
    case 'artifact.created':
      return event.actor !== undefined && event.actor !== null;
    case 'task.completed':
      return true;
    case 'task.failed':
    case 'task.canceled':
      return typeof event.actor === 'string' && event.actor.startsWith('agent:');
    case 'user.message':
      return false;
    default:
      return isReportable(event.event);
  }
}

export function evidenceOf(events: readonly CoreEvent[]): ReadonlyMap<string, unknown> {
  return new Map(
    events.flatMap((event) =>
      event.event === 'tool.requested' ? [[asText(event.payload.tool_call_id), event.payload.evidence] as const] : [],
    ),
  );
}

/** Question → the call it is about. */
function callsOf(events: readonly CoreEvent[]): ReadonlyMap<string, string> {
  return new Map(
    events.flatMap((event) => {
      if (event.event !== 'vendor.tollbridge.ask_opened') return [];
      const { ask } = event.payload;
      return ask.tool_call_id ? [[ask.id, ask.tool_call_id] as const] : [];
    }),
  );
}

function callOf({ payload }: CoreEvent): string | undefined {
  const id = payload.tool_call_id ?? (payload.action as JsonObject | undefined)?.tool_call_id;
  return typeof id === 'string' ? id : undefined;
}

/** The call that changes when this event changes: its request, the decision on it, people's answer to it. */
function aboutCall(event: CoreEvent | undefined, calls: ReadonlyMap<string, string>): string | undefined {
  if (!event || event.event === 'tool.completed' || event.event === 'tool.failed') return undefined;
  return callOf(event) ?? calls.get(asText(event.payload.ask_id ?? ''));
}
