/** Every door there is, held to the contract of the port. */
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import type { AllDoors } from '../../support/gateway/all-doors.ts';
import { doorContract, type Reply } from './door.ts';

const HARN = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
const message = (text: string) => ({ role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] });
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const parsed = ({ body }: Reply) => JSON.parse(body);
const isRpcError = (reply: Reply) => /"error":\{"code":-32\d{3}/.test(reply.body);

interface Sending {
  readonly method?: string;
  readonly token: string | undefined;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

function request(at: AllDoors, path: string, { method = 'POST', token, body, headers = {} }: Sending) {
  return fetch(`${at.url}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
}

async function send(at: AllDoors, path: string, sending: Sending): Promise<Reply> {
  const response = await request(at, path, sending);
  return { status: response.status, body: await response.text() };
}

/** An event stream, once its first bytes are there; `ended` settles when the door ends it. */
async function stream(at: AllDoors, path: string, sending: Sending) {
  const headers = { accept: 'text/event-stream', ...sending.headers };
  const response = await request(at, path, { method: 'GET', ...sending, headers });
  const reader = response.body!.getReader();
  await reader.read();
  const rest = async () => {
    while (!(await reader.read()).done);
  };
  return { ended: rest().catch(() => {}) };
}

doorContract('harn', {
  async begin(at, token, key, text) {
    const sending = { token, headers: HARN };
    const made = await send(at, '/v1/sessions', { ...sending, body: { workspace_id: at.workspace } });
    if (made.status !== 201) return made;
    const session = sessions.get(at)?.get(key) ?? parsed(made).id;
    sessions.set(at, (sessions.get(at) ?? new Map()).set(key, session));
    const headers = { ...HARN, 'idempotency-key': key };
    return await send(at, `/v1/sessions/${session}/tasks`, { token, headers, body: { input: message(text) } });
  },
  malformed: (at, token) => send(at, '/v1/sessions', { token, headers: HARN, body: '{"workspace_id": ' }),
  isError: ({ status, body }) => status >= 400 && /"error":\{/.test(body),
  repeats: true,
  async read(at, token, begun) {
    const { id } = parsed(begun);
    const paths = [`/v1/tasks/${id}`, `/v1/tasks/${id}/events`];
    const shown = await Promise.all(paths.map((path) => send(at, path, { method: 'GET', token, headers: HARN })));
    return shown.map(({ status, body }) => `${status} ${body}`).join('\n');
  },
  follow: (at, token, begun) => stream(at, `/v1/tasks/${parsed(begun).id}/stream`, { token, headers: HARN }),
});
/** The session of a repeated request is the first one's: the key counts for one address. */
const sessions = new WeakMap<AllDoors, Map<string, string>>();

const A2A = { 'a2a-version': '1.0' };
doorContract('a2a', {
  begin: (at, token, key, text) =>
    send(at, '/a2a/agent', {
      token,
      headers: { ...A2A, 'idempotency-key': key },
      body: rpc('SendMessage', {
        message: { messageId: key, role: 'ROLE_USER', parts: [{ text }] },
        configuration: { returnImmediately: true },
      }),
    }),
  malformed: (at, token) => send(at, '/a2a/agent', { token, headers: A2A, body: '{"jsonrpc": "2.0", ' }),
  isError: isRpcError,
  repeats: true,
  read: async (at, token, begun) =>
    (
      await send(at, '/a2a/agent', {
        token,
        headers: A2A,
        body: rpc('GetTask', { id: parsed(begun).result.task.id, historyLength: 50 }),
      })
    ).body,
  follow: (at, token, begun) =>
    stream(at, '/a2a/agent', {
      method: 'POST',
      token,
      headers: A2A,
      body: rpc('SubscribeToTask', { id: parsed(begun).result.task.id }),
    }),
});

const pair = (token: string | undefined) => token && `${token}:${token}`;
doorContract('runs', {
  begin: (at, token, key, text) =>
    send(at, '/v1/runs', {
      token: pair(token),
      headers: { 'idempotency-key': key },
      body: { input: { user_query: text }, metadata: {} },
    }),
  malformed: (at, token) =>
    send(at, '/v1/runs', { token: pair(token), headers: { 'idempotency-key': 'k' }, body: '{"input": ' }),
  isError: ({ status, body }) => status >= 400 && /"error"|"code"/.test(body),
  repeats: true,
  async read(at, token, begun) {
    const { id, run_id = id } = parsed(begun);
    const paths = [`/v1/runs/${run_id}`, `/v1/runs/${run_id}/events?cursor=0&limit=200`];
    const shown = await Promise.all(paths.map((path) => send(at, path, { method: 'GET', token: pair(token) })));
    return shown.map(({ status, body }) => `${status} ${body}`).join('\n');
  },
  follow(at, token, begun) {
    const { id, run_id = id } = parsed(begun);
    return stream(at, `/v1/runs/${run_id}/events/stream`, { token: pair(token) });
  },
});

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
const mcpHeaders = (method: string, name?: string) => ({
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name && { 'mcp-name': name }),
});
const mcpCall = (name: string, args: object) => rpc('tools/call', { name, arguments: args, _meta: META });
doorContract('mcp', {
  begin: (at, token, _key, text) =>
    send(at, '/mcp', {
      token,
      headers: mcpHeaders('tools/call', 'agent__agent'),
      body: mcpCall('agent__agent', { message: text }),
    }),
  malformed: (at, token) => send(at, '/mcp', { token, headers: mcpHeaders('tools/call'), body: '{"jsonrpc": ' }),
  isError: isRpcError,
  async read(at, token, begun) {
    const [, task_id = ''] = /task_id\\?":\\?"([^"\\]+)/.exec(begun.body) ?? [];
    const headers = mcpHeaders('tools/call', 'task__status');
    const shown = await send(at, '/mcp', { token, headers, body: mcpCall('task__status', { task_id }) });
    return token === 'ana' ? begun.body + shown.body : shown.body;
  },
});

doorContract('ahp', {
  begin: (at, token, key) =>
    send(at, '/ahp', {
      token,
      body: rpc('ahp/event', {
        event_type: 'pre_action',
        session_id: key,
        agent_id: 'a',
        timestamp: '2026-05-01T00:00:00Z',
        depth: 0,
        payload: {
          session_id: key,
          tool: 'read_file',
          arguments: { path: 'a' },
          working_directory: '/',
          recent_actions: [],
        },
      }),
    }),
  malformed: (at, token) => send(at, '/ahp', { token, body: '{"jsonrpc": ' }),
  // Over HTTP, AHP answers a body that is not JSON with a status and plain text.
  isError: (reply) => reply.status === 400 || isRpcError(reply),
});

doorContract('acp', {
  begin: (at, token, _key, text) =>
    overSocket(at, token, async (ask) => {
      await ask('initialize', { protocolVersion: 1, clientCapabilities: {} });
      const { result } = await ask('session/new', { cwd: '/w', mcpServers: [] });
      return await ask('session/prompt', { sessionId: result.sessionId, prompt: [{ type: 'text', text }] });
    }),
  malformed: (at, token) => overSocket(at, token, (_ask, raw) => raw('{"jsonrpc": ')),
  isError: isRpcError,
});

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Answered = any;

/** One conversation over a WebSocket: everything the door sent, or the status with which it refused to open. */
async function overSocket(
  at: AllDoors,
  token: string | undefined,
  talk: (
    ask: (method: string, params: object) => Promise<Answered>,
    raw: (text: string) => Promise<Answered>,
  ) => Promise<unknown>,
): Promise<Reply> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const socket = new WebSocket(`${at.url.replace('http', 'ws')}/acp`, { headers });
  onTestFinished(() => socket.terminate());
  const refused = await new Promise<number | undefined>((resolve, reject) => {
    socket.once('open', () => resolve(undefined)).once('error', reject);
    socket.once('unexpected-response', (_, response) => resolve(response.statusCode));
  });
  if (refused !== undefined) return { status: refused, body: '' };
  const lines: string[] = [];
  const waiting = new Map<number | null, (frame: Answered) => void>();
  socket.on('message', (data) => {
    lines.push(String(data));
    const frame = JSON.parse(String(data)) as { id?: number | null; method?: string };
    if (frame.id !== undefined && frame.method === undefined) waiting.get(frame.id)?.(frame);
  });
  let ids = 0;
  const answerOf = (id: number | null, text: string) =>
    new Promise<Answered>((resolve) => {
      waiting.set(id, resolve);
      socket.send(text);
    });
  await talk(
    (method, params) => {
      ids += 1;
      return answerOf(ids, JSON.stringify({ jsonrpc: '2.0', id: ids, method, params }));
    },
    (text) => answerOf(null, text),
  );
  return { status: 0, body: lines.join('\n') };
}
