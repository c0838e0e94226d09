/** A gateway with one server of a test's own behind it, and frames said to it as they are. Closed with the test. */
import { onTestFinished } from 'vitest';
import type { AskRecord } from '../../../src/model/asks.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { Row } from '../../../src/ports/index.ts';
import { type McpGateway, type McpGatewayOptions, openMcpGateway, VISITOR } from './gateway.ts';
import { type Loose, openUpstream, type Upstream, type UpstreamOptions } from './upstream.ts';
import { exchange, type Received } from './wire-client.ts';

export const META = 'io.modelcontextprotocol/';

export interface Scene {
  readonly gateway: McpGateway;
  readonly upstream: Upstream;
  /** One request of the modern era. */
  modern(method: string, params?: Loose, more?: ModernMore): Promise<Received>;
  /** A session of the legacy era. */
  legacy(capabilities?: Loose, more?: { headers?: Record<string, string> }): Promise<LegacyClient>;
  events(): Promise<CoreEvent[]>;
  /** The open questions, once there is one. */
  asks(): Promise<AskRecord[]>;
}
export interface ModernMore {
  readonly capabilities?: Loose;
  readonly headers?: Record<string, string>;
  readonly meta?: Loose;
  readonly id?: number | string;
  readonly begun?: () => void;
  readonly signal?: AbortSignal;
  frame?(frame: Loose): boolean | undefined | Promise<boolean | undefined>;
}
export interface LegacyClient {
  readonly opened: Loose;
  readonly session: string;
  /** What the server asks on the way is answered with what `answer` says, if it says anything. */
  request(method: string, params?: Loose, answer?: (frame: Loose) => Loose | undefined): Promise<Received>;
  post(frame: Loose): Promise<Received>;
  listen(frame: (frame: Loose) => boolean | undefined, signal?: AbortSignal): Promise<Received>;
}

export interface SceneOptions extends UpstreamOptions {
  readonly rules?: McpGatewayOptions['rules'];
  readonly config?: Loose;
  readonly gateway?: Partial<McpGatewayOptions>;
  /** Further servers beside `u`. */
  readonly others?: McpGatewayOptions['upstreams'];
  /** The common address instead of the server's own. */
  readonly common?: boolean;
  /** The address of another server instead. */
  readonly at?: string;
}

export async function openScene(input: SceneOptions = {}): Promise<Scene> {
  const { rules, config, gateway: more, others, common, at = 'u', ...options } = input;
  const upstream = await openUpstream(options);
  const gateway = await openMcpGateway({
    upstreams: { u: { url: upstream.url, ...config }, ...others },
    ...(rules !== undefined && { rules }),
    ...more,
  });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const url = common ? `${gateway.url}/mcp` : gateway.at(at);
  let count = 0;
  const modern: Scene['modern'] = (method, params, more) => askModern(url, method, params, { id: ++count, ...more });

  const legacy: Scene['legacy'] = (capabilities, more) => openLegacyClient(url, capabilities, more);

  async function events(): Promise<CoreEvent[]> {
    const all: CoreEvent[] = [];
    for await (const event of gateway.runtime.store.read({ stream: { of: 'all' } })) all.push(event);
    return all;
  }

  return {
    gateway,
    upstream,
    modern,
    legacy,
    events,
    async asks() {
      const over = AbortSignal.timeout(10_000);
      for await (const { event } of gateway.runtime.store.follow({ stream: { of: 'all' } }, over)) {
        if (event === 'vendor.tollbridge.ask_opened') break;
      }
      const open = { object: 'ask', where: { state: 'open' } };
      return [...(await gateway.runtime.bridge.list<AskRecord & Row>(VISITOR, open)).data];
    },
  };
}

/** One request of the modern era at an address. */
export async function askModern(
  url: string,
  method: string,
  params: Loose = {},
  { headers, id = 1, capabilities = {}, meta, ...more }: ModernMore = {},
): Promise<Received> {
  const named = params.name ?? params.uri ?? params.taskId;
  return await exchange(url, {
    headers: {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(named !== undefined && { 'mcp-name': String(named) }),
      ...headers,
    },
    body: {
      jsonrpc: '2.0',
      id,
      method,
      params: {
        ...params,
        _meta: { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: capabilities, ...meta },
      },
    },
    ...more,
  });
}

/** A session of the legacy era at an address. */
export async function openLegacyClient(
  url: string,
  capabilities: Loose = {},
  { headers = {}, revision = '2025-11-25' }: { headers?: Record<string, string>; revision?: string } = {},
): Promise<LegacyClient> {
  let count = 0;
  const params = { protocolVersion: revision, capabilities, clientInfo: { name: 'c', version: '1' } };
  const first = await exchange(url, { headers, body: { jsonrpc: '2.0', id: 'init', method: 'initialize', params } });
  const session = String(first.headers['mcp-session-id']);
  const known = { 'mcp-session-id': session, 'mcp-protocol-version': revision, ...headers };
  const post = (frame: Loose) => exchange(url, { headers: known, body: { jsonrpc: '2.0', ...frame } });
  await post({ method: 'notifications/initialized' });
  return {
    opened: first.frames[0],
    session,
    post,
    request: (method, input = {}, answer) =>
      exchange(url, {
        headers: known,
        body: { jsonrpc: '2.0', id: ++count, method, params: input },
        async frame(frame) {
          const said = frame.method && frame.id !== undefined ? answer?.(frame) : undefined;
          if (said) await post({ id: frame.id, ...said });
          return undefined;
        },
      }),
    listen: (frame, signal) => exchange(url, { method: 'GET', headers: known, frame, ...(signal && { signal }) }),
  };
}

/** The last frame: what a request came to. */
export function outcome({ frames }: Received): Loose {
  return frames.at(-1);
}
