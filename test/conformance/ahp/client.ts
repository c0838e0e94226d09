/**
 * How a client of ours ends the situations a recorded client was put in. Each recorded sentence is looked up by its
 * situation; one nobody has met before is a failure, so that new recordings cannot be passed over.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { WebSocketServer } from 'ws';
import { type Asking, createAsking } from '../../../adapters/ahp/client/harness-client.ts';
import { HarnessError, type HarnessErrorKind } from '../../../adapters/ahp/client/harness-error.ts';
import { type HarnessLink, lineLink, openLink } from '../../../adapters/ahp/client/transports.ts';
import type { AhpEvent } from '../../../adapters/ahp/translate.ts';
import { readLines } from '../../../src/transport/ndjson/ndjson.ts';
import type { Check } from '../run.ts';

export interface RecordedOutcome {
  readonly situation: string;
  readonly transport: string;
  readonly outcome: string;
}

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
type Frame = any;
/** What the harness does with a message: frames to send, `'close'`, or for HTTP a status and a body. */
type Script = (message: Frame) => unknown;
type Transport = 'stdio' | 'websocket' | 'http';

const TIMEOUT_MS = 150;
const QUIET = { info() {}, warn() {}, error() {} };
const WELCOME = { protocol_version: '2.4', harness_info: { name: 'h', version: '1', capabilities: [] } };
const EVENT: AhpEvent = {
  event_type: 'pre_action',
  session_id: 's',
  agent_id: 'a',
  timestamp: 't',
  depth: 0,
  payload: {},
};

interface Situation {
  readonly script: Script;
  /** How ours ends: a kind of failure, or what it comes to. */
  readonly ends: HarnessErrorKind | 'ignored' | 'answered';
  /** HTTP has other words for some of them. */
  readonly overHttp?: HarnessErrorKind;
  readonly act?: (asking: Asking) => Promise<unknown>;
  /** Ours ends it differently on purpose. */
  readonly instead?: string;
}

const reply = (more: object) => (message: Frame) => ({ jsonrpc: '2.0', id: message.id, ...more });

const SITUATIONS: Readonly<Record<string, Situation>> = {
  'JSON-RPC error object': { script: reply({ error: { code: -1, message: 'boom' } }), ends: 'protocol' },
  'jsonrpc not 2.0': { script: (m) => ({ jsonrpc: '1.0', id: m.id, result: { decision: 'allow' } }), ends: 'protocol' },
  'neither result nor error, or result null': { script: reply({ result: null }), ends: 'protocol' },
  'unknown string id': {
    script: () => ({ jsonrpc: '2.0', id: 'other', result: { decision: 'allow' } }),
    ends: 'timeout',
    overHttp: 'protocol',
  },
  'integer or null id': {
    script: () => ({ jsonrpc: '2.0', id: 7, result: { decision: 'allow' } }),
    ends: 'timeout',
    overHttp: 'protocol',
  },
  'line or frame that is not a response': { script: () => 'not a response', ends: 'timeout', overHttp: 'protocol' },
  'peer closes while a request is pending': {
    script: () => 'close',
    ends: 'transport',
    instead: 'fails at once instead of waiting out the timeout: an agent behind us waits for the decision',
  },
  'HTTP status outside 2xx, whatever the body': { script: () => ({ status: 503, body: {} }), ends: 'transport' },
  'HTTP 204 to a request': { script: () => ({ status: 204, body: '' }), ends: 'protocol' },
  'HTTP 500 to a notification': {
    script: () => ({ status: 500, body: '' }),
    ends: 'ignored',
    act: (asking) => asking.notify({ ...EVENT, event_type: 'post_action' }),
  },
  'no answer within the timeout': { script: () => undefined, ends: 'timeout', overHttp: 'transport' },
  'decision of the wrong shape': { script: reply({ result: { decision: 'approve' } }), ends: 'shape' },
  'batch with a non-batchable event': {
    script: reply({ result: {} }),
    ends: 'protocol',
    act: (asking) => asking.batch([{ ...EVENT, event_type: 'idle' }]),
  },
  'batch answer of another length': {
    script: reply({ result: { decisions: [] } }),
    ends: 'protocol',
    act: (asking) => asking.batch([EVENT]),
  },
  'binary frame': { script: () => Buffer.from('{}'), ends: 'timeout' },
  'ping frame': { script: () => 'ping', ends: 'answered' },
  'send after the peer closed': { script: () => 'close', ends: 'transport' },
};

/** Nothing is sent before the handshake. */
const BEFORE_HANDSHAKE = 'operation before handshake';

export function* clientChecks(outcomes: readonly RecordedOutcome[]): Generator<Check> {
  for (const { situation, transport } of outcomes) {
    for (const kind of transportsOf(transport)) {
      yield {
        name: `client: ${situation}, over ${kind}`,
        run: () => (situation === BEFORE_HANDSHAKE ? tooEarly(kind) : played(situation, kind)),
      };
    }
  }
}

function transportsOf(transport: string): readonly Transport[] {
  if (transport === 'any') return ['stdio', 'websocket', 'http'];
  // Lines are lines, whether they come over a pipe or a Unix socket.
  return (['stdio', 'websocket', 'http'] as const).filter((kind) => transport.includes(kind));
}

async function tooEarly(kind: Transport): Promise<void> {
  const received: Frame[] = [];
  await using(
    kind,
    (message) => void received.push(message),
    async (asking) => {
      const ended = await asking.event(EVENT).then(() => 'answered', kindOf);
      if (ended !== 'protocol' || received.length > 0)
        throw new Error(`${ended}, and ${received.length} messages were sent`);
    },
  );
}

async function played(situation: string, kind: Transport): Promise<void> {
  const known = SITUATIONS[situation];
  if (!known) throw new Error('nobody has said how this ends');
  const wanted = (kind === 'http' && known.overHttp) || known.ends;
  await using(kind, known.script, async (asking) => {
    await asking.handshake({ session_id: 's', agent_id: 'a' });
    if (situation === 'send after the peer closed') await asking.event(EVENT).catch(() => {});
    const act = known.act ?? ((one: Asking) => one.event(EVENT));
    const came = await act(asking).then(() => (wanted === 'ignored' ? 'ignored' : 'answered'), kindOf);
    if (came !== wanted) throw new Error(`ended as ${came} instead of ${wanted}`);
  });
}

function kindOf(cause: unknown): string {
  if (cause instanceof HarnessError) return cause.kind;
  throw cause;
}

async function using(kind: Transport, script: Script, act: (asking: Asking) => Promise<void>): Promise<void> {
  const { link, close } = await OPEN[kind]((message) =>
    message.method === 'ahp/handshake' ? { jsonrpc: '2.0', id: message.id, result: WELCOME } : script(message),
  );
  let count = 0;
  const asking = createAsking(link, () => `id-${++count}`, TIMEOUT_MS);
  try {
    await act(asking);
  } finally {
    await asking.close();
    await close();
  }
}

type Opened = { readonly link: HarnessLink; close(): Promise<void> };

const OPEN: Record<Transport, (script: Script) => Promise<Opened>> = {
  async stdio(script) {
    const [up, down] = [new PassThrough(), new PassThrough()];
    (async () => {
      for await (const line of readLines(up, { limit: 1 << 20 })) {
        const said = script(JSON.parse(line));
        if (said === 'close') down.end();
        else if (said !== undefined) down.write(`${typeof said === 'string' ? said : JSON.stringify(said)}\n`);
      }
    })();
    return { link: lineLink(down, up, () => up.end()), close: async () => void down.end() };
  },

  async websocket(script) {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await new Promise((resolve) => server.once('listening', resolve));
    server.on('connection', (socket) => {
      socket.on('message', (data) => {
        const message = JSON.parse(String(data));
        const said = script(message);
        if (said === 'close') socket.terminate();
        else if (said === 'ping') {
          // Only a client that answers pings hears more.
          socket.once('pong', () =>
            socket.send(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { decision: 'allow' } })),
          );
          socket.ping();
        } else if (Buffer.isBuffer(said)) socket.send(said, { binary: true });
        else if (said !== undefined) socket.send(typeof said === 'string' ? said : JSON.stringify(said));
      });
    });
    const { port } = server.address() as AddressInfo;
    return {
      link: await openLink({ url: `ws://127.0.0.1:${port}/ahp` }, undefined, QUIET),
      close: () => new Promise((resolve) => server.close(() => resolve())),
    };
  },

  async http(script) {
    const server: Server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        const said = script(JSON.parse(body)) as Frame;
        if (said === undefined) return;
        if (said === 'close') return void request.socket.destroy();
        const status = typeof said.status === 'number' ? said.status : 200;
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(status === 204 ? undefined : typeof said === 'string' ? said : JSON.stringify(said.body ?? said));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return {
      link: await openLink({ url: `http://127.0.0.1:${port}/ahp` }, undefined, QUIET),
      close: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    };
  },
};

/** For the table at the end. */
export function clientDifferences(): readonly string[] {
  return Object.entries(SITUATIONS).flatMap(([name, { instead }]) => (instead ? [`client: ${name}: ${instead}`] : []));
}
