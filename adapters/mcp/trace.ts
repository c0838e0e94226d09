/** Trace context inside MCP requests: `traceparent` and `tracestate` are reserved members of `_meta` in every transport. */
import { isObject, type JsonObject } from '../../src/index.ts';
import {
  outgoingTrace,
  readTraceParent,
  type TraceMembers,
  traceMembers,
} from '../../src/transport/outbound/trace-context.ts';
import { metaOf } from './frames.ts';

/** The trace that the request names in `_meta`. */
export function traceInMeta(params: JsonObject | undefined): TraceMembers | undefined {
  const meta = params?._meta;
  if (!isObject(meta) || typeof meta.traceparent !== 'string') return undefined;
  const parent = readTraceParent(meta.traceparent, meta.tracestate);
  return parent && traceMembers(parent);
}

/**
 * Puts a span of ours where the sender named its own: the next hop is a child of our span, not of the sender's. `bare`: the
 * transport carries no headers, so the trace that the sender named in a header has to be put into `_meta`.
 */
export function withOwnSpan(params: JsonObject, trace: TraceMembers | undefined, bare: boolean): JsonObject {
  const meta = metaOf(params);
  if (!trace?.trace_id || !(bare || typeof meta.traceparent === 'string')) return params;
  return { ...params, _meta: { ...meta, ...outgoingTrace(trace) } };
}
