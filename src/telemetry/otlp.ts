/** Spans on their way to an OTLP collector. Loaded only when a configuration names one. Loses spans, never a request. */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Closable } from '../ports.ts';
import { createTraces } from './traces.ts';
import { createTraced, type Traced } from './wrap.ts';

export interface OtlpOptions {
  readonly endpoint: string;
  readonly serviceName?: string;
  readonly version: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How long a collector may take, while we run and when we leave. */
const PATIENCE_MS = 3_000;

export function openTelemetry(options: OtlpOptions): Traced & Closable {
  const { endpoint: url, headers } = options;
  return traceTo(new OTLPTraceExporter({ url, timeoutMillis: PATIENCE_MS, ...(headers && { headers }) }), options);
}

export function traceTo(
  exporter: SpanExporter,
  { serviceName = 'tollbridge', version }: Pick<OtlpOptions, 'serviceName' | 'version'>,
): Traced & Closable {
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': serviceName, 'service.version': version }),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: PATIENCE_MS })],
  });
  return {
    ...createTraced(createTraces(provider.getTracer('tollbridge', version))),
    close: () => provider.shutdown(),
  };
}
