/** The scripted client of the modern era: every request says all there is to know, and nothing is remembered between them. */
import { type Loose, TASKS } from '../fixture/asking.ts';
import { type Exchange, exchange, type Received } from '../wire-client.ts';
import { ASKING, answerTo, CAPABILITIES, CLIENT, REQUESTS, record, type Said, until } from './script.ts';

const REVISION = '2026-07-28';
const PREFIX = 'io.modelcontextprotocol/';
const NAMED: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

interface More {
  readonly headers?: Readonly<Record<string, string>>;
  readonly meta?: Loose;
  readonly frame?: Exchange['frame'];
}

export async function playModern(url: string, own: Readonly<Record<string, string>> = {}): Promise<readonly Said[]> {
  const said: Said[] = [];
  let ids = 0;
  const send = (
    method: string,
    params: Loose = {},
    { headers = {}, meta = {}, frame }: More = {},
  ): Promise<Received> => {
    const { _meta, ...rest } = params;
    const envelope = {
      [`${PREFIX}protocolVersion`]: REVISION,
      [`${PREFIX}clientCapabilities`]: { ...CAPABILITIES, roots: {}, extensions: { [TASKS]: {} } },
      [`${PREFIX}clientInfo`]: CLIENT,
    };
    const name = rest[NAMED[method] ?? ''];
    return exchange(url, {
      headers: {
        ...own,
        'mcp-protocol-version': REVISION,
        'mcp-method': method,
        ...(typeof name === 'string' && { 'mcp-name': name }),
        ...headers,
      },
      body: { jsonrpc: '2.0', id: ++ids, method, params: { ...rest, _meta: { ..._meta, ...envelope, ...meta } } },
      ...(frame && { frame }),
    });
  };
  const ask = async (method: string, params?: Loose, step = method, more?: More): Promise<Loose> => {
    const received = await send(method, params, more);
    said.push(record(step, received));
    return received.frames.at(-1) ?? {};
  };

  await ask('server/discover');
  for (const [method, params] of REQUESTS) await ask(method, params, `${method} ${JSON.stringify(params ?? {})}`);
  const level = { meta: { [`${PREFIX}logLevel`]: 'debug' } };
  await ask('tools/call', { name: 'test_tool_with_logging' }, 'a call that logs, to one who listens', level);
  await ask('tools/call', { name: 'test_tool_with_logging' }, 'a call that logs, to one who does not');

  for (const first of ASKING) {
    let [params, round]: [Loose, number] = [first, 1];
    for (; round < 5; round += 1) {
      const { result } = await ask('tools/call', params, `${first.name}, round ${round}`);
      if (result?.resultType !== 'input_required') break;
      const asked = Object.entries<Loose>(result.inputRequests ?? {});
      const inputResponses = Object.fromEntries(asked.map(([key, { method }]) => [key, answerTo(method)]));
      const { requestState } = result;
      params = { ...first, inputResponses, ...(requestState !== undefined && { requestState }) };
    }
  }

  const wrong = { region: 'nord' };
  const region = { name: 'test_x_mcp_header', arguments: wrong };
  await ask('tools/call', region, 'a parameter in the headers', { headers: { 'mcp-param-region': 'nord' } });
  await ask('tools/call', region, 'another parameter in the headers', { headers: { 'mcp-param-region': 'sued' } });
  await ask('tools/call', region, 'no parameter in the headers');
  await ask('tools/call', { name: 'echo' }, 'another tool in the headers', { headers: { 'mcp-name': 'odd_blocks' } });
  await ask('tools/list', {}, 'another method in the headers', { headers: { 'mcp-method': 'tools/call' } });
  await ask('tools/list', {}, 'a revision nobody knows', {
    headers: { 'mcp-protocol-version': '2099-01-01' },
    meta: { [`${PREFIX}protocolVersion`]: '2099-01-01' },
  });
  await ask('tools/list', {}, 'no capabilities', { meta: { [`${PREFIX}clientCapabilities`]: undefined } });
  await ask('tools/call', { name: 'test_missing_capability' }, 'a capability it lacks', {
    meta: { [`${PREFIX}clientCapabilities`]: {} },
  });
  await ask('initialize', {}, 'what is gone from the era');
  const get = await exchange(url, { method: 'GET', headers: own });
  said.push({ step: 'GET', status: get.status, type: '', frames: [] });

  await tasks(ask);
  said.push(...(await listened(send)));
  said.push(await canceledCall(send));
  return said;
}

type Ask = (method: string, params?: Loose, step?: string, more?: More) => Promise<Loose>;
type Send = (method: string, params?: Loose, more?: More) => Promise<Received>;

/** A task that asks, is answered and ends; one that is stopped; one that never was. */
async function tasks(ask: Ask): Promise<void> {
  const started = await ask('tools/call', { name: 'confirm_delete', arguments: { filename: 'f' } }, 'a task begins');
  const { taskId } = started.result;
  const shown = await ask('tasks/get', { taskId }, 'the task asks');
  const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } };
  await ask('tasks/update', { taskId, inputResponses }, 'the task is answered');
  await ask('tasks/get', { taskId }, 'the task has ended');
  if (!shown.result?.inputRequests) throw new Error('the task did not ask');
  const other = await ask('tools/call', { name: 'multi_input' }, 'another task begins');
  await ask('tasks/cancel', { taskId: other.result.taskId }, 'it is stopped');
  await ask('tasks/get', { taskId: other.result.taskId }, 'it has been stopped');
  await ask('tasks/get', { taskId: 'nowhere' }, 'a task that never was');
}

async function listened(send: Send): Promise<readonly Said[]> {
  const changes = ['notifications/tools/list_changed', 'notifications/prompts/list_changed'];
  const frames: Loose[] = [];
  const isReceived = (method: string) => frames.some((frame) => frame.method === method);
  let acknowledged = () => {};
  const ready = new Promise<void>((resolve) => {
    acknowledged = resolve;
  });
  const notifications = { toolsListChanged: true, promptsListChanged: true };
  const stream = send(
    'subscriptions/listen',
    { notifications },
    {
      frame(frame) {
        if (!isReceived(frame.method)) frames.push(frame);
        acknowledged();
        return changes.every(isReceived);
      },
    },
  );
  await Promise.race([ready, stream]);
  for (const [method, name] of [
    [changes[0], 'test_trigger_tool_change'],
    [changes[1], 'test_trigger_prompt_change'],
  ] as const) {
    await until(
      () => isReceived(method as string),
      () => send('tools/call', { name }),
    );
  }
  const { status, type } = await stream;
  return [{ step: 'listening', status, type, frames }];
}

/** Hanging up is taking back. */
async function canceledCall(send: Send): Promise<Said> {
  const count = async () => {
    const { frames } = await send('tools/call', { name: 'how_many_canceled' });
    return JSON.parse(frames.at(-1)?.result.content[0].text).canceled as number;
  };
  const before = await count();
  // Hung up on as soon as it says that it waits.
  await send('tools/call', { name: 'wait_until_canceled', _meta: { progressToken: 'w' } }, { frame: () => true });
  let now = before;
  await until(
    () => now > before,
    async () => {
      now = await count();
    },
  );
  return { step: 'given up', status: 200, type: '', frames: [{ input: now > before }] };
}
