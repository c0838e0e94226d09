/**
 * The door: clients reach one server unchanged at an address of its own, or all servers at the common address. Callers are
 * authenticated before a request is read. Contains no policy and no connection to a server.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Actor,
  type Bridge,
  type Closable,
  type Deps,
  Fault,
  type FrontDoor,
  type HttpHandler,
  type StreamClient,
} from '../../../src/index.ts';
import { SESSION_HEADER } from '../../../src/transport/http/session-header.ts';
import type { McpSettings } from '../config.ts';
import { createAggregateEndpoint } from './aggregate/endpoint.ts';
import { createSearchEndpoint } from './aggregate/search.ts';
import { createRequestAuth } from './auth.ts';
import { createCallTasks } from './call-tasks.ts';
import { createEndpoint, type EndpointHandler } from './endpoint.ts';
import { createHttpHandler, refuseFault } from './transports/http.ts';
import type { LegacyClient } from './transports/legacy-sessions.ts';
import { createSessionNames } from './transports/session-name.ts';
import { createSseSessions, ssePath } from './transports/sse.ts';
import { serveStdio } from './transports/stdio.ts';

export function mcpDoor(settings: McpSettings, deps: Deps): FrontDoor {
  return {
    name: 'mcp',
    carries: ['approval'],
    open: async (bridge) => openMcpDoor(bridge, settings, deps),
    serve: (bridge, client) => serveClient(bridge, client, settings, deps),
  };
}

/** One client, and one server whose frames it sees unchanged. */
async function serveClient(bridge: Bridge, client: StreamClient, settings: McpSettings, deps: Deps): Promise<void> {
  const { input, output, actor, person, session: home, conversation, server = '', signal } = client;
  const callTasks = createCallTasks(bridge, settings, deps, conversation);
  const handler = createEndpoint(server, { bridge, callTasks, settings, deps });
  try {
    const options = { actor, ...(person && { person }), handler, log: deps.log, lineLimit: LINE_LIMIT, home, signal };
    await serveStdio({ input, output }, options);
  } finally {
    handler.close();
    await callTasks.close();
  }
}

const LINE_LIMIT = 16 * 1024 * 1024;

/** A server name as the configuration allows it; other names are not looked up. */
const NAME = /^[a-z][a-z0-9_-]*$/;

function openMcpDoor(bridge: Bridge, settings: McpSettings, deps: Deps): Closable {
  const { log } = deps;
  const callTasks = createCallTasks(bridge, settings, deps);
  const handlers = new Map<string, EndpointHandler>();
  const parts = { bridge, callTasks, settings, deps };
  const auth = createRequestAuth({
    authenticate: deps.authenticate,
    base: () => settings.publicUrl ?? deps.http.url,
    path: settings.path,
    authorizationServers: settings.authorizationServers,
    workspace: settings.workspace,
  });
  function ended(sessionId: string): void {
    callTasks.end(`session:${sessionId}`).catch((cause) => log.warn({ err: cause }, 'a session could not be ended'));
  }
  const { bodyLimit, silenceMs } = settings;
  const mark = () => deps.http.mark ?? '';
  const http = createHttpHandler({
    bodyLimit,
    silenceMs,
    idleMs: settings.sessionIdleMs,
    awayMs: settings.sessionAwayMs,
    log,
    mark,
    names: createSessionNames({ mark, mac: deps.mac }),
    hold: async (name) => (await deps.hold?.(`mcp-session ${name}`)) ?? mark(),
    handOn: async (...handed) => (await deps.http.handOn?.(...handed)) ?? false,
    ended,
  });
  const prefix = () => (settings.publicUrl ? new URL(settings.publicUrl).pathname.replace(/\/$/, '') : '');
  const sse = settings.sse ? createSseSessions({ bodyLimit, prefix, log, mark, ended }) : undefined;

  function handlerOf(server: string): EndpointHandler {
    const known = handlers.get(server) ?? createEndpoint(server, parts);
    handlers.set(server, known);
    return known;
  }

  const common = createAggregateEndpoint({
    ...parts,
    handlerOf,
    servers: settings.servers,
    agents: settings.agents,
  });
  const searching = createSearchEndpoint(common);

  async function serve(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const actor = await auth.admit(request, response, path);
    if (!actor) return;
    const older = sse && ssePath(path);
    const client = clientAt(older?.at ?? path, actor, homeOf(request));
    if (older) await sse.handle(request, response, client, older);
    else await http.handle(request, response, client);
  }

  function clientAt(path: string, actor: Actor, home: string | undefined): LegacyClient {
    if (path === settings.path) return { actor, endpoint: '', handler: settings.toolSearch ? searching : common, home };
    // No server's name begins like this.
    if (path === `${settings.path}/_search`) return { actor, endpoint: '', handler: searching, home };
    const server = path.slice(settings.path.length + 1);
    const known = handlers.get(server);
    if (!known && !NAME.test(server)) throw new Fault('not_found', 'there is no such server');
    return { actor, endpoint: server, handler: known ?? handlerOf(server), home };
  }

  const handler: HttpHandler = (request, response) => {
    const path = request.url?.split('?', 1)[0] ?? '/';
    serve(request, response, path).catch((thrown) => {
      log.error({ err: thrown }, 'a request failed');
      if (!response.headersSent) refuseFault(response, thrown);
      else response.destroy();
    });
  };
  deps.http.claim('mcp', [
    { path: `${settings.path}/*`, handler, names: [{ header: 'mcp-session-id' }, { query: 'sessionId' }] },
    ...auth.routes,
  ]);

  return {
    async close() {
      http.close();
      sse?.close();
      for (const handler of [common, ...handlers.values()]) handler.close();
      await callTasks.close();
    },
  };
}

/** The first value, where the header was sent more than once. Most clients send none, and `headersDistinct` is costly to build. */
function homeOf(request: IncomingMessage): string | undefined {
  return request.headers[SESSION_HEADER] === undefined ? undefined : request.headersDistinct[SESSION_HEADER]?.[0];
}
