/**
 * Spans, for whoever wants to see where time goes. Wrapped round the parts of the house when it is put together, so no
 * part knows of it. Says what was done, by which kind of actor and how it ended; never what was said, asked or answered.
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
import type { TraceParent } from '../wire/trace-context.ts';

/** Where the code that runs now stands in a trace. */
export interface Standing {
  readonly context: Context;
  /** Set by the first work that began in it: work queued behind that is somebody else's. */
  taken?: boolean;
}

export interface Traces {
  /** Runs `work` in a span of its own below wherever it is called from. What it throws goes through, its kind is noted. */
  span<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>, kind?: SpanKind): Promise<T>;
  /** Runs `work` as part of the trace it came in with. */
  from<T>(parent: TraceParent | undefined, work: () => T): T;
  within<T>(standing: Standing | undefined, work: () => T): T;
  standing(): Standing | undefined;
}

export function createTraces(tracer: Tracer): Traces {
  const here = new AsyncLocalStorage<Standing>();

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
