/** The scripted client of the legacy era: a session from its first word to its end, with everything that can happen in one. */
import type { Loose } from '../fixture/asking.ts';
import { type Exchange, exchange, type Received } from '../wire-client.ts';
import { ASKING, answerTo, CAPABILITIES, CLIENT, REQUESTS, record, type Said, until } from './script.ts';

const REVISION = '2025-11-25';

/** `withTasks`: of a server that has them, in the design of this era. */
export async function playLegacy(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  withTasks = false,
): Promise<readonly Said[]> {
  const said: Said[] = [];
  let ids = 0;
  let session: Readonly<Record<string, string>> = {};
  const post = (body: Loose, frame?: Exchange['frame']) =>
    exchange(url, { headers: { ...headers, ...session }, body: { jsonrpc: '2.0', ...body }, ...(frame && { frame }) });
  const ask = async (method: string, params?: Loose, step = method): Promise<Received> => {
    const received = await post({ id: ++ids, method, ...(params && { params }) }, async (frame) => {
      if (frame.method && 'id' in frame) {
        const answered = await post({ id: frame.id, result: answerTo(frame.method) });
        said.push(record(`${step}: the answer to ${frame.method}`, answered));
      }
      return undefined;
    });
    said.push(record(step, received));
    return received;
  };

  const initialize = { protocolVersion: REVISION, capabilities: CAPABILITIES, clientInfo: CLIENT };
  const begun = await ask('initialize', initialize);
  const id = begun.headers['mcp-session-id'];
  if (id === undefined) throw new Error('no session was opened');
  session = { 'mcp-session-id': id, 'mcp-protocol-version': REVISION };
  said.push(record('initialized', await post({ method: 'notifications/initialized' })));

  // What the server says by itself comes on a stream of its own.
  const unasked: Loose[] = [];
  const isReceived = (method: string) => unasked.some((frame) => frame.method === method);
  const BOTH = ['notifications/tools/list_changed', 'notifications/prompts/list_changed'];
  const stream = exchange(url, {
    method: 'GET',
    headers: { ...headers, ...session, accept: 'text/event-stream' },
    frame(frame) {
      if (!isReceived(frame.method)) unasked.push(frame);
      return BOTH.every(isReceived);
    },
  });

  await ask('ping');
  for (const [method, params] of REQUESTS) await ask(method, params, `${method} ${JSON.stringify(params ?? {})}`);
  await ask('logging/setLevel', { level: 'debug' });
  await ask('tools/call', { name: 'test_tool_with_logging' }, 'a call that logs');
  await ask('resources/subscribe', { uri: 'test://watched-resource' });
  await ask('resources/unsubscribe', { uri: 'test://watched-resource' });
  await ask('tasks/get', { taskId: 'nowhere' }, 'a task of 2025-11-25');
  if (withTasks) await tasks(ask);
  for (const params of ASKING) await ask('tools/call', params, `${params.name} asks`);

  for (const [method, name] of [
    [BOTH[0], 'test_trigger_tool_change'],
    [BOTH[1], 'test_trigger_prompt_change'],
  ] as const) {
    await until(
      () => isReceived(method as string),
      () => post({ id: ++ids, method: 'tools/call', params: { name } }),
    );
  }
  await stream;
  const byName = unasked.toSorted((a, b) => String(a.method).localeCompare(String(b.method)));
  said.push({ step: 'unasked', status: 200, type: 'text/event-stream', frames: byName });

  said.push(await canceledCall(url, post, () => ++ids, { ...headers, ...session }));
  const over = await exchange(url, { method: 'DELETE', headers: { ...headers, ...session } });
  said.push({ step: 'the end', status: over.status, type: '', frames: [] });
  const after = await post({ id: ++ids, method: 'ping' });
  said.push({ step: 'after the end', status: after.status, type: '', frames: [] });
  return said;
}

/** Long work: one that ends, one that asks, one that is stopped, and one that cannot be a task. */
async function tasks(ask: (method: string, params?: Loose, step?: string) => Promise<Received>): Promise<void> {
  const begin = async (name: string, args: Loose = {}): Promise<Loose> => {
    const params = { name, arguments: args, task: { ttl: 60_000 } };
    const { frames } = await ask('tools/call', params, `${name} as a task of 2025-11-25, begun`);
    return { taskId: frames.at(-1)?.result.task?.taskId };
  };
  for (const name of ['slow_compute', 'failing_job', 'protocol_error_job', 'confirm_delete']) {
    const task = await begin(name, { seconds: 0.1, filename: 'x' });
    await ask('tasks/result', task, `${name} as a task of 2025-11-25, waited for`);
    await ask('tasks/get', task, `${name} as a task of 2025-11-25, looked at`);
  }
  const slow = await begin('slow_compute', { seconds: 60 });
  await ask('tasks/cancel', slow, 'a task of 2025-11-25, stopped');
  await ask('tasks/cancel', slow, 'a task of 2025-11-25, stopped again');
  await ask('tasks/list', {}, 'tasks of 2025-11-25, listed');
  await ask('tools/call', { name: 'failing_job' }, 'a tool that is a task only, called as none');
}

/** Takes back a call and sees the server stop working on it. */
async function canceledCall(
  url: string,
  post: (body: Loose) => Promise<Received>,
  nextId: () => number,
  headers: Readonly<Record<string, string>>,
): Promise<Said> {
  const count = async () => {
    const { frames } = await post({ id: nextId(), method: 'tools/call', params: { name: 'how_many_canceled' } });
    return JSON.parse(frames.at(-1)?.result.content[0].text).canceled as number;
  };
  const before = await count();
  const id = nextId();
  const params = { name: 'wait_until_canceled', _meta: { progressToken: id } };
  const hangUp = new AbortController();
  const { signal } = hangUp;
  const waits = new Promise<void>((resolve) => {
    const body = { jsonrpc: '2.0', id, method: 'tools/call', params };
    const frame = () => void resolve();
    exchange(url, { headers, body, signal, frame }).catch(() => {});
  });
  await waits;
  await post({ method: 'notifications/cancelled', params: { requestId: id, reason: 'enough' } });
  let now = before;
  await until(
    () => now > before,
    async () => {
      now = await count();
    },
  );
  hangUp.abort();
  return { step: 'given up', status: 200, type: '', frames: [{ more: now - before }] };
}
