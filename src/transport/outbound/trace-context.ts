/**
 * W3C trace context, in and out: the trace and parent span of an incoming request, and the headers every outgoing
 * request carries. A malformed `traceparent` is ignored.
 */
import { createHash, randomFillSync } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export interface TraceParent {
  readonly trace_id: string;
  readonly span_id: string;
  readonly sampled: boolean;
  /** The `tracestate` beside it, passed on unchanged. */
  readonly state?: string;
}

/** A trace as commands and tasks carry it. */
export interface TraceMembers {
  readonly trace_id?: string;
  readonly tracestate?: string;
  /** Only set when the caller's trace is not sampled. */
  readonly trace_flags?: string;
}

/** Version 00 is exact; later versions may continue after a dash. All-zero ids are invalid, and `ff` is no version. */
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** The length that has to be passed on, and no character that could end a header. */
const STATE = /^[\x20-\x7e]{1,512}$/;
const TRACE_ID = /^(?!0{32})[0-9a-f]{32}$/;

export function traceParentOf(request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>): TraceParent | undefined {
  // Most requests have none, and building `headersDistinct` to find that out costs more than everything else here.
  if (request.headers.traceparent === undefined) return undefined;
  const headers = request.headersDistinct.traceparent ?? [];
  const { tracestate } = request.headers;
  return headers.length === 1
    ? readTraceParent(headers[0]!, Array.isArray(tracestate) ? tracestate.join() : tracestate)
    : undefined;
}

/** The same for protocols that carry the header's value in a body. */
export function readTraceParent(text: string, state?: unknown): TraceParent | undefined {
  const [, version, trace_id, span_id, flags, more] = FORM.exec(text) ?? [];
  if (!trace_id || !span_id || (version === '00' && more !== undefined)) return undefined;
  const sampled = (Number.parseInt(flags!, 16) & 1) === 1;
  const passed = typeof state === 'string' && STATE.test(state) ? { state } : {};
  return { trace_id, span_id, sampled, ...passed };
}

/** For a command: the trace it is part of. */
export function traceMembers(parent: TraceParent | undefined): TraceMembers {
  if (!parent) return {};
  const { trace_id, sampled, state } = parent;
  return { trace_id, ...(state && { tracestate: state }), ...(!sampled && { trace_flags: '00' }) };
}

/** The trace a task belongs to; work that came without one has one of its own, the same for all its requests. */
export function taskTrace({ id, metadata }: { readonly id: string; readonly metadata: object }): TraceMembers {
  const { tollbridge } = metadata as { tollbridge?: TraceMembers };
  const { trace_id, tracestate, trace_flags } = tollbridge ?? {};
  if (trace_id && TRACE_ID.test(trace_id)) {
    return { trace_id, ...(tracestate && { tracestate }), ...(trace_flags && { trace_flags }) };
  }
  return { trace_id: createHash('sha256').update(`trace ${id}`).digest('hex').slice(0, 32) };
}

export type TraceHeaders = { readonly traceparent: string; readonly tracestate?: string };

/**
 * The headers of one outgoing request: in this trace, or in one of its own, and each time with a new span id. Where
 * spans are recorded, the request belongs to the span that is open now.
 */
export function outgoingTrace(trace: TraceMembers = {}): TraceHeaders {
  const open = current?.();
  const known = trace.trace_id && TRACE_ID.test(trace.trace_id) ? trace.trace_id : undefined;
  // An open span of another trace belongs to other work.
  const span = open && (!known || open.trace_id === known) ? open : undefined;
  const flags = (span ? span.sampled : trace.trace_flags !== '00') ? '01' : '00';
  const traceparent = `00-${span?.trace_id ?? known ?? fresh(16)}-${span?.span_id ?? fresh(8)}-${flags}`;
  const { tracestate } = trace;
  return tracestate && STATE.test(tracestate) ? { traceparent, tracestate } : { traceparent };
}

let current: (() => TraceParent | undefined) | undefined;

/** Registers the function that finds the open span. Undefined: spans are no longer recorded. */
export function openSpans(find: typeof current): void {
  current = find;
}

/** Random ids come from a pool: requesting a few bytes at a time costs more than the rest of the headers. */
const POOL = Buffer.alloc(4096);
let used = POOL.length;

function fresh(bytes: number): string {
  if (used + bytes > POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  const name = POOL.toString('hex', used, used + bytes);
  used += bytes;
  // All-zero ids are invalid, however unlikely.
  return /^0+$/.test(name) ? fresh(bytes) : name;
}
