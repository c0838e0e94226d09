/** The agent under examination: bare requests on every binding and revision, and the SDK's own clients, to one agent's base. */
import { OPERATIONS } from '../../../mappings/a2a.ts';
import { OPERATIONS as OLD_OPERATIONS } from '../../../mappings/a2a-0.3.ts';
import { type AnyClient, newClient, oldClient } from '../../support/a2a/clients.ts';
import { callGrpc, callOldGrpc } from './grpc.ts';

export const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const;
export type Binding = (typeof BINDINGS)[number];
export const VERSIONS = ['1.0', '0.3'] as const;
export type Version = (typeof VERSIONS)[number];

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Body = any;

export interface Came {
  /** Of HTTP; of gRPC where that is the binding. */
  readonly status: number;
  readonly headers: Headers;
  /** The result, in the shape of 1.0 whatever it travelled in, or undefined. */
  readonly result: Body;
  /** `{ code, message, reason }` for JSON-RPC, `{ status, message, reason }` for HTTP. */
  readonly error: Body;
  readonly raw: Body;
}

export interface Way {
  readonly binding: Binding;
  readonly version: Version;
}
export const WAYS: readonly Way[] = VERSIONS.flatMap((version) => BINDINGS.map((binding) => ({ binding, version })));
export const nameOf = ({ binding, version }: Way) => `${binding} ${version}`;

export interface Target {
  readonly base: string;
  readonly token: string | undefined;
  /** Another caller's token, when there is one. */
  readonly other: string | undefined;
  raw(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** One operation, by its id in the table, on one binding in one revision. */
  call(way: Way, operation: string, params: Body, headers?: Record<string, string>): Promise<Came>;
  /** The same for those that stream; everything that was said. */
  stream(way: Way, operation: string, params: Body, headers?: Record<string, string>): Promise<Body[]>;
  client(way: Way): Promise<AnyClient>;
  /** Whether this way is offered at all: gRPC is there when the card says so. */
  supports(way: Way): Promise<boolean>;
  fresh(prefix: string): string;
}

export function createTarget(base: string, token: string | undefined, other: string | undefined): Target {
  let count = 0;

  async function raw(method: string, path: string, body?: unknown, more: Record<string, string> = {}) {
    const headers: Record<string, string> = {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...more,
    };
    for (const [name, value] of Object.entries(headers)) if (value === '') delete headers[name];
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return await fetch(`${base}${path}`, {
      method,
      headers,
      signal: AbortSignal.timeout(30_000),
      ...(body !== undefined && { body: text }),
    });
  }

  let grpcAt: Promise<string | undefined> | undefined;
  /** Where gRPC is, if the card knows. */
  function grpcAddress(): Promise<string | undefined> {
    grpcAt ??= raw('GET', '/.well-known/agent-card.json', undefined, { 'a2a-version': '1.0' }).then(async (answer) => {
      const { supportedInterfaces = [] } = (await answer.json()) as Body;
      return supportedInterfaces.find(({ protocolBinding }: Body) => protocolBinding === 'GRPC')?.url;
    });
    return grpcAt;
  }

  async function overGrpc({ version }: Way, id: string, params: Body, more: Record<string, string> = {}) {
    const at = await grpcAddress();
    if (!at) throw new Error('the card names no gRPC address');
    const headers = { ...(token && { authorization: `Bearer ${token}` }), ...more };
    return version === '1.0' ? callGrpc(at, id, params, headers) : callOldGrpc(at, id, older(id, params), headers);
  }

  async function send({ binding, version }: Way, id: string, params: Body, headers: Record<string, string> = {}) {
    const all = { ...(version === '1.0' && { 'a2a-version': '1.0' }), ...headers };
    if (binding === 'JSONRPC') {
      const table: readonly { id: string; rpc: string }[] = version === '1.0' ? OPERATIONS : OLD_OPERATIONS;
      const method = table.find((row) => row.id === id)?.rpc ?? id;
      const input = version === '1.0' ? params : older(id, params);
      return await raw('POST', '', { jsonrpc: '2.0', id: `r${++count}`, method, params: input }, all);
    }
    return await rest({ raw, version, id, params, headers: all });
  }

  return {
    base,
    token,
    other,
    raw,
    async call(way, operation, params, headers) {
      if (way.binding === 'GRPC') {
        const { status, message, reason, result } = await overGrpc(way, operation, params, headers);
        const error = status === 0 ? undefined : { status, message, reason };
        const made = error ? undefined : newer(way, operation, result);
        return { status, headers: new Headers(), result: made, error, raw: error ?? result };
      }
      const answer = await send(way, operation, params, headers);
      const text = await answer.text();
      // Resubscribing in 0.3 is refused on the stream.
      const said = /^data: (.*)$/m.exec(text)?.[1] ?? text;
      const body = said === '' ? undefined : JSON.parse(said);
      const { status, headers: came } = answer;
      if (way.binding === 'JSONRPC') {
        const { result, error } = body;
        const reason = error?.data?.[0]?.reason ?? error?.data?.reason;
        return {
          status,
          headers: came,
          result: newer(way, operation, result),
          error: error && { ...error, reason },
          raw: body,
        };
      }
      const failed = status >= 400;
      const error = failed ? (body.error ?? body) : undefined;
      const reason = error?.details?.[0]?.reason ?? error?.data?.reason;
      return {
        status,
        headers: came,
        result: failed ? undefined : newer(way, operation, body),
        error: error && { ...error, reason },
        raw: body,
      };
    },
    async stream(way, operation, params, headers) {
      if (way.binding === 'GRPC') {
        const { status, message, result } = await overGrpc(way, operation, params, headers);
        if (status !== 0) throw new Error(`no stream: ${message}`);
        return result.map((each: Body) => newerEvent(way, each));
      }
      const answer = await send(way, operation, params, headers);
      const text = await answer.text();
      if (!answer.headers.get('content-type')?.startsWith('text/event-stream'))
        throw new Error(`no stream: ${text.slice(0, 200)}`);
      const said = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []));
      return said.map((each) => newerEvent(way, way.binding === 'JSONRPC' ? each.result : each));
    },
    client: ({ binding, version }) => (version === '1.0' ? newClient : oldClient)(`${base}/`, binding, token ?? ''),
    supports: async ({ binding }) => binding !== 'GRPC' || (await grpcAddress()) !== undefined,
    fresh: (prefix) => `${prefix}-${process.pid}-${Date.now()}-${++count}`,
  };
}

interface RestCall {
  readonly raw: Target['raw'];
  readonly version: Version;
  readonly id: string;
  readonly params: Body;
  readonly headers: Record<string, string>;
}

function rest({ raw, version, id, params, headers }: RestCall): Promise<Response> {
  const table: readonly { id: string; path: string }[] = version === '1.0' ? OPERATIONS : OLD_OPERATIONS;
  const { path } = table.find((row) => row.id === id) ?? { path: `/${id}` };
  const { id: own, taskId, ...rest } = params;
  const push = id.endsWith('Push');
  const location = path
    .replace('{id}', encodeURIComponent(push ? taskId : own))
    .replace('{configId}', encodeURIComponent(own ?? ''));
  const verb = ['get', 'list', 'getPush', 'listPush', 'card'].includes(id)
    ? 'GET'
    : id === 'deletePush'
      ? 'DELETE'
      : 'POST';
  if (verb !== 'POST') {
    const query = new URLSearchParams(
      Object.entries(rest).map(([name, value]): [string, string] => [name, String(value)]),
    ).toString();
    return raw(verb, `${location}${query && verb === 'GET' ? `?${query}` : ''}`, undefined, headers);
  }
  const input = push ? { ...rest, ...(own && { id: own }) } : rest;
  return raw('POST', location, version === '1.0' ? input : olderRest(id, { ...input, taskId }), headers);
}

/** 1.0 parameters in the words of 0.3. */
function older(id: string, params: Body): Body {
  if (id === 'send' || id === 'stream') {
    const { message, configuration } = params;
    const parts = message.parts?.map(({ text, data, url, raw, mediaType: mimeType, filename: name }: Body) =>
      text !== undefined
        ? { kind: 'text', text }
        : data !== undefined
          ? { kind: 'data', data }
          : { kind: 'file', file: { ...(url ? { uri: url } : { bytes: raw }), mimeType, name } },
    );
    const { returnImmediately, taskPushNotificationConfig, ...kept } = configuration ?? {};
    const how = {
      ...kept,
      blocking: !returnImmediately,
      ...(taskPushNotificationConfig && { pushNotificationConfig: taskPushNotificationConfig }),
    };
    return {
      message: { kind: 'message', ...message, role: 'user', parts },
      configuration: how,
    };
  }
  if (id === 'createPush') {
    const { taskId, ...pushNotificationConfig } = params;
    return { taskId, pushNotificationConfig };
  }
  if (id === 'listPush') return { id: params.taskId };
  if (id === 'getPush' || id === 'deletePush') return { id: params.taskId, pushNotificationConfigId: params.id };
  return params;
}

function olderRest(id: string, params: Body): Body {
  if (id === 'send' || id === 'stream') {
    const { message, configuration } = params;
    const { parts, ...about } = message;
    const content = parts?.map(({ data, ...part }: Body) => (data === undefined ? part : { data: { data } }));
    const { returnImmediately, ...kept } = configuration ?? {};
    const how = { ...kept, blocking: !returnImmediately };
    return { message: { ...about, content }, configuration: how };
  }
  if (id === 'createPush') {
    const { taskId, ...config } = params;
    return {
      parent: `tasks/${taskId}`,
      configId: config.id,
      name: `tasks/${taskId}/pushNotificationConfigs/${config.id}`,
      pushNotificationConfig: config,
    };
  }
  return {};
}

/** 0.3 over HTTP spells the one state with two letters more. */
const STATE = (state: string) =>
  state.startsWith('TASK_STATE_')
    ? state.replace('CANCELLED', 'CANCELED')
    : `TASK_STATE_${state.replace('-', '_').toUpperCase()}`;

function newerTask(task: Body): Body {
  return task?.status ? { ...task, status: { ...task.status, state: STATE(task.status.state) } } : task;
}

/** A result in the shape of 1.0, as far as the checks look into it. */
function newer({ version }: Way, id: string, result: Body): Body {
  if (version === '1.0' || result === undefined || result === null) return result;
  if (id === 'send') {
    const task = result.task ?? (result.kind === 'task' ? result : undefined);
    return task ? { task: newerTask(task) } : { message: result.msg ?? result.message ?? result };
  }
  if (id === 'get' || id === 'cancel') return newerTask(result);
  if (id.endsWith('Push')) {
    const one = (config: Body) => ({
      ...config.pushNotificationConfig,
      taskId: config.taskId ?? config.name?.split('/')[1],
    });
    if (id === 'listPush') return { configs: (Array.isArray(result) ? result : (result.configs ?? [])).map(one) };
    return one(result);
  }
  return result;
}

function newerEvent({ version }: Way, event: Body): Body {
  if (version === '1.0') return event;
  if (event.kind === 'task') return { task: newerTask(event) };
  if (event.kind === 'status-update') return { statusUpdate: newerTask(event) };
  if (event.kind === 'artifact-update') return { artifactUpdate: event };
  if (event.kind === 'message') return { message: event };
  const [[name, value]] = Object.entries(event) as [[string, Body]];
  return { [name]: newerTask(value) };
}
