/** Members of an event in the forms that commands take: how a task opens, its trace, what has no canonical place, a message. */
import type { JsonObject } from '../../../src/index.ts';
import { type AhpEvent, viaOf } from '../translate.ts';

export function openingOf(event: AhpEvent, framework: string | undefined) {
  const via = viaOf(event.metadata);
  return {
    input: { ahp: { first_event: event.event_type, session_id: event.session_id } },
    metadata: { claimed_at: event.timestamp, ...(framework && { framework }), ...(via.length > 0 && { via }) },
    ...traceOf(event),
  };
}

export function traceOf({ metadata }: AhpEvent): { trace_id?: string } {
  return typeof metadata?.trace_id === 'string' ? { trace_id: metadata.trace_id } : {};
}

/** Members of the event that have no canonical place. */
export function extOf({ timestamp, context, metadata }: AhpEvent, requestId?: string): JsonObject {
  return {
    ahp: {
      timestamp,
      ...(requestId !== undefined && { request_id: requestId }),
      ...(context && { context }),
      ...(metadata && { metadata }),
    },
  };
}

export function says(role: 'user' | 'assistant', text: string): JsonObject {
  return { message: { role, parts: [{ type: 'text', text, visibility: 'public' }] } };
}
