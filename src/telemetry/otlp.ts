/** Exports spans to an OTLP collector. Loaded only when the configuration names one. Loses spans, never a request. */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Closable } from '../ports/index.ts';
import { createTraces } from './traces.ts';
import { createTraced, type Traced } from './wrap.ts';

export interface OtlpOptions {
  readonly endpoint: string;
  readonly serviceName?: string;
  readonly version: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Timeout of an export, while running and at shutdown. */
const TIMEOUT_MS = 3_000;

export function openTelemetry(options: OtlpOptions): Traced & Closable {
  const { endpoint: url, headers } = options;
  return traceTo(new OTLPTraceExporter({ url, timeoutMillis: TIMEOUT_MS, ...(headers && { headers }) }), options);
}

export function traceTo(
  exporter: SpanExporter,
  { serviceName = 'tollbridge', version }: Pick<OtlpOptions, 'serviceName' | 'version'>,
): Traced & Closable {
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': serviceName, 'service.version': version }),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: TIMEOUT_MS })],
  });
  return {
    ...createTraced(createTraces(provider.getTracer('tollbridge', version))),
    close: () => provider.shutdown(),
  };
}
