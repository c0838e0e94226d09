/**
 * OpenTelemetry spans. They are wrapped round the parts of the runtime when it is assembled, so no part knows of them.
 * Spans hold the operation, the kind of actor and the outcome; never messages, questions or answers.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { asFault } from '../model/faults.ts';
import { openSpans, type TraceParent } from '../transport/outbound/trace-context.ts';

/** Position of the running code in a trace. */
export interface TracePosition {
  readonly context: Context;
  /** Set by the first work that began in it: work started later from the queue belongs to another command. */
  taken?: boolean;
}

export interface Traces {
  /** Runs `work` in a span of its own below the current one. Errors pass through; their kind is recorded. */
  span<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>, kind?: SpanKind): Promise<T>;
  /** Runs `work` as part of the incoming request's trace. */
  from<T>(parent: TraceParent | undefined, work: () => T): T;
  within<T>(standing: TracePosition | undefined, work: () => T): T;
  standing(): TracePosition | undefined;
}

export function createTraces(tracer: Tracer): Traces {
  const here = new AsyncLocalStorage<TracePosition>();
  // Outgoing requests are children of the span that is open when they leave.
  openSpans(() => {
    const context = here.getStore()?.context;
    const open = context && trace.getSpanContext(context);
    // A remote span is not ours to pass on as our own.
    if (!open || open.isRemote || /^0+$/.test(open.traceId)) return undefined;
    const sampled = (open.traceFlags & TraceFlags.SAMPLED) === TraceFlags.SAMPLED;
    return { trace_id: open.traceId, span_id: open.spanId, sampled };
  });

  return {
    async span(name, attributes, work, kind = SpanKind.INTERNAL) {
      const parent = here.getStore()?.context ?? ROOT_CONTEXT;
      const span = tracer.startSpan(name, { kind, attributes }, parent);
      try {
        return await here.run({ context: trace.setSpan(parent, span) }, () => work(span));
      } catch (thrown) {
        const { kind } = asFault(thrown);
        span.setAttribute('error.type', kind);
        span.setStatus({ code: SpanStatusCode.ERROR, message: kind });
        throw thrown;
      } finally {
        span.end();
      }
    },
    from(parent, work) {
      if (!parent) return here.run({ context: ROOT_CONTEXT }, work);
      const spanContext = {
        traceId: parent.trace_id,
        spanId: parent.span_id,
        traceFlags: parent.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
        isRemote: true,
      };
      return here.run({ context: trace.setSpanContext(ROOT_CONTEXT, spanContext) }, work);
    },
    within(standing, work) {
      return here.run({ context: standing?.context ?? ROOT_CONTEXT }, work);
    },
    standing: () => here.getStore(),
  };
}
