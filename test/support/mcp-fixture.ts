/**
 * A server that the official MCP suite finds nothing wrong with, in both eras, over HTTP and over standard input and output:
 * what stands behind the gateway when the suite looks at it through one, so that whatever fails then is the gateway's.
 * Also a program: `tsx test/support/mcp-fixture.ts --http <port> | --stdio [--era legacy|modern]
 * [--older-tasks]`.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  type EventStore,
  isLegacyRequest,
  type JSONRPCMessage,
  Server,
  WebStandardStreamableHTTPServerTransport as SessionTransport,
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { anything, type Call, type Era, type Loose, rpcError, TASKS, Unanswered } from './mcp-fixture-asking.ts';
import { complete, getPrompt, listPrompts, listResources, listTemplates, readResource } from './mcp-fixture-shelf.ts';
import { olderTask, tendOlderTask, tendTask } from './mcp-fixture-tasks.ts';
import { callTool, listTools, TOOLS } from './mcp-fixture-tools.ts';
import { paramHeaderFault } from './mcp-param-headers.ts';

export interface Fixture {
  readonly url: string;
  close(): Promise<void>;
}
type Changed = Call['changed'];

async function answer(call: Call, method: string): Promise<Loose> {
  switch (method) {
    case 'tools/list':
      return listTools(call.olderTasks);
    case 'tools/call':
      return call.olderTasks ? olderTask(await callTool(call)) : await callTool(call);
    case 'prompts/list':
      return listPrompts();
    case 'prompts/get':
      return await getPrompt(call);
    case 'resources/list':
      return listResources();
    case 'resources/templates/list':
      return listTemplates(call.params);
    case 'resources/read':
      return readResource(call.params);
    case 'completion/complete':
      return complete(call.params);
    case 'tasks/get':
    case 'tasks/update':
    case 'tasks/cancel':
      return call.olderTasks ? await tendOlderTask(call, method) : tendTask(call, method);
    case 'tasks/result':
      if (call.olderTasks) return await tendOlderTask(call, method);
      break;
    case 'logging/setLevel':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      if (call.era === 'legacy') return {};
  }
  throw rpcError(-32601, 'there is no such method');
}

function build(era: Era, changed: Changed, olderTasks = false): Server {
  const server = new Server(
    { name: 'fixture', version: '1.0.0', title: 'Fixture' },
    {
      instructions: 'Everything here is for tests.',
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        completions: {},
        logging: {},
        ...(era === 'modern' && { extensions: { [TASKS]: {} } }),
        ...(olderTasks && { tasks: { cancel: {}, requests: { tools: { call: {} } } } }),
      },
    },
  );
  const handle = async (method: string, params: Loose, context: Call['context']): Promise<Loose> => {
    const envelope = context.mcpReq.envelope as Loose | undefined;
    const abilities = era === 'modern' ? envelope?.[CAPABILITIES] : server.getClientCapabilities();
    const asked = { era, params, args: params.arguments ?? {}, abilities: (abilities ?? {}) as Loose };
    const call = { ...asked, context, changed, olderTasks };
    try {
      return await answer(call, method);
    } catch (thrown) {
      if (thrown instanceof Unanswered) return thrown.result;
      throw thrown;
    }
  };
  // With the logging capability the SDK answers this by itself; here everything is answered in one place.
  server.removeRequestHandler('logging/setLevel');
  server.fallbackRequestHandler = ({ method, params = {} }, context) => handle(method, params, context);
  if (era === 'modern' || olderTasks) {
    for (const method of ['tasks/get', 'tasks/cancel', ...(olderTasks ? ['tasks/result'] : [])]) {
      server.setRequestHandler(method, { params: anything }, (params, context) => handle(method, params, context));
    }
  }
  return server;
}
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

/** What went out on a session's streams, so that a reader who lost one can go on. */
function rememberEvents(): EventStore {
  const sent: { readonly id: string; readonly stream: string; readonly message: JSONRPCMessage }[] = [];
  return {
    async storeEvent(stream, message) {
      const id = `${sent.length}@${stream}`;
      sent.push({ id, stream, message });
      return id;
    },
    getStreamIdForEventId: async (id) => sent.find((each) => each.id === id)?.stream,
    async replayEventsAfter(last, { send }) {
      const place = sent.findIndex(({ id }) => id === last);
      const stream = sent[place]?.stream ?? '';
      for (const each of sent.slice(place + 1)) if (each.stream === stream) await send(each.id, each.message);
      return stream;
    },
  };
}

function sessions(changed: Changed, olderTasks: boolean) {
  const open = new Map<string, SessionTransport>();
  const servers = new Set<Server>();
  const refuse = (status: number, code: number, message: string) =>
    Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status });
  return {
    servers,
    async fetch(request: Request): Promise<Response> {
      const id = request.headers.get('mcp-session-id');
      if (id !== null) return (await open.get(id)?.handleRequest(request)) ?? refuse(404, -32001, 'no such session');
      if (request.method !== 'POST') return refuse(400, -32000, 'a session is needed');
      const transport = new SessionTransport({
        sessionIdGenerator: randomUUID,
        eventStore: rememberEvents(),
        retryInterval: 500,
        onsessioninitialized: (session) => void open.set(session, transport),
        onsessionclosed: (session) => void open.delete(session),
      });
      const server = build('legacy', changed, olderTasks);
      servers.add(server);
      transport.onclose = () => void servers.delete(server);
      await server.connect(transport);
      return await transport.handleRequest(request);
    },
  };
}

/** The SDK says 200 where the specification wants the status to tell what kind of error the body holds. */
const STATUS: Readonly<Record<string, number>> = { '-32020': 400, '-32021': 400, '-32022': 400, '-32601': 404 };

async function withStatus(response: Response): Promise<Response> {
  const json = response.headers.get('content-type')?.startsWith('application/json');
  if (response.status !== 200 || !json) return response;
  const body = await response.text();
  return new Response(body, { status: STATUS[JSON.parse(body).error?.code] ?? 200, headers: response.headers });
}

export interface FixtureOptions {
  readonly port?: number;
  readonly era?: Era;
  /** In the legacy era, which has them as a capability of its own. */
  readonly olderTasks?: boolean;
}

export async function serveFixture({ port = 0, era, olderTasks = false }: FixtureOptions = {}): Promise<Fixture> {
  const tell: Changed = (list) => {
    if (list === 'tools') modern.notify.toolsChanged();
    else modern.notify.promptsChanged();
    for (const server of legacy.servers) sendChanged(server, list);
  };
  const modern = createMcpHandler(() => build('modern', tell), { legacy: 'reject', onerror: () => {} });
  const legacy = sessions(tell, olderTasks);
  const handler = toNodeHandler({
    async fetch(request, options) {
      const isLegacy = await isLegacyRequest(request);
      if (era === 'legacy' || (isLegacy && era !== 'modern')) return await legacy.fetch(request);
      const message = (await request
        .clone()
        .json()
        .catch(() => undefined)) as Loose | undefined;
      const tool = message?.method === 'tools/call' ? TOOLS[message.params?.name] : undefined;
      const fault = tool && paramHeaderFault(tool.takes ?? {}, message?.params?.arguments, request.headers);
      if (fault === undefined) return await withStatus(await modern.fetch(request, options));
      const error = { code: -32020, message: fault };
      return Response.json({ jsonrpc: '2.0', id: message?.id, error }, { status: 400 });
    },
  });
  const [host, origin] = [localhostHostValidation(), localhostOriginValidation()];
  const http = createServer((request, response) => {
    if (host(request, response) && origin(request, response))
      void handler(request as Parameters<typeof handler>[0], response);
  });
  await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://localhost:${(http.address() as AddressInfo).port}/mcp`,
    async close() {
      await modern.close();
      http.closeAllConnections();
      await new Promise<unknown>((resolve) => http.close(resolve));
    },
  };
}

function sendChanged(server: Server, list: 'tools' | 'prompts'): void {
  const sent = list === 'tools' ? server.sendToolListChanged() : server.sendPromptListChanged();
  // Whoever has gone is not told.
  sent.catch(() => {});
}

function serveLines(era: Era | undefined, olderTasks: boolean): void {
  const live = new Set<Server>();
  const tell: Changed = (list) => {
    for (const server of live) sendChanged(server, list);
  };
  const factory = ({ era }: { era: Era }) => {
    const server = build(era, tell, olderTasks && era === 'legacy');
    live.add(server);
    return server;
  };
  if (era === 'legacy') void factory({ era }).connect(new StdioServerTransport());
  else serveStdio(factory, { legacy: era === 'modern' ? 'reject' : 'serve' });
}

/** The command that starts this server on standard input and output. */
export function fixtureCommand(...more: readonly string[]): readonly string[] {
  return [process.execPath, '--import', 'tsx', fileURLToPath(import.meta.url), '--stdio', ...more];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      http: { type: 'string' },
      stdio: { type: 'boolean' },
      era: { type: 'string' },
      'older-tasks': { type: 'boolean', default: false },
    },
  });
  const era = values.era as Era | undefined;
  if (values.http === undefined) serveLines(era, values['older-tasks']);
  else console.log((await serveFixture({ port: Number(values.http), ...(era && { era }) })).url);
}
