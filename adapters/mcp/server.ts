/**
 * The door: clients reach one server as it is at an address of its own, or all of them at the common one. Who is there is
 * proven before anything is read. No policy here, and no server.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Actor, type Bridge, type Closable, type Deps, Fault, type FrontDoor } from '../../src/index.ts';
import { SESSION_HEADER } from '../../src/wire/session-home.ts';
import { createCommonDesk } from './common-desk.ts';
import type { McpSettings } from './config.ts';
import { createDesk, type Desk } from './desk.ts';
import { createNorthAuth } from './north-auth.ts';
import { createNorthHttp, refuseFault } from './north-http.ts';
import type { Visitor } from './north-legacy.ts';
import { createNorthSse, olderPlace } from './north-sse.ts';
import { createStints } from './stints.ts';

export function mcpDoor(settings: McpSettings, deps: Deps): FrontDoor {
  return {
    name: 'mcp',
    carries: ['approval'],
    open: async (bridge) => openMcpDoor(bridge, settings, deps),
  };
}

/** A name as the configuration allows it; anything else is not looked up. */
const NAME = /^[a-z][a-z0-9_-]*$/;

function openMcpDoor(bridge: Bridge, settings: McpSettings, deps: Deps): Closable {
  const { log } = deps;
  const stints = createStints(bridge, settings, deps);
  const desks = new Map<string, Desk>();
  const parts = { bridge, stints, settings, deps };
  const auth = createNorthAuth({
    authenticate: deps.authenticate,
    base: () => settings.publicUrl ?? deps.http.url,
    path: settings.path,
    authorizationServers: settings.authorizationServers,
    workspace: settings.workspace,
  });
  function ended(sessionId: string): void {
    stints.end(`session:${sessionId}`).catch((cause) => log.warn({ err: cause }, 'a session could not be ended'));
  }
  const { bodyLimit } = settings;
  const http = createNorthHttp({ bodyLimit, idleMs: settings.sessionIdleMs, log, ended });
  const prefix = () => (settings.publicUrl ? new URL(settings.publicUrl).pathname.replace(/\/$/, '') : '');
  const sse = settings.sse ? createNorthSse({ bodyLimit, prefix, log, ended }) : undefined;

  function deskOf(server: string): Desk {
    const known = desks.get(server) ?? createDesk(server, parts);
    desks.set(server, known);
    return known;
  }

  const common = createCommonDesk({ ...parts, deskOf, servers: settings.servers, agents: settings.agents });

  async function serve(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const actor = await auth.admit(request, response, path);
    if (!actor) return;
    const older = sse && olderPlace(path);
    const visitor = visitorAt(older?.at ?? path, actor, homeOf(request));
    if (older) await sse.handle(request, response, visitor, older);
    else await http.handle(request, response, visitor);
  }

  function visitorAt(path: string, actor: Actor, home: string | undefined): Visitor {
    if (path === settings.path) return { actor, endpoint: '', desk: common, home };
    const server = path.slice(settings.path.length + 1);
    const known = desks.get(server);
    if (!known && !NAME.test(server)) throw new Fault('not_found', 'there is no such server');
    return { actor, endpoint: server, desk: known ?? deskOf(server), home };
  }

  deps.http.mount('/', (request, response, next) => {
    if (!auth.described(request, response)) next();
  });
  // By its name, so that its requests are not shown to every other door first.
  deps.http.mount(settings.path, (request, response) => {
    const { originalUrl = request.url ?? '/' } = request as IncomingMessage & { readonly originalUrl?: string };
    const path = originalUrl.split('?', 1)[0] ?? '/';
    serve(request, response, path).catch((thrown) => {
      log.error({ err: thrown }, 'a request failed');
      if (!response.headersSent) refuseFault(response, thrown);
      else response.destroy();
    });
  });

  return {
    async close() {
      http.close();
      sse?.close();
      for (const desk of [common, ...desks.values()]) desk.close();
      await stints.close();
    },
  };
}

/** The first, where it was sent more than once. Most send none, and to take all headers apart for that shows in every request. */
function homeOf(request: IncomingMessage): string | undefined {
  return request.headers[SESSION_HEADER] === undefined ? undefined : request.headersDistinct[SESSION_HEADER]?.[0];
}
