/** A server that speaks nothing but the transport of 2024-11-05, as the SDK's first line has it; other ways in are not there. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import {
  CallToolRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { Loose } from './upstream.ts';

export interface SseServer {
  readonly url: string;
  readonly seen: { readonly method: string; readonly path: string; readonly headers: IncomingHttpHeaders }[];
  sessions(): number;
  changed(): void;
  /** Cuts every stream, as a restart would. */
  cut(): void;
  close(): Promise<void>;
}

/** With `endpoint` it says that frames are to be posted there, which the SDK would not let it say, and nothing else. */
export async function openSseServer({ endpoint }: { endpoint?: string } = {}): Promise<SseServer> {
  const seen: SseServer['seen'] = [];
  const open = new Map<string, { transport: SSEServerTransport; server: Server }>();
  const http = createServer(async (request, response) => {
    const at = new URL(request.url ?? '/', 'http://x');
    seen.push({ method: request.method ?? '', path: at.pathname, headers: request.headers });
    if (request.method === 'GET' && at.pathname === '/sse') {
      if (endpoint !== undefined) {
        response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .write(`event: endpoint\ndata: ${endpoint}\n\n`);
        return;
      }
      const transport = new SSEServerTransport('/message', response);
      const server = build();
      open.set(transport.sessionId, { transport, server });
      response.once('close', () => open.delete(transport.sessionId));
      await server.connect(transport as Parameters<typeof server.connect>[0]);
      return;
    }
    const found = open.get(at.searchParams.get('sessionId') ?? '');
    if (request.method === 'POST' && at.pathname === '/message' && found) {
      return await found.transport.handlePostMessage(request, response);
    }
    response.writeHead(404, { 'content-type': 'text/html' }).end('<p>Cannot do that</p>');
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/sse`,
    seen,
    sessions: () => open.size,
    changed() {
      for (const { server } of open.values()) void server.sendToolListChanged();
    },
    cut() {
      for (const { transport } of open.values()) void transport.close();
    },
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

function build(): Server {
  const server = new Server(
    { name: 'older', version: '0.9' },
    { capabilities: { tools: { listChanged: true }, logging: {} } },
  );
  const tools = ['echo', 'slowly', 'ask', 'sample'];
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map((name) => ({ name, description: `does ${name}`, inputSchema: { type: 'object' as const } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra): Promise<Loose> => {
    const args = (params.arguments ?? {}) as Loose;
    const say = (text: string) => ({ content: [{ type: 'text', text }] });
    if (params.name === 'slowly') {
      const progressToken = params._meta?.progressToken;
      for (const progress of [1, 2]) {
        const reported = { progressToken: progressToken as string, progress, message: args.text };
        await extra.sendNotification({ method: 'notifications/progress', params: reported });
      }
    }
    if (params.name === 'ask') {
      const requestedSchema = { type: 'object' as const, properties: { name: { type: 'string' as const } } };
      const asked = { method: 'elicitation/create' as const, params: { message: 'Who?', requestedSchema } };
      return say(JSON.stringify(await extra.sendRequest(asked as Loose, ElicitResultSchema)));
    }
    if (params.name === 'sample') {
      const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'Capital of Peru?' } }];
      const asked = { method: 'sampling/createMessage' as const, params: { messages, maxTokens: 5 } };
      return say(JSON.stringify(await extra.sendRequest(asked as Loose, CreateMessageResultSchema)));
    }
    return say(String(args.text ?? ''));
  });
  return server;
}
