/** W3C trace context on everything that leaves: the trace it came in with goes on, each request has a span of its own. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openWebhooks } from '../../src/inbox/webhook.ts';
import { postOut, requestOut } from '../../src/transport/outbound/public-fetch.ts';
import { outgoingTrace, readTraceParent, taskTrace, traceMembers } from '../../src/transport/outbound/trace-context.ts';
import { openPeer, wire } from '../support/a2a/gateway.ts';
import { action, NEVER, upstream, WELCOME } from '../support/ahp/harness.ts';
import { quick } from '../support/gateway/agents.ts';
import { openGateways, WORK_PROTOCOLS } from '../support/gateway/two-gateways.ts';
import { OPEN, quiet, RULES, real } from '../support/harn/two-gateways.ts';
import { openMcpGateway } from '../support/mcp/gateway.ts';
import { openUpstream } from '../support/mcp/upstream.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const FORM = /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/;

const idsIn = (headers: readonly (string | undefined)[]) => headers.map((text) => readTraceParent(text ?? ''));

/** A server that answers everything alike and remembers how it was asked. */
async function recorder(answer: object | ((body: string) => object) = {}) {
  const received: IncomingHttpHeaders[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    received.push(request.headers);
    const at = bodies.push('') - 1;
    request
      .on('data', (piece) => {
        bodies[at] += piece;
      })
      .on('end', () =>
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify(typeof answer === 'function' ? answer(bodies[at]!) : answer)),
      );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, host: `127.0.0.1:${port}`, received, bodies };
}

describe.each(WORK_PROTOCOLS)('work given over %s', (protocol) => {
  const trace = { trace_id: TRACE, tracestate: 'vendor=1,other=2' };

  test('every request is part of the trace the work came with, under a span of its own', async () => {
    const two = await openGateways(protocol, { far: { rules: OPEN }, near: { rules: OPEN } });
    const id = await two.give('hello', trace);
    await two.near.until(id);
    const calls = two.relay.calls.filter(({ method, path }) => method === 'POST' || path.includes('/stream'));
    expect(calls.length).toBeGreaterThan(0);
    const parents = idsIn(calls.map(({ headers }) => headers.traceparent as string));
    expect(parents.map((parent) => parent?.trace_id)).toEqual(calls.map(() => TRACE));
    expect(new Set(parents.map((parent) => parent?.span_id)).size).toBe(calls.length);
    expect(calls.map(({ headers }) => headers.tracestate)).toEqual(calls.map(() => 'vendor=1,other=2'));
    for (const { headers } of two.relay.calls) expect(headers.traceparent).toMatch(FORM);
    // It is the far gateway's trace now, and its receipt names it.
    const [receipt] = await two.far.receipts(await two.farTask());
    expect(receipt?.identifiers.trace_id).toBe(TRACE);
  });

  test('work that came without one has one trace for all its requests', async () => {
    const two = await openGateways(protocol, { far: { rules: OPEN }, near: { rules: OPEN } });
    const id = await two.give('hello');
    await two.near.until(id);
    const posts = two.relay.calls.filter(({ method }) => method === 'POST');
    const { trace_id } = taskTrace({ id, metadata: {} });
    expect(
      new Set(idsIn(posts.map(({ headers }) => headers.traceparent as string)).map((each) => each?.trace_id)),
    ).toEqual(new Set([trace_id]));
  });
});

describe('MCP', () => {
  const ask = (url: string, meta: object, headers: Record<string, string> = {}) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'look',
        ...headers,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'look',
          arguments: {},
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': {},
            ...meta,
          },
        },
      }),
    });

  test.each([
    ['in its headers', {}, { traceparent: PARENT, tracestate: 'vendor=1' }],
    ['in _meta', { traceparent: PARENT, tracestate: 'vendor=1' }, {}],
  ] as const)('a call that says its trace %s is passed on in that trace', async (where, meta, headers) => {
    const server = await openUpstream({
      tools: { look: { call: () => ({ content: [{ type: 'text', text: 'seen' }] }) } },
    } as never);
    const gateway = await openMcpGateway({ upstreams: { up: { url: server.url } } });
    onTestFinished(async () => {
      await gateway.close();
      await server.close();
    });
    const answer = await ask(gateway.at('up'), meta, headers);
    expect(await answer.text()).toContain('seen');
    const [call] = server.asked.filter(({ method }) => method === 'tools/call');
    const parent = readTraceParent(call?.headers.traceparent ?? '');
    expect(parent?.trace_id).toBe(TRACE);
    expect(parent?.span_id).not.toBe('b7ad6b7169203331');
    expect(call?.headers.tracestate).toBe('vendor=1');
    if (where === 'in _meta') {
      const inside = readTraceParent(call?.params._meta.traceparent);
      expect(inside).toMatchObject({ trace_id: TRACE });
      expect(inside?.span_id).not.toBe('b7ad6b7169203331');
    }
    for (const { headers: sent } of server.asked) expect(sent.traceparent).toMatch(FORM);
  });

  test('a child of ours has no headers: the trace a call came in is reported in the call itself, and none is made up', async () => {
    const gateway = await openMcpGateway({ upstreams: { up: { command: [process.execPath, '-e', CHILD] } } });
    onTestFinished(() => gateway.close());
    const said = async (headers: Record<string, string>) =>
      JSON.parse(JSON.parse(await (await ask(gateway.at('up'), {}, headers)).text()).result.content[0].text);
    const { _meta } = await said({ traceparent: PARENT, tracestate: 'vendor=1' });
    expect(readTraceParent(_meta.traceparent)).toMatchObject({ trace_id: TRACE });
    expect(_meta.traceparent).not.toBe(PARENT);
    expect(_meta.tracestate).toBe('vendor=1');
    expect((await said({}))._meta?.traceparent).toBeUndefined();
  });
});

/** A server that answers a call with what it was asked. */
const CHILD = `
const say = (frame) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...frame }) + '\\n');
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') return say({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
  if (method === 'tools/list') return say({ id, result: { tools: [{ name: 'look', inputSchema: { type: 'object' } }] } });
  if (method !== 'tools/call') return say({ id, error: { code: -32601, message: 'no such method' } });
  say({ id, result: { content: [{ type: 'text', text: JSON.stringify(params) }] } });
});
`;

test('an outside harness is asked in the trace of the act', async () => {
  const { url, received } = await recorder({ jsonrpc: '2.0', id: 1, result: { decision: 'block', reason: 'no' } });
  await upstream({ url }).decide(action({ trace: { trace_id: TRACE } }), NEVER);
  expect(received.length).toBeGreaterThan(0);
  for (const { traceparent } of received) expect(traceparent).toMatch(FORM);
});

test("an outside harness is asked about each act in that act's own trace, each time under another span", async () => {
  const { url, received, bodies } = await recorder((body) => {
    const { id, method } = JSON.parse(body);
    return { jsonrpc: '2.0', id, result: method === 'ahp/handshake' ? WELCOME : { decision: 'allow' } };
  });
  const asked = () => received.filter((_, at) => bodies[at]?.includes('pre_action'));
  const harness = upstream({ url });
  const mine = { trace_id: TRACE, tracestate: 'vendor=1', trace_flags: '00' };
  const other = 'a'.repeat(32);
  for (const trace of [mine, mine, { trace_id: other }])
    expect((await harness.decide(action({ trace }), NEVER)).verdict).toBe('allow');
  const parents = idsIn(asked().map(({ traceparent }) => traceparent as string));
  expect(parents.map((parent) => [parent?.trace_id, parent?.sampled])).toEqual([
    [TRACE, false],
    [TRACE, false],
    [other, true],
  ]);
  expect(new Set(parents.map((parent) => parent?.span_id)).size).toBe(3);
  expect(asked().map(({ tracestate }) => tracestate)).toEqual(['vendor=1', 'vendor=1', undefined]);
});

test.each(['1.0', '0.3'])('push notifications of A2A %s are part of the trace of the request', async (version) => {
  const { url, host, received } = await recorder();
  const peer = await openPeer({ agents: [quick()], config: { push: { allow: [host], retry_ms: [1] } } });
  const headers = { 'a2a-version': version === '1.0' ? '1.0' : '', traceparent: PARENT, tracestate: 'vendor=1' };
  const message = { kind: 'message', messageId: 'a', role: 'user', parts: [{ kind: 'text', text: 'go' }] };
  const sent =
    version === '1.0'
      ? await peer.rpc(
          'SendMessage',
          { ...wire('go'), configuration: { taskPushNotificationConfig: { url } } },
          headers,
        )
      : await peer.rpc('message/send', { message, configuration: { pushNotificationConfig: { url } } }, headers);
  expect(sent.body.error).toBeUndefined();
  await expect.poll(() => received.length).toBeGreaterThanOrEqual(2);
  const parents = idsIn(received.map(({ traceparent }) => traceparent as string));
  expect(new Set(parents.map((parent) => parent?.trace_id))).toEqual(new Set([TRACE]));
  expect(new Set(parents.map((parent) => parent?.span_id)).size).toBe(received.length);
  expect(parents.map((parent) => parent?.span_id)).not.toContain('b7ad6b7169203331');
  for (const { tracestate } of received) expect(tracestate).toBe('vendor=1');
});

test('calls to addresses others named: webhooks of ours, push notifications, sign-in', async () => {
  const { url, host, received } = await recorder();
  const rules = { allow: [host], insecure: true };
  const trace = { trace_id: TRACE, tracestate: 'a=b', trace_flags: '00' };
  await postOut(url, rules, { headers: {}, body: '{}', timeoutMs: 1000, trace });
  await requestOut(url, rules, { method: 'GET', headers: {}, timeoutMs: 1000, limit: 100 });
  expect(received[0]).toMatchObject({
    tracestate: 'a=b',
    traceparent: expect.stringMatching(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`)),
  });
  expect(received[1]?.traceparent).toMatch(FORM);
});

test('a webhook about an approval is part of the trace of its task', async () => {
  const two = await openGateways('harn', { far: { rules: RULES }, near: { rules: RULES } });
  const { url, received } = await recorder();
  const hooks = openWebhooks({
    bridge: two.near.bridge,
    actor: { id: 'hooks', kind: 'system', scopes: ['*'] },
    recipients: [{ name: 'duty', url, key: 'k', link: undefined }],
    clock: real,
    log: quiet,
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
  });
  onTestFinished(() => hooks.close());
  const id = await two.give('send the plan to bo', { trace_id: TRACE, tracestate: 'vendor=1,other=2' });
  const [ask] = await two.near.asks(id);
  await two.near.answer(ask!.id, { approved: false, reason: 'no' });
  await two.near.until(id);
  await expect.poll(() => received.length).toBe(2);
  expect(idsIn(received.map(({ traceparent }) => traceparent as string)).map((each) => each?.trace_id)).toEqual([
    TRACE,
    TRACE,
  ]);
  expect(received.map(({ tracestate }) => tracestate)).toEqual(['vendor=1,other=2', 'vendor=1,other=2']);
});

test('what is not well-formed is not passed on', () => {
  expect(traceMembers(readTraceParent(PARENT, 'a=b\r\nx: y'))).toEqual({ trace_id: TRACE });
  expect(outgoingTrace({ trace_id: 'nonsense', tracestate: 'a\nb' }).traceparent).toMatch(FORM);
  expect(outgoingTrace({ trace_id: '0'.repeat(32) }).traceparent).not.toContain('0'.repeat(32));
});
