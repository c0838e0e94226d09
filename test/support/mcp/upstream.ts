/**
 * A server of tools for tests, in either era or both, over HTTP or as a child: built on the SDK's low-level server, so that
 * what it sends is what the test says. It counts what it is asked, which is how a test knows that it was not.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  isLegacyRequest,
  Server,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
export type Loose = any;

export interface Asked {
  readonly method: string;
  readonly params: Loose;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Ask {
  readonly era: 'legacy' | 'modern';
  readonly params: Loose;
  readonly args: Loose;
  readonly ctx: ServerContext;
  /** Asks the client: a request in the legacy era; in the modern one its answers, or a reason to answer with questions. */
  input(requests: Record<string, { method: string; params?: Loose }>): Promise<Loose>;
  notify(method: string, params: Loose): Promise<void>;
}
export type Tool = { readonly definition?: Loose; call(ask: Ask): Loose };

export interface Upstream {
  readonly url: string;
  readonly asked: Asked[];
  readonly tools: Record<string, Tool>;
  /** Answers to other methods. */
  readonly answers: Record<string, (ask: Ask) => Loose>;
  /** How often this method was asked for. */
  count(method: string): number;
  /** Requests of the modern era that have begun to listen; they are not among those asked for. */
  listening(): number;
  /** Sessions of the legacy era that are open. */
  sessions(): number;
  changed(list?: 'tools' | 'prompts' | 'resources'): void;
  /** A resource is other than it was: clients that subscribed to it are notified. */
  updated(uri: string): void;
  /** Knows no session any more, as after a restart. */
  forget(): void;
  close(): Promise<void>;
}

const loose = z.looseObject({});
class NeedsInput {
  readonly result: Loose;
  constructor(result: Loose) {
    this.result = result;
  }
}

export interface UpstreamOptions {
  readonly eras?: readonly ('legacy' | 'modern')[];
  readonly tools?: Record<string, Tool>;
  readonly answers?: Record<string, (ask: Ask) => Loose>;
  readonly capabilities?: Loose;
}

export const echo: Tool = {
  call: ({ args }) => ({ content: [{ type: 'text', text: String(args.text ?? '') }] }),
};

/** A tool that goes on until its call is given up. */
export function untilStopped(): { readonly slow: Tool; readonly stopped: Promise<void> } {
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const call = ({ ctx }: Ask) =>
    new Promise((_, reject) => {
      ctx.mcpReq.signal.addEventListener('abort', () => {
        stop();
        reject(new Error('stopped'));
      });
    });
  return { slow: { call }, stopped };
}

export function text(said: string): Loose {
  return { content: [{ type: 'text', text: said }] };
}

export function buildServer(
  era: 'legacy' | 'modern',
  world: Pick<Upstream, 'asked' | 'tools' | 'answers'>,
  capabilities?: Loose,
) {
  const server = new Server(
    { name: 'test-upstream', version: '1.2.3' },
    {
      capabilities: capabilities ?? {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        completions: {},
        logging: {},
      },
      instructions: 'be kind',
    },
  );
  server.removeRequestHandler('logging/setLevel');
  async function handle(method: string, params: Loose, ctx: ServerContext): Promise<Loose> {
    const headers = Object.fromEntries((ctx.http?.req as Loose)?.headers ?? []);
    world.asked.push({ method, params, headers });
    const ask: Ask = {
      era,
      params,
      args: params.arguments ?? {},
      ctx,
      notify: (name, input) => ctx.mcpReq.notify({ method: name, params: input } as Loose),
      async input(requests) {
        if (era === 'legacy') {
          const pairs = Object.entries(requests).map(async ([key, request]) => {
            return [key, await ctx.mcpReq.send(request as Loose, loose as Loose)] as const;
          });
          return Object.fromEntries(await Promise.all(pairs));
        }
        const input = (ctx.mcpReq.inputResponses ?? {}) as Loose;
        if (Object.keys(requests).every((key) => input[key])) return input;
        throw new NeedsInput({ resultType: 'input_required', inputRequests: requests, requestState: 'upstream-state' });
      },
    };
    try {
      if (world.answers[method]) return await world.answers[method](ask);
      if (method === 'tools/list') {
        const tools = Object.entries(world.tools).map(([name, { definition }]) => ({
          name,
          description: `does ${name}`,
          inputSchema: { type: 'object' },
          ...definition,
        }));
        return { tools };
      }
      if (method === 'tools/call') {
        const tool = Object.hasOwn(world.tools, params.name) ? world.tools[params.name] : undefined;
        if (!tool) throw Object.assign(new Error(`Unknown tool: ${params.name}`), { code: -32602 });
        return await tool.call(ask);
      }
    } catch (thrown) {
      if (thrown instanceof NeedsInput) return thrown.result;
      throw thrown;
    }
    throw Object.assign(new Error('Method not found'), { code: -32601 });
  }
  server.fallbackRequestHandler = (request, ctx) =>
    handle(request.method, request.params ?? {}, ctx as ServerContext) as Loose;
  server.fallbackNotificationHandler = async ({ method, params }) => {
    world.asked.push({ method, params, headers: {} });
  };
  return server;
}

export async function openUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const { eras = ['legacy', 'modern'], tools = { echo }, answers = {}, capabilities } = options;
  const asked: Asked[] = [];
  const world = { asked, tools: { ...tools }, answers: { ...answers } };
  const modern = createMcpHandler(() => buildServer('modern', world, capabilities), { legacy: 'reject' });
  const sessions = new Map<string, { transport: WebStandardStreamableHTTPServerTransport; server: Server }>();
  let listening = 0;
  const gone = (status: number, code: number, message: string) =>
    Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status });

  async function legacy(request: Request): Promise<Response> {
    if (!eras.includes('legacy')) return gone(400, -32000, 'no sessions here');
    const id = request.headers.get('mcp-session-id');
    if (id) return sessions.get(id)?.transport.handleRequest(request) ?? gone(404, -32001, 'Session not found');
    if (request.method !== 'POST') return gone(400, -32000, 'Session required');
    const server = buildServer('legacy', world, capabilities);
    const transport: WebStandardStreamableHTTPServerTransport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (made) => void sessions.set(made, { transport, server }),
      onsessionclosed: (made) => void sessions.delete(made),
    });
    await server.connect(transport);
    return await transport.handleRequest(request);
  }

  const node = toNodeHandler({
    fetch: async (request: Request, extra: Loose) => {
      if (!eras.includes('modern') || (await isLegacyRequest(request))) return await legacy(request);
      if (request.headers.get('mcp-method') === 'subscriptions/listen') listening += 1;
      return await modern.fetch(request, extra);
    },
  } as Loose);
  const server = createServer((request, response) => void node(request as Loose, response as Loose));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    ...world,
    url: `http://127.0.0.1:${port}/mcp`,
    count: (method) => asked.filter((each) => each.method === method).length,
    listening: () => listening,
    sessions: () => sessions.size,
    changed(list = 'tools') {
      modern.notify[`${list}Changed`]();
      for (const { server: each } of sessions.values()) {
        const method = `notifications/${list}/list_changed`;
        void each.notification({ method } as Loose).catch(() => {});
      }
    },
    updated(uri) {
      modern.notify.resourceUpdated(uri);
      for (const { server: each } of sessions.values()) void each.sendResourceUpdated({ uri }).catch(() => {});
    },
    forget: () => sessions.clear(),
    async close() {
      await modern.close();
      for (const each of sessions.values()) await each.transport.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
