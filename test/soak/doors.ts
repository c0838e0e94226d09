/** One whole use of each door, as its clients make it: begun, answered, ended. A use that does not end as it should throws. */
import { WebSocket } from 'ws';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any;

export interface Where {
  readonly url: string;
  readonly token: string;
}
export type Use = (at: Where, count: number) => Promise<void>;

const LATE_MS = 60_000;
const NATIVE = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
const MCP = { accept: 'application/json, text/event-stream' };
const OLDER = '2025-11-25';
const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: object;
  readonly bearer?: string;
  /** Hangs up once the answer has this text. */
  readonly until?: string;
}

async function send({ url, token }: Where, path: string, { method, headers, body, bearer = token, until }: Sent) {
  const response = await fetch(`${url}${path}`, {
    method: method ?? (body ? 'POST' : 'GET'),
    headers: { authorization: `Bearer ${bearer}`, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(LATE_MS),
  });
  const text = await whole(response, until);
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 300)}`);
  return { headers: response.headers, text, json: parsed(text) };
}

async function whole(response: Response, until: string | undefined): Promise<string> {
  if (until === undefined || !response.body) return await response.text();
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes(until)) break;
  }
  return text;
}

/** JSON, or the last JSON of an event stream. */
function parsed(text: string): Body {
  if (text === '' || text.startsWith('{') || text.startsWith('[')) return text === '' ? {} : JSON.parse(text);
  const data = [...text.matchAll(/^data: ?(.+)$/gm)].map(([, line]) => line as string);
  return data.length > 0 ? JSON.parse(data.at(-1) as string) : {};
}

function require(condition: unknown, what: string, said: Body): void {
  if (!condition) throw new Error(`${what}: ${JSON.stringify(said).slice(0, 300)}`);
}

/** A call of the modern era at the common address. */
const mcpModern: Use = async (at, count) => {
  const params = { name: 'shared__pid', arguments: {}, _meta: MODERN };
  const headers = { ...MCP, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': params.name };
  const { json } = await send(at, '/mcp', {
    headers,
    body: { jsonrpc: '2.0', id: count, method: 'tools/call', params },
  });
  require(json.result?.content, 'a call at /mcp', json);
};

/** A session of the legacy era, opened, used and ended. */
const mcpSession =
  (server: string): Use =>
  async (at, count) => {
    const path = `/mcp/${server}`;
    const params = { protocolVersion: OLDER, capabilities: {}, clientInfo: { name: 'soak', version: '1' } };
    const opened = await send(at, path, {
      headers: MCP,
      body: { jsonrpc: '2.0', id: 'i', method: 'initialize', params },
    });
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': OLDER };
    const headers = { ...MCP, ...session };
    await send(at, path, { headers, body: { jsonrpc: '2.0', method: 'notifications/initialized' } });
    const call = { name: 'pid', arguments: {}, _meta: { progressToken: count } };
    const { json } = await send(at, path, {
      headers,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
    });
    require(json.result?.content, `a call at ${path}`, json);
    await send(at, path, { method: 'DELETE', headers });
  };

/** A session and a task of the native API, followed to its end, and its receipt. */
const native: Use = async (at) => {
  const headers = NATIVE;
  const { json: workspaces } = await send(at, '/v1/workspaces', { headers });
  const workspace_id = workspaces.data[0].id;
  const { json: session } = await send(at, '/v1/sessions', { headers, body: { workspace_id } });
  const work = { session_id: session.id, input: { text: 'read plan' } };
  const { json: task } = await send(at, '/v1/tasks', { headers, body: work });
  const { text } = await send(at, `/v1/tasks/${task.id}/stream`, { headers });
  require(text.includes('task.completed'), 'a task of the native API', text);
};

const a2aMessage = (count: number, text: string) => ({
  message: { messageId: `m${count}-${Math.random()}`, role: 'ROLE_USER', parts: [{ text }] },
});

const a2aSend: Use = async (at, count) => {
  const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: a2aMessage(count, 'read plan') };
  const { json } = await send(at, '/a2a/demo', { headers: { 'a2a-version': '1.0' }, body });
  require(JSON.stringify(json).includes('TASK_STATE_COMPLETED'), 'an A2A task', json);
};

const a2aStream: Use = async (at, count) => {
  const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: a2aMessage(count, 'hello') };
  const { text } = await send(at, '/a2a/demo', { headers: { 'a2a-version': '1.0' }, body });
  require(text.includes('TASK_STATE_COMPLETED'), 'an A2A stream', text.slice(-300));
};

const run: Use = async (at, count) => {
  const bearer = `local:${at.token}`;
  const headers = { 'idempotency-key': `soak-${count}-${Math.random()}` };
  const body = { input: { text: 'hello' }, metadata: {} };
  const { json } = await send(at, '/v1/runs', { headers, body, bearer });
  // The stream stays open for a while after the end; a client that has seen the end leaves.
  const { text } = await send(at, `/v1/runs/${json.id}/events/stream`, { bearer, until: 'run.worker.succeeded' });
  require(text.includes('run.worker.succeeded'), 'a run', text.slice(-300));
};

const ahp: Use = async (at, count) => {
  const session_id = `soak-${count}`;
  const events: [string, object][] = [
    ['pre_action', { tool: 'read_file', arguments: { path: `/tmp/${count}` } }],
    ['session_end', { reason: 'done' }],
  ];
  for (const [event_type, payload] of events) {
    const about = { session_id, agent_id: 'soak', timestamp: new Date().toISOString(), depth: 0 };
    const params = { event_type, payload, ...about };
    const { json } = await send(at, '/ahp', { body: { jsonrpc: '2.0', id: 1, method: 'ahp/event', params } });
    require(event_type !== 'pre_action' || json.result?.decision === 'allow', 'a decision over AHP', json);
  }
};

/** A connection, a session and a turn of an editor. */
const acp: Use = async ({ url, token }) => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/acp`, { headers: { authorization: `Bearer ${token}` } });
  const waiting = new Map<number, (frame: Body) => void>();
  const over = new Promise<never>((_, failed) => {
    socket.once('error', failed);
    socket.once('close', () => failed(new Error('the connection to /acp was closed')));
    setTimeout(() => failed(new Error('/acp did not answer')), LATE_MS).unref();
  });
  over.catch(() => {});
  socket.on('message', (data) => {
    const frame = JSON.parse(String(data));
    if (frame.method === undefined) waiting.get(frame.id)?.(frame);
  });
  let count = 0;
  const ask = (method: string, params: object): Promise<Body> => {
    const id = ++count;
    const answered = new Promise<Body>((done) => waiting.set(id, done));
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return Promise.race([answered, over]);
  };
  await Promise.race([new Promise((done) => socket.once('open', done)), over]);
  await ask('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const { result } = await ask('session/new', { cwd: '/tmp', mcpServers: [] });
  const prompt = [{ type: 'text', text: 'read plan' }];
  const turn = await ask('session/prompt', { sessionId: result?.sessionId, prompt });
  require(turn.result?.stopReason === 'end_turn', 'a turn over ACP', turn);
  socket.close();
  await new Promise((done) => socket.once('close', done));
};

/** Each door, and how many of twenty uses are its. */
export const DOORS: Readonly<Record<string, readonly [use: Use, weight: number]>> = {
  'mcp, modern': [mcpModern, 5],
  'mcp, a shared program': [mcpSession('shared'), 3],
  'mcp, its own program': [mcpSession('own'), 1],
  native: [native, 3],
  'a2a, send': [a2aSend, 2],
  'a2a, stream': [a2aStream, 2],
  runs: [run, 1],
  ahp: [ahp, 2],
  acp: [acp, 1],
};
