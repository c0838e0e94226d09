import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Bridge } from '../../src/ports/index.ts';
import { startGateway } from '../../src/runtime/gateway.ts';
import { createTraces } from '../../src/telemetry/traces.ts';
import { createTraced } from '../../src/telemetry/wrap.ts';
import { traceParentOf } from '../../src/transport/outbound/trace-context.ts';
import { ana } from '../support/gateway/actors.ts';
import { latch, scriptedAgent } from '../support/gateway/agents.ts';
import { openTestGateway, says } from '../support/gateway/test-gateway.ts';
import { countingTools } from '../support/gateway/tools.ts';
import { openDoor, text } from '../support/harn/gateway.ts';
import { configIn } from '../support/process/config-in.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const PARENT = { trace_id: TRACE, span_id: SPAN, sampled: true };

function tracing() {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const traces = createTraces(provider.getTracer('test'));
  return { traces, traced: createTraced(traces), spans: () => exporter.getFinishedSpans() };
}

function named(spans: readonly ReadableSpan[], name: string): ReadableSpan {
  const found = spans.filter((span) => span.name === name);
  expect(found.map((span) => span.name)).toEqual([name]);
  return found[0]!;
}

const RULES = `
- { id: reads, when: { effect: read }, then: allow, say: fine }
- { id: no-mail, when: { effect: send }, then: block, say: mail stays here }
`;

async function runtime(script: Parameters<typeof scriptedAgent>[0]) {
  const { traces, traced, spans } = tracing();
  const tools = countingTools({ look: { effect: 'read' }, mail: { effect: 'send' } });
  const at = await openTestGateway({
    agents: [traced.backend(scriptedAgent(script))],
    tools: [traced.tools(tools)],
    rules: RULES,
  });
  const bridge: Bridge = traced.bridge(at.bridge);
  const { session } = await at.room();
  const submit = (key: string, trace = PARENT) =>
    traces.from(trace, () =>
      bridge.submit({
        kind: 'task.submit',
        actor: { ...ana, door: 'harn' },
        idempotency: { key },
        body: { session_id: session, input: says('go') },
      }),
    );
  return { at, bridge, spans, submit };
}

test('a command and the acts that come of it are one trace, below the caller', async () => {
  const { at, spans, submit } = await runtime(async (sink) => {
    await sink.act({ kind: 'tool', tool: 'look', tool_call_id: 'c1', arguments: { where: 'under the secret stone' } });
    await sink.act({ kind: 'tool', tool: 'mail', tool_call_id: 'c2', arguments: {} });
    return undefined;
  });
  const { resource } = await submit('k1');
  await at.until(resource.id);
  const command = named(spans(), 'command task.submit');
  const look = named(spans(), 'act look');
  const ran = named(spans(), 'tool look');
  const mail = named(spans(), 'act mail');
  expect(command.parentSpanContext?.spanId).toBe(SPAN);
  expect(look.parentSpanContext?.spanId).toBe(command.spanContext().spanId);
  expect(ran.parentSpanContext?.spanId).toBe(look.spanContext().spanId);
  expect(mail.parentSpanContext?.spanId).toBe(command.spanContext().spanId);
  expect(new Set(spans().map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE]));
  expect(command.attributes).toMatchObject({
    'tollbridge.command': 'task.submit',
    'tollbridge.actor.kind': 'person',
    'tollbridge.door': 'harn',
    'tollbridge.task.id': resource.id,
  });
  expect(look.attributes).toMatchObject({ 'tollbridge.tool': 'look', 'tollbridge.result': 'ok' });
  expect(mail.attributes).toMatchObject({ 'tollbridge.result': 'refused', 'tollbridge.verdict': 'block' });
  expect(JSON.stringify(spans().map(({ name, attributes }) => [name, attributes]))).not.toContain('secret stone');
  const [submitted] = (await at.events(resource.id)).filter(({ event }) => event === 'task.submitted');
  expect(submitted?.trace_id).toBe(TRACE);
});

test('a command that comes with no trace begins one, and its events name it', async () => {
  const { at, bridge, spans } = await runtime(async () => undefined);
  const { session } = await at.room();
  const { resource } = await bridge.submit({
    kind: 'task.submit',
    actor: ana,
    body: { session_id: session, input: says('go') },
  });
  await at.until(resource.id);
  const { traceId } = named(spans(), 'command task.submit').spanContext();
  expect(traceId).toMatch(/^[0-9a-f]{32}$/);
  const [submitted] = (await at.events(resource.id)).filter(({ event }) => event === 'task.submitted');
  expect(submitted?.trace_id).toBe(traceId);
});

test('work that waited its turn belongs to the command that gave it', async () => {
  const gate = latch();
  let first = true;
  const { at, spans, submit } = await runtime(async (sink) => {
    const tool = first ? 'look' : 'mail';
    first = false;
    if (tool === 'look') await gate.promise;
    await sink.act({ kind: 'tool', tool, tool_call_id: 'c1', arguments: {} });
    return undefined;
  });
  const other = { trace_id: 'f'.repeat(32), span_id: 'e'.repeat(16), sampled: true };
  const one = await submit('k1');
  const two = await submit('k2', other);
  gate.open();
  await at.until(one.resource.id);
  await at.until(two.resource.id);
  expect(named(spans(), 'act look').spanContext().traceId).toBe(TRACE);
  expect(named(spans(), 'act mail').spanContext().traceId).toBe('f'.repeat(32));
});

test('what fails says its kind and none of its words', async () => {
  const { bridge, spans } = await runtime(async () => undefined);
  const body = { session_id: 'session_of_another', input: says('go') };
  await expect(bridge.submit({ kind: 'task.submit', actor: ana, body })).rejects.toThrow();
  const failed = named(spans(), 'command task.submit');
  expect(failed.status).toEqual({ code: 2, message: 'not_found' });
  expect(failed.events).toEqual([]);
});

test.each([
  [`00-${TRACE}-${SPAN}-01`, { trace_id: TRACE, span_id: SPAN, sampled: true }],
  [`00-${TRACE}-${SPAN}-00`, { trace_id: TRACE, span_id: SPAN, sampled: false }],
  [`cc-${TRACE}-${SPAN}-01-what-comes-later`, { trace_id: TRACE, span_id: SPAN, sampled: true }],
  [`00-${TRACE}-${SPAN}-01-more`, undefined],
  [`ff-${TRACE}-${SPAN}-01`, undefined],
  [`00-${'0'.repeat(32)}-${SPAN}-01`, undefined],
  [`00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
  [`00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
  ['nonsense', undefined],
])('traceparent %s', (header, expected) => {
  expect(traceParentOf({ headers: { traceparent: header }, headersDistinct: { traceparent: [header] } })).toEqual(
    expected,
  );
  const twice = {
    headers: { traceparent: `${header}, ${header}` },
    headersDistinct: { traceparent: [header, header] },
  };
  expect(traceParentOf(twice)).toBeUndefined();
});

test('without telemetry the trace a request names stands in the log and in the receipt', async () => {
  const door = await openDoor({ agents: [scriptedAgent(async () => undefined)] });
  const { session } = await door.room();
  const body = { input: text('hello') };
  const made = await door.call('POST', `/v1/sessions/${session}/tasks`, body, {
    traceparent: `00-${TRACE}-${SPAN}-01`,
  });
  await door.at.until(made.body.id);
  const [submitted] = (await door.at.events(made.body.id)).filter(({ event }) => event === 'task.submitted');
  expect(submitted?.trace_id).toBe(TRACE);
  const [receipt] = await door.at.receipts(made.body.id);
  expect(JSON.stringify(receipt)).toContain(TRACE);
});

test('a configured collector gets the spans, with the header its secret makes', async () => {
  const bodies: string[] = [];
  const asked: (string | undefined)[] = [];
  const collector = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      bodies.push(body);
      asked.push(request.headers['x-collector-key'] as string | undefined);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  onTestFinished(() => void collector.close());
  const dir = await mkdtemp(join(tmpdir(), 'tb-traces-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const { port } = collector.address() as AddressInfo;
  await writeFile(
    join(dir, 'tollbridge.yaml'),
    `telemetry: { traces: { endpoint: 'http://127.0.0.1:${port}/v1/traces', service_name: bridge-1, headers: { x-collector-key: env:COLLECTOR } } }`,
  );
  process.env.TOLLBRIDGE_SECRET_COLLECTOR = 'collector-key-of-the-tests';
  onTestFinished(() => {
    delete process.env.TOLLBRIDGE_SECRET_COLLECTOR;
  });
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  const headers = {
    'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
    'content-type': 'application/json',
    authorization: `Bearer ${gateway.token}`,
    traceparent: `00-${TRACE}-${SPAN}-01`,
  };
  const body = JSON.stringify({ workspace_id: 'workspace_default' });
  const made = await fetch(new URL('/v1/sessions', gateway.url), { method: 'POST', headers, body });
  expect(made.status).toBe(201);
  await gateway.close();
  const sent = JSON.parse(bodies.at(-1)!);
  const [{ resource, scopeSpans }] = sent.resourceSpans;
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'bridge-1' } });
  const spans = scopeSpans.flatMap(
    (each: { spans: { name: string; traceId: string; parentSpanId?: string }[] }) => each.spans,
  );
  expect(spans).toContainEqual(
    expect.objectContaining({ name: 'command session.create', traceId: TRACE, parentSpanId: SPAN }),
  );
  expect(asked.at(-1)).toBe('collector-key-of-the-tests');
});

test('without the packages of the exporter the gateway does not start, and says what to install', async () => {
  vi.doMock('@opentelemetry/sdk-trace', () => {
    throw new Error("Cannot find package '@opentelemetry/sdk-trace'");
  });
  vi.resetModules();
  onTestFinished(() => {
    vi.doUnmock('@opentelemetry/sdk-trace');
    vi.resetModules();
  });
  const dir = await mkdtemp(join(tmpdir(), 'tb-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(
    join(dir, 'tollbridge.yaml'),
    'telemetry: { traces: { endpoint: "http://127.0.0.1:9/v1/traces" } }\n',
  );
  const { startGateway: start } = await import('../../src/runtime/gateway.ts');
  const started = start(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  await expect(started).rejects.toThrow(/npm install @opentelemetry\/exporter-trace-otlp-http/);
});
