/**
 * The door: REST, event streams and WebSocket in the canonical protocol's own words. Frames in, frames out; no policy and
 * no state here. Every failure has the same envelope, and a wrong version is refused before any other check.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { VERSION_HEADER } from '../../../mappings/harn.ts';
import {
  type Actor,
  asFault,
  type Bridge,
  type Closable,
  type Deps,
  Fault,
  type FrontDoor,
  type HttpRoute,
  type LoginSource,
  type ToolBackend,
} from '../../../src/index.ts';
import { addressOf, bearerOf } from '../../../src/transport/http/bearer.ts';
import { requestIdOf } from '../../../src/transport/http/server.ts';
import type { HarnSettings } from '../config.ts';
import { DEFAULT, REVISIONS } from '../revisions/revisions.ts';
import type { RouteContext } from './call.ts';
import {
  ANONYMOUS,
  allowedKey,
  checkBody,
  namedRevision,
  readCall,
  requireKey,
  requireOwnScope,
  requireRevision,
  send,
  sendFault,
  shown,
} from './exchange.ts';
import { createFollowers } from './followers.ts';
import { createLiveClients, withLiveMembers } from './live-clients.ts';
import { createMetrics } from './metrics.ts';
import { createRoutes } from './routes/index.ts';
import { createSockets, type Perform } from './sockets/socket.ts';
import { createHosts, type Hosts } from './sockets/socket-tools.ts';

export function harnDoor(
  settings: HarnSettings,
  deps: Deps,
  tools: readonly ToolBackend[] = [],
  hosts: Hosts = createHosts({ ids: deps.ids, timeoutMs: settings.hostTimeoutMs }),
): FrontDoor {
  return {
    name: 'harn',
    carries: ['approval', 'input'],
    tools: [...tools, hosts.backend],
    async open(bridge) {
      return openDoor(settings, deps, bridge, hosts);
    },
  };
}

function openDoor(settings: HarnSettings, deps: Deps, bridge: Bridge, hosts: Hosts): Closable {
  const metrics = createMetrics();
  const followers = createFollowers(deps.authenticate, metrics, settings.recheckMs);
  const live = createLiveClients(deps.clock);
  const context: RouteContext = { bridge, deps, settings, followers, metrics, hosts, live, openedAt: deps.clock.now() };
  const routes = createRoutes(context);

  async function admit(bearer: string | undefined, from: LoginSource): Promise<Actor> {
    // The native door shows all that its caller may see; every other door shows the public view.
    return { ...(await deps.authenticate(bearer, from)), door: 'harn', sees: 'internal' };
  }

  /** A command from a socket: the route its REST twin has, with the same checks. */
  const perform: Perform = async (id, { revision, actor, params, body, key }) => {
    const operation = revision.operationOf(id);
    if (!operation) throw new Fault('not_implemented', `${id} is not part of ${revision.version}`);
    if (operation.handling === 'refuse') throw new Fault('not_implemented', operation.why ?? id);
    const reply = await routes[id]({
      revision,
      operation,
      actor,
      params,
      query: {},
      body: checkBody(revision, operation, body),
      once: allowedKey(revision, operation, () => (key === undefined ? {} : requireKey(key))),
      prefix: '',
    });
    if (reply === 'answered' || 'bytes' in reply)
      throw new Fault('not_implemented', `${id} needs a request of its own`);
    return { status: reply.status ?? operation.success, body: withLiveMembers(context.live, revision, reply.body) };
  };

  async function serve(request: IncomingMessage, response: ServerResponse, path: string, prefix: string) {
    const began = performance.now();
    let operation = 'unknown';
    try {
      const revision = namedRevision(request) ?? DEFAULT;
      response.setHeader(VERSION_HEADER, revision.version);
      const found = revision.match(request.method ?? '', path);
      const versioned = found ? !found.operation.unversioned : path.startsWith('/v1/');
      if (versioned) requireRevision(request);
      const actor = found?.operation.scope === null ? ANONYMOUS : await admit(bearerOf(request), addressOf(request));
      if (!found) throw new Fault('not_found', `there is no operation ${shown(request.method)} at this path`);
      operation = found.operation.id;
      if (found.operation.handling === 'refuse') throw new Fault('not_implemented', found.operation.why ?? operation);
      requireOwnScope(found.operation, actor);
      const call = await readCall(request, response, { ...found, revision, actor, prefix }, settings);
      const reply = await routes[found.operation.id](call);
      if (reply === 'answered') return;
      const body = 'body' in reply ? { ...reply, body: withLiveMembers(context.live, revision, reply.body) } : reply;
      send(request, response, body, found.operation);
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind === 'internal') {
        deps.log.error({ err: fault.cause ?? fault, request_id: requestIdOf(request), operation }, 'a request failed');
      }
      sendFault(request, response, fault);
    } finally {
      metrics.answered(operation, response.statusCode, (performance.now() - began) / 1000);
    }
  }

  const sockets = createSockets({ context, admit, perform });
  const paths = [...new Set(REVISIONS.flatMap((revision) => revision.claims))];
  const prefixes = settings.suitePrefix ? ['', settings.suitePrefix] : [''];
  deps.http.claim(
    'harn',
    prefixes.flatMap((prefix) =>
      paths.map(
        (path): HttpRoute => ({
          path: `${prefix}${path}`,
          handler(request, response, next) {
            const own = request.url?.split('?', 1)[0]?.slice(prefix.length) ?? '/';
            serve(request, response, own, prefix).catch(next);
          },
          upgrade: (request, socket, head) => sockets.upgrade(request, socket, head, prefix),
        }),
      ),
    ),
  );

  return {
    async close() {
      followers.close();
      sockets.close();
    },
  };
}
