/**
 * The door for services that speak the runs API. It shares its port with the native one: `/v1/runs`, `/v1/memory` and
 * `/v1/usage` are nobody else's; health and OpenAPI are also another door's, so the whole API stands once more below a prefix.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Actor,
  type Bridge,
  type Closable,
  canonicalJson,
  type Deps,
  type FrontDoor,
  type Json,
} from '../../src/index.ts';
import { requestIdOf } from '../../src/wire/http.ts';
import { admit } from './auth.ts';
import { createBook } from './book.ts';
import type { Desk, Routes } from './call.ts';
import type { RunsSettings } from './config.ts';
import { createRun } from './create.ts';
import { listEvents, streamEvents } from './events.ts';
import { addressOf, bodyReader, complain, match, send, uuidOf } from './exchange.ts';
import { createMemory } from './memory.ts';
import { createMoves } from './moves.ts';
import { openApi } from './openapi.ts';
import { RunsRefusal, refusalOf } from './refusal.ts';
import { createCleaner } from './sensitive.ts';
import { signalRun } from './signal.ts';
import { createTurns } from './turns.ts';
import { getUsage } from './usage.ts';
import { createWatchman } from './watchman.ts';

export function runsDoor(settings: RunsSettings, deps: Deps): FrontDoor {
  return {
    name: 'runs',
    carries: ['approval', 'input'],
    open: async (bridge) => openDoor(settings, deps, bridge),
  };
}

/** Behind the operations anyone may call; it may see nothing. */
const NOBODY: Actor = { id: 'anonymous', kind: 'service', scopes: [], workspaces: [] };
/** Paths no other door has. */
const OWN = ['/v1/runs', '/v1/memory', '/v1/usage'];

function openDoor(settings: RunsSettings, deps: Deps, bridge: Bridge): Closable {
  const closing = new AbortController();
  const mac = macOf(deps);
  const desk: Desk = {
    bridge,
    deps,
    settings,
    book: createBook(bridge),
    turns: createTurns(),
    cleaner: createCleaner(mac),
    digest: (value: Json) => mac(canonicalJson(value)),
    closing: closing.signal,
  };
  const routes = createRoutes(desk);
  const watchman = createWatchman(desk);

  async function serve(request: IncomingMessage, response: ServerResponse, path: string, query: URLSearchParams) {
    const requestId = uuidOf(request);
    try {
      const found = match(request.method ?? '', path);
      const actor = found?.operation.auth === false ? NOBODY : await admit(request, deps.authenticate);
      if (!found) throw new RunsRefusal('ENDPOINT_NOT_FOUND');
      const { operation, id } = found;
      const call = { actor, id, query, requestId, body: bodyReader(request), request, response };
      const reply = await routes[operation.id](call);
      if (reply) send(request, response, { ...reply, body: { ...reply.body, request_id: requestId } });
    } catch (thrown) {
      const refusal = refusalOf(thrown);
      if (refusal.code === 'INTERNAL_ERROR' || refusal.code === 'SIGNAL_SERVICE_UNAVAILABLE') {
        deps.log.error({ err: refusal.cause ?? refusal, request_id: requestIdOf(request) }, 'a request failed');
      }
      complain(request, response, refusal, requestId);
    }
  }

  function mountAt(mount: string, prefix: string, mine: (path: string) => boolean): void {
    deps.http.mount(mount, (request, response, next) => {
      const { path, query } = addressOf(request);
      const own = path.slice(prefix.length);
      if (!mine(own)) return next();
      serve(request, response, own, query).catch(next);
    });
  }
  for (const path of OWN) mountAt(path, '', () => true);
  if (settings.prefix) mountAt(settings.prefix, settings.prefix, () => true);
  // At the root these are answered here only where no other door does.
  mountAt('/', '', (path) => match('GET', path)?.operation.auth === false);

  return {
    async close() {
      closing.abort();
      await watchman.close();
    },
  };
}

function createRoutes(desk: Desk): Routes {
  const moves = createMoves(desk);
  const memory = createMemory(desk);
  const { deps, settings } = desk;
  const health = async (dependencies?: (trouble: string | undefined) => object) => {
    const trouble = deps.trouble?.();
    const body = { status: trouble === undefined ? 'ok' : 'unavailable', ...dependencies?.(trouble) };
    return { status: trouble === undefined ? 200 : 503, body };
  };
  return {
    createRun: createRun(desk),
    getRun: moves.get,
    cancelRun: moves.cancel,
    retryRun: moves.retry,
    resumeRun: moves.resume,
    signalRun: signalRun(desk),
    listRunEvents: listEvents(desk),
    streamRunEvents: streamEvents(desk),
    exportMemory: memory.export,
    listMemoryItems: memory.list,
    getMemoryItem: memory.get,
    getUsage: getUsage(desk),
    getHealthLive: async () => ({ body: { status: 'ok' } }),
    getHealthReady: () => health(),
    // Policy is asked by the same process; where it cannot be, nothing is let through and nothing is down.
    getHealthDeps: () =>
      health((trouble) => ({ dependencies: { log: trouble === undefined ? 'ok' : 'down', policy: 'ok' } })),
    getOpenApi: async () => ({ body: openApi(settings.prefix) }),
  };
}

/** Keyed with something only this house can make, the same after a restart. Where nothing can be signed, good until then. */
function macOf(deps: Deps): (text: string) => string {
  const seed = deps.sign?.('tollbridge runs: key of digests').signature ?? randomBytes(32).toString('hex');
  const key = createHash('sha256').update(seed).digest();
  return (text) => `hmac-sha256:${createHmac('sha256', key).update(text).digest('hex')}`;
}
