/**
 * The door: REST, event streams and WebSocket in the canonical protocol's own words. Frames in, frames out; no policy and
 * no state here. Every failure leaves in the same envelope, and a wrong version is told before anything else is asked.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type OperationId, VERSION_HEADER } from '../../mappings/harn.ts';
import {
  type Actor,
  asFault,
  type Bridge,
  type Closable,
  type Deps,
  Fault,
  type FrontDoor,
  type LoginPlace,
  PROTOCOL_VERSION,
} from '../../src/index.ts';
import { addressOf, bearerOf } from '../../src/wire/bearer.ts';
import { requestIdOf } from '../../src/wire/http.ts';
import type { Desk } from './call.ts';
import type { HarnSettings } from './config.ts';
import {
  checkBody,
  complain,
  NOBODY,
  readCall,
  requireKey,
  requireOwnScope,
  requireVersion,
  send,
  shown,
} from './exchange.ts';
import { createFollowers } from './followers.ts';
import { createHosts, type Hosts } from './hosts.ts';
import { createMetrics } from './metrics.ts';
import { isOurs, match, operationOf } from './router.ts';
import { createRoutes } from './routes/index.ts';
import { createSockets, type Perform } from './socket.ts';

export function harnDoor(
  settings: HarnSettings,
  deps: Deps,
  hosts: Hosts = createHosts({ ids: deps.ids, patienceMs: settings.hostPatienceMs }),
): FrontDoor {
  return {
    name: 'harn',
    carries: ['approval', 'input'],
    async open(bridge) {
      return openDoor(settings, deps, bridge, hosts);
    },
  };
}

function openDoor(settings: HarnSettings, deps: Deps, bridge: Bridge, hosts: Hosts): Closable {
  const metrics = createMetrics();
  const followers = createFollowers(deps.authenticate, metrics, settings.recheckMs);
  const desk: Desk = { bridge, deps, settings, followers, metrics, hosts, openedAt: deps.clock.now() };
  const routes = createRoutes(desk);

  async function admit(bearer: string | undefined, from: LoginPlace): Promise<Actor> {
    return { ...(await deps.authenticate(bearer, from)), door: 'harn' };
  }

  /** A command from a socket: the route its REST twin has, with the same checks. */
  const perform: Perform = async (id: OperationId, { actor, params, body, key }) => {
    const operation = operationOf(id);
    const reply = await routes[id]({
      operation,
      actor,
      params,
      query: {},
      body: checkBody(operation, body),
      once: key === undefined ? {} : requireKey(key),
      prefix: '',
    });
    if (reply === 'answered' || 'bytes' in reply)
      throw new Fault('not_implemented', `${id} needs a request of its own`);
    return { status: reply.status ?? operation.success, body: reply.body };
  };

  async function serve(request: IncomingMessage, response: ServerResponse, path: string, prefix: string) {
    const began = performance.now();
    let operation = 'unknown';
    response.setHeader(VERSION_HEADER, PROTOCOL_VERSION);
    try {
      const found = match(request.method ?? '', path);
      const versioned = found ? !found.operation.unversioned : path.startsWith('/v1/');
      if (versioned) requireVersion(request);
      const actor = found?.operation.scope === null ? NOBODY : await admit(bearerOf(request), addressOf(request));
      if (!found) throw new Fault('not_found', `there is no operation ${shown(request.method)} at this path`);
      operation = found.operation.id;
      requireOwnScope(found.operation, actor);
      const call = await readCall(request, response, { ...found, actor, prefix }, settings);
      const reply = await routes[found.operation.id](call);
      if (reply === 'answered') return;
      send(request, response, reply, found.operation);
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind === 'internal') {
        deps.log.error({ err: fault.cause ?? fault, request_id: requestIdOf(request), operation }, 'a request failed');
      }
      complain(request, response, fault);
    } finally {
      metrics.answered(operation, response.statusCode, (performance.now() - began) / 1000);
    }
  }

  const sockets = createSockets({ desk, admit, perform });
  const mounts = settings.suitePrefix ? ['', settings.suitePrefix] : [''];
  for (const prefix of mounts) {
    deps.http.upgrade(
      (path) => path.startsWith(`${prefix}/`) && sockets.mine(path.slice(prefix.length)),
      (request, socket, head) => sockets.upgrade(request, socket, head, prefix),
    );
    deps.http.mount('/', (request, response, next) => {
      const path = request.url?.split('?', 1)[0] ?? '/';
      if (!path.startsWith(`${prefix}/`)) return next();
      const own = path.slice(prefix.length);
      if (!isOurs(own)) return next();
      serve(request, response, own, prefix).catch(next);
    });
  }

  return {
    async close() {
      followers.close();
      sockets.close();
    },
  };
}
