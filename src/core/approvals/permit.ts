/**
 * Approval of a whole task before it begins. The log holds the need for it with the decision, so that a crash between decision and
 * answer does not let the work begin unasked.
 */
import type { Action, Actor, Decision } from '../../model/actions.ts';
import type { ProposedAction } from '../../model/commands.ts';
import type { CoreEvent } from '../../model/events.ts';
import type { AskClosedPayload, DecidedPayload } from '../../model/payloads.ts';

export interface Permit {
  /** The actor that submitted the work: rules about it apply to the question too. */
  readonly actor: Actor;
  readonly action: ProposedAction;
}
export type Permission =
  | { readonly kind: 'ask'; readonly permit: Permit }
  | { readonly kind: 'no'; readonly reason: string };

/** Undefined when the work may begin. */
export function permitFor(
  action: Pick<Action, 'actor' | 'tool' | 'arguments'>,
  decision: Decision,
): Permit | undefined {
  if (decision.verdict !== 'escalate') return undefined;
  const { actor, tool = 'an agent', arguments: args } = action;
  return {
    actor,
    action: { kind: 'prompt', tool, effect: 'none', evidence: 'held', arguments: args },
  };
}

/** The state of the approval by a task's events: nothing left to ask, the question still to be opened, or a denial on record. */
export async function readPermission(events: AsyncIterable<CoreEvent>): Promise<Permission | undefined> {
  let left: Permission | undefined;
  let asked: AskClosedPayload | string | undefined;
  for await (const event of events) {
    switch (event.event) {
      case 'vendor.tollbridge.decided': {
        const { action, decision } = event.payload;
        if (action.kind !== 'prompt') break;
        if (decision.verdict === 'block') left = { kind: 'no', reason: decision.reason };
        const permit = permitFor({ ...action, arguments: action.arguments ?? {}, actor: recorded(action) }, decision);
        if (permit && asked === undefined) left = { kind: 'ask', permit };
        break;
      }
      case 'vendor.tollbridge.ask_opened': {
        const { ask } = event.payload;
        if (ask.action.kind === 'prompt') asked = ask.id;
        break;
      }
      case 'vendor.tollbridge.ask_closed':
        if (event.payload.ask_id === asked) asked = event.payload;
        break;
      case 'vendor.tollbridge.ask_used': {
        if (typeof asked !== 'object' || event.payload.ask_id !== asked.ask_id) break;
        const { state, reason = 'nobody approved the work' } = asked;
        left = state === 'approved' ? undefined : { kind: 'no', reason };
        break;
      }
      default:
    }
  }
  return left;
}

/** The log does not record an actor's scopes, and a question needs none of them. */
function recorded({ actor }: DecidedPayload['action']): Actor {
  return { ...actor, kind: actor.kind as Actor['kind'], scopes: [] };
}

/** The events that `readPermission` reads. */
export const PERMISSION_EVENTS = [
  'vendor.tollbridge.decided',
  'vendor.tollbridge.ask_opened',
  'vendor.tollbridge.ask_closed',
  'vendor.tollbridge.ask_used',
];
