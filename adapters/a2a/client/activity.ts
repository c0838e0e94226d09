/**
 * Reads the activity extension of another Tollbridge gateway: calls become observed calls, and its decisions are recorded as
 * its own. A call request is held back until it is known whether a question about it follows, because then the bridge itself
 * writes the request.
 */
import type { StreamResponse } from '@a2a-js/sdk';
import { EXTENSIONS } from '../../../mappings/a2a.ts';
import { type EventKind, type Fact, isEventKind, isObject, type JsonObject } from '../../../src/index.ts';
import {
  observedRequest,
  type RemoteDecision,
  toRemoteDecision,
} from '../../../src/transport/outbound/remote-decisions.ts';

export type ActivityUpdate =
  | { readonly do: 'emit'; readonly fact: Fact }
  | { readonly do: 'ruled'; readonly decision: RemoteDecision };

export interface Activity {
  /** The activity in this frame. Each event is returned once, whichever stream carries it. */
  take(said: StreamResponse): readonly ActivityUpdate[];
  /** The requests that were held back and cannot wait any longer. */
  rest(): readonly ActivityUpdate[];
  /** The bridge itself writes the request of a call it is asked about. */
  askedAbout(callId: string): void;
}

/** Recorded unchanged: these events hold nothing that has to be renamed. */
const PLAIN: ReadonlySet<EventKind> = new Set([
  'tool.completed',
  'tool.failed',
  'vendor.tollbridge.plan',
  'vendor.tollbridge.usage',
  'vendor.tollbridge.side_effect',
  'agent.reasoning_summary',
]);

export function createActivity(): Activity {
  const held = new Map<string, Fact>();
  /** The id of the last event that was returned. */
  let last = '';

  function rest(): ActivityUpdate[] {
    const reported = [...held.values()].map((fact): ActivityUpdate => ({ do: 'emit', fact }));
    held.clear();
    return reported;
  }

  function read(event: string, payload: JsonObject, at: string | undefined): readonly ActivityUpdate[] {
    if (event === 'tool.requested') {
      const request = observedRequest(payload);
      const before = rest();
      if (request) held.set(request.tool_call_id as string, { event, payload: request });
      return before;
    }
    const decision = toRemoteDecision(event, payload, at);
    if (decision) return [...rest(), { do: 'ruled', decision }];
    if (event === 'agent.handoff') {
      // The peer's own receipt names the receipts it links to.
      const { link: _link, ...handoff } = payload;
      return [...rest(), { do: 'emit', fact: { event, payload: handoff } }];
    }
    return isEventKind(event) && PLAIN.has(event) ? [...rest(), { do: 'emit', fact: { event, payload } }] : [];
  }

  return {
    rest,
    askedAbout: (callId) => void held.delete(callId),
    take({ payload }) {
      if (payload?.$case !== 'statusUpdate') return [];
      const reported = objectOf(payload.value.metadata?.[EXTENSIONS.activity]);
      const { event, cursor, at } = reported ?? {};
      const about = objectOf(reported?.payload);
      if (typeof event !== 'string' || typeof cursor !== 'string' || !about || cursor <= last) return [];
      last = cursor;
      return read(event, about, typeof at === 'string' ? at : undefined);
    },
  };
}

export function hasActivity({ payload }: StreamResponse): boolean {
  return payload?.$case === 'statusUpdate' && payload.value.metadata?.[EXTENSIONS.activity] !== undefined;
}

/** The reader's position in the peer's log after this frame (the resume extension). */
export function cursorOf({ payload }: StreamResponse): string | undefined {
  if (!payload || payload.$case === 'message') return undefined;
  const { cursor } = objectOf(payload.value.metadata?.[EXTENSIONS.resume]) ?? {};
  return typeof cursor === 'string' ? cursor : undefined;
}

function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}
