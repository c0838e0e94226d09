/**
 * The door for services that use the runs API. It shares its port with the native door: `/v1/runs`, `/v1/memory` and `/v1/usage`
 * belong to this door alone; health and OpenAPI also exist there, so the whole API is served a second time below a prefix.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { routes } from '../../../mappings/runs.ts';
import {
  type Actor,
  type Bridge,
  type Closable,
  canonicalJson,
  type Deps,
  type FrontDoor,
  type HttpHandler,
  type Json,
} from '../../../src/index.ts';
import { requestIdOf } from '../../../src/transport/http/server.ts';
import type { RunsSettings } from '../config.ts';
import { admit } from './auth.ts';
import type { RouteContext, Routes } from './call.ts';
import { addressOf, bodyReader, match, send, sendRefusal, uuidOf } from './exchange.ts';
import { createKeyQueue } from './key-queue.ts';
import { besideOthers, openApi } from './openapi.ts';
import { createRun } from './operations/create.ts';
import { listEvents, streamEvents } from './operations/events.ts';
import { createMemory } from './operations/memory.ts';
import { createMoves } from './operations/run-actions.ts';
import { signalRun } from './operations/signal.ts';
import { getUsage } from './operations/usage.ts';
import { RunsRefusal, refusalOf } from './refusal.ts';
import { createRunReader } from './run-reader.ts';
import { createCleaner } from './sensitive.ts';
import { createStallDetector } from './stall-detector.ts';

export function runsDoor(settings: RunsSettings, deps: Deps): FrontDoor {
  return {
    name: 'runs',
    carries: ['approval', 'input'],
    open: async (bridge) => openDoor(settings, deps, bridge),
  };
}

/** The actor of the public operations; it may see nothing. */
const ANONYMOUS: Actor = { id: 'anonymous', kind: 'service', scopes: [], workspaces: [] };
/** Paths that no other door has. */
const OWN = ['/v1/runs', '/v1/memory', '/v1/usage'];

function openDoor(settings: RunsSettings, deps: Deps, bridge: Bridge): Closable {
  const closing = new AbortController();
  const mac = macOf(deps);
  const context: RouteContext = {
    bridge,
    deps,
    settings,
    runReader: createRunReader(bridge),
    turns: createKeyQueue(),
    cleaner: createCleaner(mac),
    digest: (value: Json) => mac(canonicalJson(value)),
    closing: closing.signal,
  };
  const operations = createRoutes(context);
  const stallDetector = createStallDetector(context);

  async function serve(request: IncomingMessage, response: ServerResponse, path: string, query: URLSearchParams) {
    const requestId = uuidOf(request);
    try {
      const found = match(request.method ?? '', path);
      const actor = found?.operation.auth === false ? ANONYMOUS : await admit(request, deps.authenticate);
      if (!found) throw new RunsRefusal('ENDPOINT_NOT_FOUND');
      const { operation, id } = found;
      if (operation.handling === 'refuse') throw new RunsRefusal('ENDPOINT_NOT_FOUND');
      const call = { actor, id, query, requestId, body: bodyReader(request), request, response };
      const reply = await operations[operation.id](call);
      if (reply) send(request, response, { ...reply, body: { ...reply.body, request_id: requestId } });
    } catch (thrown) {
      const refusal = refusalOf(thrown);
      if (refusal.code === 'INTERNAL_ERROR' || refusal.code === 'SIGNAL_SERVICE_UNAVAILABLE') {
        deps.log.error({ err: refusal.cause ?? refusal, request_id: requestIdOf(request) }, 'a request failed');
      }
      sendRefusal(request, response, refusal, requestId);
    }
  }

  const below = (prefix: string): HttpHandler => {
    return (request, response, next) => {
      const { path, query } = addressOf(request);
      serve(request, response, path.slice(prefix.length), query).catch(next);
    };
  };
  const handler = below('');
  const open = routes.rows.filter(({ auth }) => !auth);
  deps.http.claim('runs', [
    ...OWN.map((path) => ({ path: `${path}/*`, handler })),
    ...(settings.prefix ? [{ path: `${settings.prefix}/*`, handler: below(settings.prefix) }] : []),
    // Unauthenticated callers learn whether the gateway works, and no more; with a credential, the native door answers in detail.
    {
      path: '/health/deps',
      shared: 'first',
      handler: (request, response, next) =>
        request.headers.authorization === undefined ? handler(request, response, next) : next(),
    },
    ...open.map(({ path }) => ({ path, shared: 'last', handler }) as const),
  ]);
  deps.http.describe?.('runs', besideOthers());

  return {
    async close() {
      closing.abort();
      await stallDetector.close();
    },
  };
}

function createRoutes(context: RouteContext): Routes {
  const moves = createMoves(context);
  const memory = createMemory(context);
  const { deps, settings } = context;
  const health = async (dependencies?: (trouble: string | undefined) => object) => {
    const trouble = deps.trouble?.();
    const body = { status: trouble === undefined ? 'ok' : 'unavailable', ...dependencies?.(trouble) };
    return { status: trouble === undefined ? 200 : 503, body };
  };
  return {
    createRun: createRun(context),
    getRun: moves.get,
    cancelRun: moves.cancel,
    retryRun: moves.retry,
    resumeRun: moves.resume,
    signalRun: signalRun(context),
    listRunEvents: listEvents(context),
    streamRunEvents: streamEvents(context),
    exportMemory: memory.export,
    listMemoryItems: memory.list,
    getMemoryItem: memory.get,
    getUsage: getUsage(context),
    getHealthLive: async () => ({ body: { status: 'ok' } }),
    getHealthReady: () => health(),
    // Policy runs in the same process; if it fails, acts are blocked, and the dependency does not count as down.
    getHealthDeps: () =>
      health((trouble) => ({ dependencies: { log: trouble === undefined ? 'ok' : 'down', policy: 'ok' } })),
    getOpenApi: async () => ({ body: openApi(settings.prefix) }),
  };
}

/** Keyed with a signature that only this installation can make, so that it survives a restart. Without a signing key it is random. */
function macOf(deps: Deps): (text: string) => string {
  const seed = deps.sign?.('tollbridge runs: key of digests').signature ?? randomBytes(32).toString('hex');
  const key = createHash('sha256').update(seed).digest();
  return (text) => `hmac-sha256:${createHmac('sha256', key).update(text).digest('hex')}`;
}
