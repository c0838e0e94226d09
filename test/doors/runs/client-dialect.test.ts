/** Servers that are not ours: older, odder, or out to harm. What they say is read as far as it means something, and no further. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { tagsFor, toWireInput } from '../../../adapters/runs/client/submit.ts';
import { toEvent } from '../../../adapters/runs/client/watch.ts';
import { runs as adapter } from '../../../adapters/runs/index.ts';
import { check } from '../../../src/model/validate.ts';
import { of, openTestGateway, says } from '../../support/gateway/test-gateway.ts';
import { remoteAgent } from '../../support/runs/two-gateways.ts';

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;
const json = (response: ServerResponse, body: unknown, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};

/** A server that does what a test says; what is not said is a run that is still at work. */
async function openServer(routes: Readonly<Record<string, Handler>>) {
  const calls: string[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const path = request.url?.split('?')[0] ?? '';
    calls.push(`${request.method} ${path} ${body}`.trim());
    const route = routes[`${request.method} ${path}`];
    if (route) route(request, response, body);
    else if (request.method === 'POST' && path === '/v1/runs') json(response, { id: 'r1', status: 'queued' }, 201);
    else if (path === '/v1/runs/r1') json(response, { id: 'r1', status: 'running' });
    else json(response, { error: 'not_found', reason_code: 'NOPE', request_id: 'x' }, 404);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls };
}

async function input(routes: Readonly<Record<string, Handler>>, timeouts = {}) {
  const server = await openServer(routes);
  const agent = remoteAgent(server.url, { timeouts: { poll_ms: 20, silence_ms: 400, ...timeouts } });
  const near = await openTestGateway({ agents: [agent], rules: '[{ id: all, then: allow }]', clock: real as never });
  const room = await near.room();
  const { id } = await room.task({ input: says('go') });
  return { near, id, server };
}
const real = { now: () => new Date().toISOString() };

const event = (seq: number, type: string, value: object = {}) => ({
  seq,
  type,
  timestamp: '2026-01-01T00:00:00Z',
  payload: { redacted: false, value },
});
const events =
  (all: object[]): Handler =>
  (request, response) => {
    const cursor = Number(new URL(request.url ?? '', 'http://x').searchParams.get('cursor'));
    const rest = all.filter((each) => ((each as { seq?: number }).seq ?? 0) > cursor);
    json(response, { events: rest, next_cursor: 99 });
  };
const stream =
  (...frames: string[]): Handler =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.end(frames.join(''));
  };
const frame = (each: object) => `event: run_event\ndata: ${JSON.stringify(each)}\n\n`;
const DONE = event(9, 'run.worker.succeeded', { from_status: 'running', to_status: 'succeeded', reason_code: null });

describe('what is read', () => {
  test('frames without ids, with other line ends, comments and nonsense in between', async () => {
    const odd = [
      ': hi\r\n\r\n',
      'data: not json\n\n',
      'event: run_event\r\ndata: {"seq":1,"type":"run.created","payload":{"redacted":true,"value":{}}}\r\n\r\n',
      'data: {"type":"no number"}\n\n',
      'data: []\n\n',
      frame(event(2, 'step.done', { task_id: 's 1/ä', content: 'hello', outcome: 'succeeded' })),
      frame(event(2, 'step.done', { task_id: 's', content: 'twice', outcome: 'succeeded' })),
      frame(event(3, 'run.worker.succeeded')),
    ];
    const { near, id } = await input({ 'GET /v1/runs/r1/events/stream': stream(...odd) });
    expect((await near.until(id)).status).toBe('COMPLETED');
    const messages = of(await near.events(id), 'agent.message');
    expect(messages.map(({ payload }) => (payload.message as { parts: unknown }).parts)).toEqual([
      [{ type: 'text', text: 'hello', visibility: 'public' }],
    ]);
  });

  test('a gap is filled by asking; what cannot be had is admitted', async () => {
    const said = (seq: number) => event(seq, 'step.done', { content: `m${seq}`, outcome: 'succeeded' });
    const { near, id } = await input({
      'GET /v1/runs/r1/events/stream': stream(frame(said(1)), frame(said(4)), frame({ ...DONE, seq: 7 })),
      'GET /v1/runs/r1/events': events([said(1), said(2), said(3), said(4), said(6), { ...DONE, seq: 7 }]),
    });
    await near.until(id);
    const reported = of(await near.events(id), 'agent.message').map(
      ({ payload }) => JSON.stringify(payload).match(/m\d/)?.[0],
    );
    expect(reported).toEqual(['m1', 'm2', 'm3', 'm4', 'm6']);
    const [receipt] = await near.receipts(id);
    expect(receipt?.metadata?.not_reported).toContain('some events of the remote could not be had');
  });

  test('a word it has for what we do not know is kept and shown, and is never success', async () => {
    const { near, id } = await input({
      'GET /v1/runs/r1/events/stream': stream(
        frame(event(1, 'run.teleported', { to: 'mars' })),
        frame(event(2, 'step.progress', { kind: 'humming' })),
        frame(event(3, 'run.tool.invoked', { tool_call_id: 'c', tool_name: 't', tool_outcome: 'perhaps' })),
        frame(event(4, 'step.done', { content: 'x', outcome: 'retry_step', reason_code: 'flaky' })),
        frame(event(5, 'run.limit_exceeded', {})),
        frame(event(6, 'run.worker.failed', { reason_code: 'limit_exceeded' })),
      ),
    });
    expect(await near.until(id)).toMatchObject({ status: 'FAILED', failure: { code: 'limit_exceeded' } });
    const reported = await near.events(id);
    expect(of(reported, 'vendor.runs.teleported')[0]?.payload).toEqual({
      type: 'run.teleported',
      value: { to: 'mars' },
    });
    expect(of(reported, 'vendor.runs.step_progress')).toHaveLength(1);
    expect(of(reported, 'tool.failed')[0]?.payload).toMatchObject({ code: 'perhaps', status: 'error' });
    expect(of(reported, 'span.failed')[0]?.payload).toMatchObject({ outcome: 'retry_step', reason_code: 'flaky' });
    expect(of(reported, 'agent.message')).toEqual([]);
  });

  test('a state we have never met is not success, and does not last forever', async () => {
    const { near, id } = await input({
      'GET /v1/runs/r1': (_request, response) => json(response, { id: 'r1', status: 'marvellous' }),
      'GET /v1/runs/r1/events': events([]),
    });
    expect(await near.until(id)).toMatchObject({ status: 'FAILED', failure: { code: 'upstream_unavailable' } });
    expect(of(await near.events(id), 'vendor.tollbridge.note')[0]?.payload).toMatchObject({ status: 'marvellous' });
  });

  test('an end that was only seen by looking is an end', async () => {
    const { near, id } = await input({
      'GET /v1/runs/r1': (_request, response) => json(response, { id: 'r1', status: 'succeeded' }),
      'GET /v1/runs/r1/events': events([event(1, 'step.done', { content: 'late', outcome: 'succeeded' })]),
    });
    expect((await near.until(id)).status).toBe('COMPLETED');
    expect(of(await near.events(id), 'agent.message')).toHaveLength(1);
  });

  test('an approval without any names is asked about all the same, and answered by a signal with a key', async () => {
    let answered = false;
    const { near, id, server } = await input({
      'GET /v1/runs/r1/events': (request, response) =>
        events([
          event(1, 'step.progress', { kind: 'tool_call_start', tool_call_id: 'c1', tool_name: 'launch' }),
          event(2, 'run.awaiting_input', { reason_code: 'needs_approval', input_kind: 'approval' }),
          ...(answered ? [event(3, 'run.signal_applied', { action: 'approve' }), { ...DONE, seq: 4 }] : []),
        ])(request, response, ''),
      'POST /v1/runs/r1/signal': (_request, response) => {
        answered = true;
        json(response, { ok: true });
      },
    });
    expect((await near.until(id)).status).toBe('COMPLETED');
    const [signal] = server.calls.filter((call) => call.startsWith('POST /v1/runs/r1/signal'));
    expect(JSON.parse(signal!.slice('POST /v1/runs/r1/signal '.length))).toMatchObject({
      action: 'approve',
      idempotency_key: `tollbridge-${id}.run2`,
    });
    const reported = await near.events(id);
    expect(of(reported, 'tool.requested').map(({ payload }) => `${payload.tool_call_id} ${payload.name}`)).toEqual([
      'c1 launch',
    ]);
  });
});

describe('what is refused', () => {
  test.each([
    [
      'a redirect',
      (_: IncomingMessage, response: ServerResponse) =>
        response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
    ],
    [
      'a refusal',
      (_: IncomingMessage, response: ServerResponse) =>
        json(response, { error: 'forbidden', reason_code: 'NO', request_id: 'x' }, 403),
    ],
    ['no name', (_: IncomingMessage, response: ServerResponse) => json(response, { status: 'queued' }, 201)],
  ])(
    '%s to a new run fails the task',
    async (_what, route) => {
      const { near, id } = await input({ 'POST /v1/runs': route as Handler });
      expect(await near.until(id)).toMatchObject({ status: 'FAILED', failure: { code: expect.any(String) } });
    },
    20_000,
  );

  test('a run whose name leads elsewhere is kept where it belongs', async () => {
    const { near, id, server } = await input({
      'POST /v1/runs': (_request, response) => json(response, { id: '../../admin', status: 'queued' }, 201),
    });
    expect((await near.until(id)).status).toBe('FAILED');
    expect(server.calls.some((call) => call.includes('/admin') && !call.includes('/v1/runs/'))).toBe(false);
  });

  test('a key is not sent where it can be read on the way, and addresses have no secrets in them', () => {
    const open = (url: string) => () =>
      adapter.parts.backend.open({ url }, { name: 'far', log: {}, secret: {} } as never);
    expect(open('http://harness.example')).toThrow('a remote has to be https, or on this machine');
    expect(open('https://me:pw@harness.example')).toThrow('has no user, query or fragment');
    expect(open('https://harness.example/api')).not.toThrow();
    const config = (value: unknown) => () =>
      check(adapter.parts.backend.configSchema as never, value, 'agents.far.runs');
    expect(config({ url: 'https://x.example', secret: 'k', on_stalled: 'wait' })).not.toThrow();
    expect(config({ url: 'https://x.example', token: 'in the open' })).toThrow();
    expect(config({})).toThrow('url');
  });
});

describe('what is sent', () => {
  const text = (said: string, visibility = 'public') => ({ type: 'text', text: said, visibility });

  test.each([
    ['a text', [text('hi')], { user_query: 'hi' }],
    ['texts', [text('hi'), text('there')], { user_query: 'hi\nthere' }],
    ['an object', [{ type: 'json', value: { a: 1 }, visibility: 'public' }], { a: 1 }],
    [
      'an object and the text in it',
      [text('hi'), { type: 'json', value: { q: 'hi' }, visibility: 'public' }],
      { q: 'hi' },
    ],
    [
      'a text beside an object',
      [text('hi'), { type: 'json', value: { a: 1 }, visibility: 'public' }],
      { a: 1, user_query: 'hi' },
    ],
    ['a list', [{ type: 'json', value: [1], visibility: 'public' }], { values: [[1]] }],
    ['what is for receipts only', [text('hi'), text('secret', 'receipt_only')], { user_query: 'hi' }],
  ])('%s', (_what, parts, body) => {
    expect(toWireInput({ role: 'user', parts } as never, [], 'user_query').body).toEqual(body);
  });

  test('files by their address, and tags at the nearest place that can be named', () => {
    const file = { type: 'file_ref', uri: 'https://f.example/a', mime_type: 'a/b', visibility: 'public' };
    expect(toWireInput({ role: 'user', parts: [file] } as never, [], 'q')).toEqual({
      body: {},
      files: ['https://f.example/a'],
    });
    const value = { input: { a: [{ password: 'p' }], 'odd key': { token: 't' } }, metadata: { credit: 1 } };
    expect(tagsFor(value)).toEqual([
      { path: '$.input.a[0].password', classification: 'credential' },
      { path: '$.input', classification: 'credential' },
      { path: '$.metadata.credit', classification: 'financial' },
    ]);
  });

  test.each([
    [undefined, undefined],
    [{ seq: 0, type: 'x' }, undefined],
    [{ seq: 1.5, type: 'x' }, undefined],
    [{ seq: 1 }, undefined],
    [
      { seq: 1, type: 'x' },
      { seq: 1, type: 'x', value: {} },
    ],
    [
      { seq: 1, type: 'x', payload: { a: 1 } },
      { seq: 1, type: 'x', value: { a: 1 } },
    ],
    [
      { seq: 1, type: 'x', payload: { redacted: true, value: null } },
      { seq: 1, type: 'x', value: {} },
    ],
  ])('%j is read as %j', (input_, read) => {
    expect(toEvent(input_)).toEqual(read);
  });
});
