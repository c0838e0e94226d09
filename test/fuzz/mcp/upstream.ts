/**
 * An instrumented MCP server in this process: it takes whatever comes as the most gullible server would, writes down
 * every act it saw, and says something it should not before each answer.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { frames } from '../../../mappings/mcp.ts';
import type { JsonObject } from '../../../src/model/schema.ts';

type Loose = Record<string, unknown>;

export interface Seen {
  readonly tool: string;
  readonly arguments: JsonObject;
}

export interface FuzzedUpstream {
  readonly url: string;
  close(): Promise<void>;
}

export interface UpstreamHooks {
  /** An act, at the moment it is seen. */
  act(seen: Seen): void;
  /** Something that must never arrive here. */
  wrong(what: string): void;
  /** What is said before the next answer. */
  next(): string | undefined;
}

const TYPED = {
  type: 'object',
  properties: { n: { type: 'string' }, force: { type: 'boolean' }, path: { type: 'string' } },
};
const TOOLS = ['echo', 'forced', 'danger', 'constructor', 'toString', '__proto__'].map((name) => ({
  name,
  description: `does ${name}`,
  inputSchema: name === 'forced' ? TYPED : { type: 'object' },
  annotations: { readOnlyHint: true },
}));

/** Names in a table's row of a client; everything else is an act, whatever it is called. */
const KNOWN: ReadonlySet<string> = new Set(
  frames.rows.filter(({ from }) => from === 'client').map(({ method }) => method),
);

export async function openFuzzedUpstream(hooks: UpstreamHooks): Promise<FuzzedUpstream> {
  let sessions = 0;

  /** Names are compared without regard to case, as some readers of JSON do, and the last one counts. */
  function member(object: unknown, name: string): unknown {
    if (typeof object !== 'object' || object === null) return undefined;
    return Object.entries(object).findLast(([key]) => key.toLowerCase() === name)?.[1];
  }

  function take(frame: unknown): Loose | undefined {
    const method = member(frame, 'method');
    const id = member(frame, 'id');
    if (method === undefined) return undefined;
    if (typeof method !== 'string') hooks.wrong(`a method that is no text: ${JSON.stringify(method)}`);
    const name = String(method);
    const params = member(frame, 'params');
    if (name.trim().toLowerCase() === 'tools/call') {
      if (id === undefined) hooks.wrong('a call without an id');
      const args = member(params, 'arguments') ?? {};
      hooks.act({ tool: String(member(params, 'name')), arguments: args as JsonObject });
      return { content: [{ type: 'text', text: JSON.stringify(args) }] };
    }
    if (name.startsWith('notifications/')) {
      if (id !== undefined) hooks.wrong(`${name} with an id`);
      return undefined;
    }
    if (id === undefined) hooks.wrong(`a notification that is none: ${name}`);
    if (!KNOWN.has(name)) hooks.act({ tool: name, arguments: withoutEnvelope((params ?? {}) as JsonObject) });
    return answers(name, params);
  }

  function answers(method: string, params: unknown): Loose {
    if (method === 'initialize') {
      const protocolVersion = String(member(params, 'protocolversion') ?? '2025-03-26');
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'fuzzed', version: '1' } };
    }
    if (method === 'server/discover') {
      return {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {} },
        ttlMs: 0,
        cacheScope: 'private',
      };
    }
    if (method === 'tools/list') return { tools: TOOLS };
    return {};
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const frame = JSON.parse(text) as Loose;
    if (Array.isArray(frame)) hooks.wrong('a batch');
    const result = take(frame);
    if (!result) return void response.writeHead(202).end();
    const answer = JSON.stringify({ jsonrpc: '2.0', id: frame.id, result });
    const session = frame.method === 'initialize' ? { 'mcp-session-id': `s${++sessions}` } : {};
    const before = frame.method === 'tools/call' ? hooks.next() : undefined;
    if (before === undefined) {
      response.writeHead(200, { 'content-type': 'application/json', ...session }).end(answer);
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', ...session });
    response.end(`data: ${before}\n\ndata: ${answer}\n\n`);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((cause) => {
      hooks.wrong(`a body that cannot be read: ${String(cause)}`);
      response.destroy();
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What a hop says of itself is not part of what was asked. */
function withoutEnvelope({ _meta, ...params }: JsonObject): JsonObject {
  return params;
}
