/** Peers that hang, break off, redirect or send what nobody can read: the work fails with their name and what they did, and soon. */
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { a2aBackend } from '../../../../adapters/a2a/client/backend.ts';
import { cardFor, listening, openRawPeer } from '../../../support/a2a/peers.ts';
import { of, openTestGateway, says } from '../../../support/gateway/test-gateway.ts';

const SOON = { poll_ms: 5, silence_ms: 300, cancel_ms: 300, request_ms: 300, push_poll_ms: 200 };
const deps = {
  log: { info() {}, warn() {}, error() {} },
  clock: { now: () => new Date().toISOString() },
  secret: async () => 'the-peer-token',
};
const JSON_TYPE = { 'content-type': 'application/json' };
const STREAM = { 'content-type': 'text/event-stream' };
const status = (state: string) => ({ state, timestamp: '2026-01-01T00:00:00Z' });
const WORKING = { id: 't1', contextId: 'c1', status: status('TASK_STATE_WORKING') };
const event = (id: unknown, result: unknown) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;

/** How work ends that this peer has, and what it said. */
async function endOfWork(url: string) {
  const backend = a2aBackend('peer', { url, timeouts: SOON, secret: 'token' }, deps);
  const at = await openTestGateway({ agents: [backend] });
  const room = await at.room();
  const { id, status: state, failure } = await at.until((await room.task({ input: says('go') })).id);
  const said = of(await at.events(id), 'agent.message').map(({ payload }) => payload.message);
  const message = failure?.message.replaceAll(new URL(url).host, 'HOST');
  return { state, code: failure?.code, message, said: JSON.stringify(said), backend };
}

type Answer = (response: ServerResponse, call: { readonly method: string; readonly id: unknown }) => void;

/** Its card is in order; every call is answered in this way. */
async function answering(answer: Answer): Promise<string> {
  const url: string = await listening((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      if (request.url?.includes('agent-card')) response.writeHead(200, JSON_TYPE).end(JSON.stringify(cardFor(url)));
      else answer(response, JSON.parse(text));
    });
  });
  return url;
}

/** A stream that says where the task is, and then this. */
const after =
  (say: Answer): Answer =>
  (response, call) => {
    response.writeHead(200, STREAM).write(event(call.id, { task: WORKING }));
    say(response, call);
  };
const comments: Answer = (response) => {
  const timer = setInterval(() => response.write(': still here\n\n'), 20);
  response.on('close', () => clearInterval(timer));
};
const NO_NAME = 'the peer broke off before it gave the task a name';
const SILENT = 'the peer has said nothing for too long (HOST)';
const UNREAD = 'the peer sent what cannot be read';
const ODD = 'peer at HOST said: what the protocol does not know';

const WAYS: readonly (readonly [string, Answer, string])[] = [
  ['takes the work and is silent', () => {}, SILENT],
  ['begins a stream and is silent', (response) => void response.writeHead(200, STREAM).flushHeaders(), SILENT],
  ['sends comments only', (response) => comments(response.writeHead(200, STREAM), { method: '', id: 0 }), SILENT],
  [
    'names the task, sends comments only and answers no look',
    (response, call) => (call.method === 'SendStreamingMessage' ? after(comments)(response, call) : undefined),
    'the peer has been out of reach for too long (HOST)',
  ],
  ['begins a body and is silent', (response) => void response.writeHead(200, JSON_TYPE).write('{"jsonrpc"'), SILENT],
  [
    'redirects',
    (response) => void response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
    'the peer answers with a redirect, which is not followed (HOST)',
  ],
  ['closes the connection', (response) => void response.socket?.destroy(), `${NO_NAME}: UND_ERR_SOCKET (HOST)`],
  [
    'fails with a page',
    (response) => void response.writeHead(502).end('<html>'),
    `${NO_NAME}: HTTP 502 Bad Gateway: <html> (HOST)`,
  ],
  [
    'lets nobody in',
    (response) => void response.writeHead(401, JSON_TYPE).end('{"error":"invalid_token"}'),
    'peer at HOST said: HTTP 401 Unauthorized: {"error":"invalid_token"}',
  ],
  [
    'answers with a page',
    (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    `${UNREAD}: the body is not JSON (HOST)`,
  ],
  [
    'says a name twice',
    (response) => void response.writeHead(200, JSON_TYPE).end('{"result":{},"result":{}}'),
    `${UNREAD}: a name appears twice in one object (HOST)`,
  ],
  [
    'sends an error that is none',
    (response, { id }) => void response.writeHead(200, JSON_TYPE).end(JSON.stringify({ id, error: {} })),
    'peer at HOST said: An unexpected error occurred.',
  ],
  [
    'fails with more words than are kept, and with a character at their end',
    (response, { id }) => {
      const error = { code: -32005, message: `${'x'.repeat(299)}\u{1f600}` };
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    },
    `peer at HOST said: ${'x'.repeat(299)}`,
  ],
  [
    'says half a character',
    after((response, { id }) => {
      const artifact = { artifactId: 'a', parts: [{ text: '\ud800' }] };
      response.end(event(id, { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact } }));
    }),
    `${UNREAD}: a text holds half of a character (HOST)`,
  ],
  ...[[null], [{ text: { toString: 1 } }], [{ raw: {} }]].map(
    (parts) =>
      [
        `sends parts that are none: ${JSON.stringify(parts)}`,
        after((response, { id }) => {
          const artifact = { artifactId: 'a', parts };
          response.end(event(id, { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact } }));
        }),
        ODD,
      ] as const,
  ),
  ['sends events that are none', (response, { id }) => void response.writeHead(200, STREAM).end(event(id, null)), ODD],
];

test.each(WAYS)('one that %s', async (_, answer, message) => {
  const { state, code, message: why } = await endOfWork(await answering(answer));
  expect([state, code, why]).toEqual(['FAILED', 'upstream_unavailable', message]);
});

test('one that dies in the middle of a line is asked again, and its answer is whole', async () => {
  const parts = [{ text: 'the whole answer' }];
  const done = { ...WORKING, status: status('TASK_STATE_COMPLETED'), artifacts: [{ artifactId: 'a', parts }] };
  const url = await answering((response, call) => {
    if (call.method === 'GetTask')
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: done }));
    else if (call.method !== 'SendStreamingMessage') response.socket?.destroy();
    else after(() => response.write('data: {"jsonrpc":"2.0","res', () => response.socket?.destroy()))(response, call);
  });
  const { state, said } = await endOfWork(url);
  expect([state, JSON.parse(said)[0].parts]).toEqual([
    'COMPLETED',
    [{ type: 'text', text: 'the whole answer', visibility: 'public' }],
  ]);
});

test.each([
  ['null', () => null],
  ['with members of other types', (url: string) => ({ ...cardFor(url), supportedInterfaces: 'x' })],
  ['with an address that is none', (url: string) => ({ ...cardFor(url), supportedInterfaces: [null] })],
  ['with extensions that are none', (url: string) => ({ ...cardFor(url), capabilities: { extensions: [null] } })],
  ['of 0.3, with skills that are none', (url: string) => ({ protocolVersion: '0.3.0', url, skills: [null] })],
])('a card that is %s is refused by name, and the card we show for it is ours', async (_, card) => {
  const { url } = await openRawPeer({}, card as (url: string) => object);
  const { message, backend } = await endOfWork(url);
  expect(message).toBe('peer at HOST cannot be used: its card is not of the protocol');
  // It is asked more than once: what went wrong the first time is not remembered as the answer.
  for (let n = 0; n < 2; n += 1)
    expect(await backend.describe?.()).toEqual({ description: 'An agent elsewhere, reached over A2A.' });
});
