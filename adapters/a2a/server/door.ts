/**
 * The door: each agent has its own base below `/a2a/`, with a card, two HTTP bindings and two revisions; the default agent's
 * card is also at the root. It decodes and encodes frames and holds neither policy nor state. Unauthenticated callers are
 * refused, except for the public card.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  AgentFace,
  Artifact,
  Authenticate,
  Bridge,
  Closable,
  Deps,
  FrontDoor,
  HttpHandler,
  Json,
  Row,
} from '../../../src/index.ts';
import { addressOf, bearerOf } from '../../../src/transport/http/bearer.ts';
import type { Resolve } from '../../../src/transport/outbound/public-fetch.ts';
import { mapErrors } from '../bindings/error-mapping.ts';
import { serveGrpc } from '../bindings/grpc.ts';
import { createJsonRpc } from '../bindings/json-rpc.ts';
import { createRest } from '../bindings/rest.ts';
import type { A2aSettings } from '../config.ts';
import { SYSTEM_ACTOR } from '../push/configs.ts';
import { createPush, type Push } from '../push/push.ts';
import { type CallOptions, callOf } from './caller.ts';
import { type MadeCard, makeCard } from './card.ts';
import { createContexts } from './contexts.ts';
import { answer, contextOf, type PeerRequest, refusing, versionOf } from './exchange.ts';
import { createHandler } from './handler.ts';
import { sendCard } from './public-card.ts';
import { ABSENT_AGENT, Refusal, toErrorReply, toLegacyError, toRestError } from './refusal.ts';
import { createReader, type TaskReader } from './task-reader.ts';

/** For tests: name resolution for webhooks, and how often gateways check for others that are gone. */
export interface DoorOptions {
  readonly resolve?: Resolve;
  readonly takeOverMs?: number;
}

export function a2aDoor(settings: A2aSettings, deps: Deps, options: DoorOptions = {}): FrontDoor {
  return {
    name: 'a2a',
    carries: ['approval', 'input'],
    open: (bridge) => openDoor(settings, deps, bridge, options),
  };
}

const WELL_KNOWN = ['/.well-known/agent-card.json', '/.well-known/agent.json'];
/** The public keys that cards are signed with. */
const KEYS = '/.well-known/jwks.json';

async function openDoor(settings: A2aSettings, deps: Deps, bridge: Bridge, options: DoorOptions): Promise<Closable> {
  /** The agents that can be called now: they change with the configuration. */
  const listAgents = async () =>
    (await bridge.agents(SYSTEM_ACTOR)).filter(({ name }) => settings.agents?.includes(name) ?? true);
  const standard = (all: readonly AgentFace[]) => all.find((agent) => agent.default) ?? all[0];
  const openedAt = deps.clock.now();
  const closing = new AbortController();
  const readers = new Map<string, TaskReader>();
  const origin = () => settings.publicUrl ?? deps.http.url;
  const baseOf = (name: string) => `${origin()}/a2a/${encodeURIComponent(name)}`;
  const readerOf = (name: string): TaskReader => {
    const known = readers.get(name) ?? createReader({ bridge, agent: name, settings, base: () => baseOf(name) });
    readers.set(name, known);
    return known;
  };
  const push: Push | undefined = settings.push.enabled
    ? createPush({ bridge, settings, deps, readerOf, ...options })
    : undefined;
  const contexts = createContexts(bridge, settings.workspace);
  const onGrpc = settings.grpc?.agent ?? standard(await listAgents())?.name;
  let grpcAt: string | undefined;

  function createEndpoint(agent: AgentFace) {
    let made: { of: string; card: MadeCard } | undefined;
    const cardDeps = () => ({
      settings,
      signer: deps.sign && { sign: deps.sign, jku: `${origin()}${KEYS}` },
      grpc: agent.name === onGrpc ? grpcAt : undefined,
    });
    /** As the agent describes itself now. */
    const described = async () => {
      const now = (await listAgents()).find(({ name }) => name === agent.name);
      return { name: agent.name, about: (await now?.describe?.()) ?? agent.about };
    };
    const card = async (): Promise<MadeCard> => {
      const base = baseOf(agent.name);
      const face = await described();
      // A reader verifies it with the key in use, which may have changed.
      const of = JSON.stringify([base, keyInUse(deps.jwks()), face]);
      if (made?.of !== of) made = { of, card: makeCard(face, base, cardDeps()) };
      return made.card;
    };
    /** The additional details for this caller: the tools the rules would let it try. */
    const extendedCard = async ({ actor }: CallOptions) => {
      const tools = await contexts.workspace(actor).then(
        (workspace) => bridge.visible(actor, workspace).catch(() => []),
        () => [],
      );
      return makeCard(await described(), baseOf(agent.name), cardDeps(), tools).card;
    };
    const handler = createHandler({
      bridge,
      settings,
      agent: agent.name,
      steers: agent.abilities.steer ?? false,
      contexts,
      reader: readerOf(agent.name),
      push,
      closing: closing.signal,
      card: async () => (await card()).served,
      extendedCard,
    });
    const authenticate: Authenticate = async (bearer, from) => {
      const actor = await deps.authenticate(bearer, from);
      if (!(actor.agents?.includes(agent.name) ?? true)) throw ABSENT_AGENT;
      return actor;
    };
    const binding = {
      handler,
      legacy: mapErrors(handler, { words: toLegacyError }),
      settings,
      authenticate,
      log: deps.log,
    };
    return { agent, authenticate, card, handler, jsonRpc: createJsonRpc(binding), rest: createRest(binding) };
  }

  type Endpoint = ReturnType<typeof createEndpoint>;
  const endpoints = new Map<string, Endpoint>();

  /** The endpoint of an agent, or of the default agent at the root; created anew when the agent has changed. */
  async function endpointOf(name: string | undefined): Promise<Endpoint | undefined> {
    const all = await listAgents();
    const agent = name === undefined ? standard(all) : all.find((each) => each.name === name);
    if (!agent) return undefined;
    const known = endpoints.get(agent.name);
    if (known && isSame(known.agent, agent)) return known;
    const endpoint = createEndpoint(agent);
    endpoints.set(agent.name, endpoint);
    return endpoint;
  }

  async function showCard(incoming: PeerRequest, endpoint: Endpoint | undefined): Promise<void> {
    try {
      if (!endpoint) throw ABSENT_AGENT;
      await hideFrom(incoming.request, endpoint);
      sendCard(incoming, await endpoint.card(), {
        version: versionOf(incoming),
        legacy: settings.legacy,
        openedAt,
      });
    } catch (thrown) {
      answer(incoming.response, toErrorReply(thrown).http, 'application/json', toRestError(thrown));
    }
  }

  /** The card is public; a reader that says who it is sees the agents it may call. */
  async function hideFrom(request: IncomingMessage, { authenticate }: Endpoint): Promise<void> {
    if (!request.headers.authorization) return;
    try {
      await authenticate(bearerOf(request), addressOf(request));
    } catch (thrown) {
      if (thrown === ABSENT_AGENT) throw thrown;
    }
  }

  /** A file too large for a message, for the owner of the task. */
  async function download(incoming: PeerRequest, endpoint: Endpoint, id: string): Promise<void> {
    const { response } = incoming;
    try {
      const { actor } = callOf(await contextOf(incoming, 'HTTP+JSON', '1.0', endpoint.authenticate));
      const artifact = await bridge.view<Artifact & Row>(actor, 'artifact', id);
      const owner = (artifact.metadata as { a2a?: { owner?: string } }).a2a?.owner;
      if (artifact.task_id) await readerOf(endpoint.agent.name).own(actor, artifact.task_id);
      else if (owner !== actor.id) throw new Refusal('TASK_NOT_FOUND', `no artifact ${id}`);
      const bytes = await bridge.bytes(actor, id);
      response.writeHead(200, {
        'content-type': artifact.mime_type,
        'content-length': bytes.length,
        'content-disposition': 'attachment',
        'cache-control': 'private, no-store',
      });
      response.end(bytes);
    } catch (thrown) {
      refusing(incoming, thrown, deps.log);
      answer(response, toErrorReply(thrown).http, 'application/json', toRestError(thrown));
    }
  }

  async function serve(incoming: PeerRequest, endpoint: Endpoint | undefined): Promise<void> {
    const { request, response, path } = incoming;
    if (WELL_KNOWN.includes(path) && request.method === 'GET') return await showCard(incoming, endpoint);
    if (!endpoint) return answer(response, 404, 'application/json', toRestError(ABSENT_AGENT));
    const file = /^\/artifacts\/([^/]+)$/.exec(path)?.[1];
    if (file && request.method === 'GET') return await download(incoming, endpoint, file);
    if (path === '' || path === '/') {
      if (request.method === 'POST') return await endpoint.jsonRpc(incoming);
      response.setHeader('allow', 'POST');
      const wrong = new Refusal('METHOD_NOT_FOUND', 'requests come as POST');
      return answer(response, 405, 'application/json', toRestError(wrong));
    }
    await endpoint.rest(incoming);
  }

  const at = (name: string | undefined, incoming: PeerRequest, next: (thrown?: unknown) => void) => {
    endpointOf(name)
      .then((endpoint) => serve(incoming, endpoint))
      .catch(next);
  };
  deps.http.claim('a2a', [
    {
      path: '/a2a/*',
      handler(request, response, next) {
        const [path, search] = splitOnce(request.url ?? '/', '?');
        const [, name, rest = ''] = /^\/a2a\/([^/]+)(.*)$/.exec(path) ?? [];
        if (name === undefined) next();
        else at(decoded(name) ?? '', incomingOf(request, response, rest, search), next);
      },
    },
    {
      path: KEYS,
      methods: ['GET'],
      handler(_request, response) {
        response.setHeader('cache-control', 'public, max-age=300');
        answer(response, 200, 'application/json', deps.jwks() as Json);
      },
    },
    ...WELL_KNOWN.map((path) => ({
      path,
      methods: ['GET'],
      handler: ((request, response, next) => {
        const [, search] = splitOnce(request.url ?? '/', '?');
        at(undefined, incomingOf(request, response, path, search), next);
      }) satisfies HttpHandler,
    })),
  ]);

  // For another protocol's card that includes ours: the card for a reader that names no version.
  deps.http.publish?.(WELL_KNOWN[0] as string, async () => {
    const made = await (await endpointOf(undefined))?.card();
    return made && (settings.legacy ? made.legacy : made.wire).json;
  });

  const chosen = settings.grpc && onGrpc !== undefined ? await endpointOf(onGrpc) : undefined;
  const grpc =
    settings.grpc && chosen
      ? await serveGrpc(settings.grpc, chosen.handler, settings, { ...deps, authenticate: chosen.authenticate })
      : undefined;
  grpcAt = grpc?.at;
  await push?.resume();

  return {
    async close() {
      closing.abort();
      await grpc?.close();
      await push?.close();
    },
  };
}

/** An agent's description is compared only when it is a new object. */
function isSame(one: AgentFace, other: AgentFace): boolean {
  const { abilities, about } = other;
  if (one.default !== other.default) return false;
  if (one.abilities === abilities && one.about === about) return true;
  return JSON.stringify([one.abilities, one.about]) === JSON.stringify([abilities, about]);
}

/** The newest of the keys we publish. */
function keyInUse(jwks: object): string | undefined {
  return (jwks as { keys?: readonly { kid?: string }[] }).keys?.at(-1)?.kid;
}

function incomingOf(request: IncomingMessage, response: ServerResponse, path: string, search: string): PeerRequest {
  return { request, response, path, query: search === '' ? NO_QUERY : new URLSearchParams(search) };
}

const NO_QUERY = new URLSearchParams();

function splitOnce(text: string, at: string): [string, string] {
  const index = text.indexOf(at);
  return index < 0 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)];
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
