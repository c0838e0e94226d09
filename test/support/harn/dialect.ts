/**
 * A server that speaks the protocol the way an actual local one does: no keys, no versions, flat lists, raw agent updates,
 * its own event names. It does nothing by itself; a test says what its agent does.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

// biome-ignore lint/suspicious/noExplicitAny: whatever a test puts in
type Any = any;

export interface Dialect {
  readonly url: string;
  readonly tasks: Map<string, Any>;
  /** Everything that was posted, by path. */
  readonly posted: { readonly path: string; readonly body: Any }[];
  /** The agent says something about the newest task. */
  tell(event: string, payload: object): void;
  update(update: object): void;
  /** The newest task is in this state from now on. */
  becomes(status: string, more?: object): void;
  asks(id: string, request: object): void;
  /** Breaks every stream. */
  cut(): void;
  /** Resolves once a task was given. */
  input(count?: number): Promise<void>;
  /** Answers in its stead when it returns true. */
  instead(answer: (request: IncomingMessage, response: ServerResponse) => boolean): void;
  /** Without it there is no list of permission requests. */
  permissions: boolean;
}

export async function openDialect(): Promise<Dialect> {
  const tasks = new Map<string, Any>();
  const sessions = new Map<string, Any>();
  const requests = new Map<string, Any>();
  const events: Any[] = [];
  const streams = new Set<{ response: ServerResponse; task: string }>();
  const posted: { path: string; body: Any }[] = [];
  const waiting: (() => void)[] = [];
  let instead: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  let count = 0;

  const newest = () => [...tasks.values()].at(-1);
  const list = (data: Any[]) => ({ object: 'list', data, has_more: false, next_cursor: null });
  const frame = (event: Any) => `id: ${event.id}\r\nevent: ${event.event}\r\ndata: ${JSON.stringify(event)}\r\n\r\n`;

  function tell(event: string, payload: object): void {
    const task = newest();
    const reported = {
      id: `event_${(events.length + 1).toString(16).padStart(16, '0')}`,
      object: 'event',
      created_at: new Date().toISOString(),
      event,
      session_id: task.session_id,
      task_id: task.id,
      payload,
    };
    events.push(reported);
    for (const { response, task: id } of streams) if (id === task.id) response.write(frame(reported));
  }

  function route(
    method: string,
    path: string,
    body: Any,
    response: ServerResponse,
  ): { status: number; body: Any } | 'held' {
    const [, , kind, id, what, more] = path.split('/');
    const wrong = (status: number, code: string) => ({ status, body: { error: { code, message: code } } });
    if (path === '/v1')
      return { status: 200, body: { object: 'api', protocol_version: 'x', openapi: '/openapi.json', resources: {} } };
    if (kind === 'workspaces' && method === 'GET') return { status: 200, body: list([]) };
    if (kind === 'workspaces') return wrong(404, 'not_found');
    if (kind === 'sessions' && !id && method === 'POST') {
      const session = { id: `s${++count}`, object: 'session', state: 'IDLE', messages: [] };
      sessions.set(session.id, session);
      return { status: 201, body: session };
    }
    const session = kind === 'sessions' ? sessions.get(id ?? '') : undefined;
    if (kind === 'sessions' && !session) return wrong(404, 'missing_session');
    if (session && what === 'messages') {
      if (method === 'GET') return { status: 200, body: list(session.messages) };
      session.messages.push(body.message);
      return { status: 201, body: { object: 'message', ...body.message } };
    }
    if (session && what === 'tasks' && method === 'POST') {
      const task = {
        id: `t${++count}`,
        object: 'task',
        session_id: session.id,
        status: 'WORKING',
        created_by: 'api',
        input: body.input,
        metadata: body.metadata,
      };
      tasks.set(task.id, task);
      for (const wake of waiting.splice(0)) wake();
      return { status: 202, body: task };
    }
    if (kind === 'tasks' && !id) return { status: 200, body: list([...tasks.values()]) };
    const task = kind === 'tasks' ? tasks.get(id ?? '') : undefined;
    if (kind === 'tasks' && !task) return wrong(404, 'not_found');
    if (task && !what) return { status: 200, body: task };
    if (task && what === 'events' && more === 'stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of events) if (event.task_id === id) response.write(frame(event));
      const entry = { response, task: id ?? '' };
      streams.add(entry);
      response.once('close', () => streams.delete(entry));
      return 'held';
    }
    if (task && what === 'events') return { status: 200, body: list(events.filter((event) => event.task_id === id)) };
    if (task && what === 'cancel') {
      if (task.status !== 'WORKING' && task.status !== 'INPUT_REQUIRED') return wrong(409, 'task_not_cancelable');
      task.status = 'CANCELED';
      return { status: 200, body: task };
    }
    if (task && what === 'messages') {
      if (body.kind !== 'input') return wrong(400, 'invalid_kind');
      return { status: 201, body: { object: 'message', ...body.message } };
    }
    if (task && what === 'permission-requests' && dialect.permissions) {
      return { status: 200, body: list([...requests.values()].filter((request) => request.task_id === id)) };
    }
    if (kind === 'permission-requests' && what === 'respond') {
      const request = requests.get(id ?? '');
      Object.assign(request, { status: body.approved === false ? 'denied' : 'approved', response: body });
      return { status: 200, body: request };
    }
    return wrong(404, 'not_found');
  }

  const server = createServer(async (incoming, response) => {
    if (instead(incoming, response)) return;
    let text = '';
    for await (const chunk of incoming) text += chunk;
    const path = (incoming.url ?? '').split('?')[0] ?? '';
    const body = text === '' ? {} : JSON.parse(text);
    if (incoming.method === 'POST') posted.push({ path, body });
    const answer = route(incoming.method ?? '', path, body, response);
    if (answer === 'held') return;
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const dialect: Dialect = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tasks,
    posted,
    permissions: true,
    tell,
    update: (update) => tell('session.update', { sessionId: newest().session_id, update }),
    becomes(status, more = {}) {
      Object.assign(newest(), { status, ...more });
    },
    asks(id, request) {
      const made = { id, object: 'permission_request', status: 'pending', task_id: newest().id, ...request };
      requests.set(id, made);
      Object.assign(newest(), { status: 'INPUT_REQUIRED' });
      tell('permission.requested', made);
    },
    cut() {
      for (const { response } of streams) response.destroy();
    },
    async input(wanted = 1) {
      while (tasks.size < wanted) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    instead(answer) {
      instead = answer;
    },
  };
  return dialect;
}
