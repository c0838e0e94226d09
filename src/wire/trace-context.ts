/** The W3C `traceparent` header: where in somebody's trace a request stands. One that is not exactly right is none. */
import type { IncomingMessage } from 'node:http';

export interface TraceParent {
  readonly trace_id: string;
  readonly span_id: string;
  readonly sampled: boolean;
}

/** Version 00 is exact; later ones may go on after a dash. All zeros name nothing, and `ff` is no version. */
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

export function traceParentOf(request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>): TraceParent | undefined {
  // Most have none, and to take all headers apart to find that out costs more than everything else here.
  if (request.headers.traceparent === undefined) return undefined;
  const given = request.headersDistinct.traceparent ?? [];
  return given.length === 1 ? readTraceParent(given[0]!) : undefined;
}

/** The same words where a protocol carries them in a body. */
export function readTraceParent(text: string): TraceParent | undefined {
  const [, version, trace_id, span_id, flags, more] = FORM.exec(text) ?? [];
  if (!trace_id || !span_id || (version === '00' && more !== undefined)) return undefined;
  return { trace_id, span_id, sampled: (Number.parseInt(flags!, 16) & 1) === 1 };
}
